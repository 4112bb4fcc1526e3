"""Sealed folders: a manifest written last that carries the hash of every other file, and of itself (ARC-2)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.domain.errors import CorruptionError, StoreError
from pipelines.runtime.storage.disk import refused
from pipelines.runtime.storage.files import files_below, sha256_of, write_atomically

MANIFEST_FILE = "manifest.json"
_OWN_HASH = "sha256"  # over the canonical form of everything else in the manifest


def canonical(value: object) -> bytes:
    """A JSON value as bytes that depend on nothing but the value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def hashes_to_seal(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder but its manifest, by relative path."""
    names = {path.relative_to(folder).as_posix(): path for path in files_below(folder)}
    return {name: sha256_of(path) for name, path in names.items() if name != MANIFEST_FILE}


def write_manifest(folder: Path, values: Mapping[str, Any]) -> None:
    """Write the manifest of a folder whose other files are complete.

    Args:
        values: JSON values; their "files" are those of `hashes_to_seal`.
    """
    write_atomically(folder / MANIFEST_FILE, _rendered(values))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The values of a folder's manifest, which must be byte for byte what `write_manifest` wrote.

    Raises:
        StoreError: There is no such folder.
        CorruptionError: The manifest is missing or was changed.
        DiskError: It is there and cannot be read.
    """
    path = folder / MANIFEST_FILE
    if not folder.is_dir():
        raise StoreError(
            f"{folder}: expected a folder of the store, found none; `weft generations list` and `weft learned list` "
            "name them"
        )
    try:
        data = path.read_bytes()
        values: dict[str, Any] = json.loads(data)
        values.pop(_OWN_HASH)
    except OSError as error:
        if not isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
            raise refused(path, error) from error
        raise CorruptionError(f"{path}: expected a manifest, found: {error!r}; rebuild or roll back") from error
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise CorruptionError(f"{path}: expected a manifest, found: {error!r}; rebuild or roll back") from error
    if data != _rendered(values):
        raise CorruptionError(f"{path}: expected the manifest as written, found other bytes; rebuild or roll back")
    return values


def verify_files(folder: Path, files: Mapping[str, str]) -> None:
    """Check that a folder holds exactly the files of its manifest.

    Raises:
        CorruptionError: Names the first file that is missing, changed or foreign, with what was expected and found.
    """
    for name, expected in sorted(files.items()):
        path = folder / name
        found = sha256_of(path) if path.is_file() else "no file"
        if found != expected:
            raise CorruptionError(f"{path}: expected sha256 {expected}, found {found}; rebuild or roll back")
    for path in files_below(folder):
        name = path.relative_to(folder).as_posix()
        if name != MANIFEST_FILE and name not in files:
            raise CorruptionError(f"{path}: expected no such file, found one; rebuild or roll back")


def _rendered(values: Mapping[str, Any]) -> bytes:
    own = hashlib.sha256(canonical(values)).hexdigest()
    return json.dumps({**values, _OWN_HASH: own}, sort_keys=True, indent=1).encode() + b"\n"
