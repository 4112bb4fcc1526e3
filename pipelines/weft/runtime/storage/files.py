"""Durable files: written whole, verified by hash, made visible by one rename (ARC-2)."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from weft.domain.errors import CorruptionError, StoreError
from weft.runtime.storage.errors import named, refused

MANIFEST_FILE = "manifest.json"
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_OWN_HASH = "sha256"  # over the canonical form of everything else in the manifest


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hex digits."""
    with named(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_below(folder: Path) -> Iterator[Path]:
    """Every regular file below a folder, in a fixed order."""
    return iter(sorted(path for path in folder.rglob("*") if path.is_file()))


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a text file with their numbers, from 1; what is no UTF-8 is replaced.

    A line ends where lines of files do. `str.splitlines` breaks them at further characters, which JSON holds unescaped.
    """
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            yield number, line.removesuffix("\n")


def sync_folder(folder: Path) -> None:
    """Make the entries of a folder durable: a rename in it survives a power loss only after this."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Make every file and folder below a folder durable, leaves first."""
    for path in files_below(folder):
        with path.open("rb") as file:
            os.fsync(file.fileno())
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        sync_folder(path)
    sync_folder(folder)


def exchange(one: Path, other: Path) -> None:
    """Have two folders of one file system change places; in one step where the system has one for it, as Linux has."""
    swap = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if swap is not None and swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return
    aside = other.with_name(f".{other.name}-{os.getpid()}")
    other.rename(aside)
    one.rename(other)
    aside.rename(one)


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content in one step: readers see the old bytes or the new ones, never a mixture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with named(path), os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # mkstemp makes files private; readers may run as another user
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    sync_folder(path.parent)


def canonical(value: object) -> bytes:
    """A JSON value as bytes that depend on nothing but the value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def file_hashes(folder: Path, hashed: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """SHA-256 of every file below a folder but its manifest, by relative path; those that are given as they are."""
    names = {path.relative_to(folder).as_posix(): path for path in files_below(folder)}
    return {name: hashed.get(name) or sha256_of(path) for name, path in names.items() if name != MANIFEST_FILE}


def write_manifest(folder: Path, values: Mapping[str, Any]) -> None:
    """Write the manifest of a folder whose other files are complete; its "files" are those of `file_hashes`."""
    write_atomically(folder / MANIFEST_FILE, _rendered(values))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The values of a folder's manifest, which must be byte for byte what `write_manifest` wrote."""
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
    """Check that a folder holds exactly the files of its manifest."""
    verify_some(folder, files)
    for path in files_below(folder):
        name = path.relative_to(folder).as_posix()
        if name != MANIFEST_FILE and name not in files:
            raise CorruptionError(f"{path}: expected no such file, found one; rebuild or roll back")


def verify_some(folder: Path, files: Mapping[str, str]) -> None:
    """Check these files of a folder, whatever else it holds; CorruptionError names the first missing or changed."""
    for name, expected in sorted(files.items()):
        path = folder / name
        actual = sha256_of(path) if path.is_file() else "no file"
        if actual != expected:
            raise CorruptionError(f"{path}: expected sha256 {expected}, found {actual}; rebuild or roll back")


def _rendered(values: Mapping[str, Any]) -> bytes:
    own = hashlib.sha256(canonical(values)).hexdigest()
    return json.dumps({**values, _OWN_HASH: own}, sort_keys=True, indent=1).encode() + b"\n"
