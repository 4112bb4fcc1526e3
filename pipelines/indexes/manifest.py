"""The manifest of a generation: what it holds, what it was made with, and the hash of every file (ARC-2).

The content hash says what a generation means, not how its files came out. It covers, in a canonical form: every chunk
with its texts, ids and spans in the order of (content hash, URI, sequence); the facts of every document except its
modification time; the models; and the parameters. It leaves out everything that may differ between two runs over the
same input: shards, times, folders, file bytes, and the numbers that models compute, for which their names stand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from pipelines.domain.errors import CorruptionError, StoreError
from pipelines.domain.ids import GenerationId
from pipelines.indexes.settings import LexicalSettings
from pipelines.indexes.vectors import DenseFacts
from pipelines.runtime.files import files_below, sha256_of, write_atomically

MANIFEST_FILE = "manifest.json"
FORMAT = 1
"""Layout of a generation's folder; readers refuse another."""

_BATCH = 4_096  # rows hashed at once; must not change, the hash depends on it
_OWN_HASH = "sha256"  # over the canonical form of everything else in the manifest
_TIMES = frozenset({"modified_at"})


class Manifest(BaseModel):
    """What one generation is.

    Attributes:
        parent: The generation that was live when this one was begun.
        created_at: Seconds since the epoch.
        counts: Rows by table, and contents.
        settings: Fingerprint of all settings it was built under.
        models: Model id by role, such as "encoder".
        dense: How each encoder's vectors are searched, by encoder name, with the measured recall.
        lexical: Fields, analyser and BM25 parameters of the text index.
        facts: Whatever else the builder was told, for people.
        files: SHA-256 of every other file by its path in the folder.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    id: GenerationId
    parent: GenerationId | None
    content_hash: str
    created_at: float
    counts: Mapping[str, int]
    settings: str
    models: Mapping[str, str]
    dense: Mapping[str, DenseFacts]
    lexical: LexicalSettings
    facts: Mapping[str, Any]
    files: Mapping[str, str]


def content_hash_of(
    chunks: pa.Table, documents: pa.Table, *, models: Mapping[str, str], parameters: Mapping[str, Any]
) -> str:
    """SHA-256 of what a generation means; see the module for what it covers.

    Args:
        chunks: Every chunk, sorted by (content hash, URI, sequence).
        documents: Every document, sorted by URI.
    """
    digest = hashlib.sha256(_canonical({"models": dict(models), "parameters": dict(parameters)}))
    for table in (chunks, documents.drop_columns(list(_TIMES))):
        for batch in _batches(table):
            digest.update(_canonical(batch))
    return digest.hexdigest()


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Write a manifest, last of all files, with the hash of each of the others.

    Returns:
        The manifest as written.
    """
    names = {path.relative_to(folder).as_posix(): path for path in files_below(folder)}
    hashes = {name: sha256_of(path) for name, path in names.items() if name != MANIFEST_FILE}
    sealed = manifest.model_copy(update={"files": hashes})
    write_atomically(folder / MANIFEST_FILE, _rendered(sealed))
    return sealed


def read_manifest(folder: Path) -> Manifest:
    """Read and check a manifest; its own bytes are covered by the hash that it carries.

    Raises:
        StoreError: There is no such folder.
        CorruptionError: The manifest is missing, not what was written, or of another format.
    """
    path = folder / MANIFEST_FILE
    if not folder.is_dir():
        raise StoreError(f"{folder}: expected a generation, found no folder; list them with `weft generations list`")
    try:
        data = path.read_bytes()
        values = json.loads(data)
        manifest = Manifest.model_validate({name: value for name, value in values.items() if name != _OWN_HASH})
    except (OSError, ValueError, AttributeError) as error:
        raise CorruptionError(f"{path}: expected a manifest of format {FORMAT}, found: {error}; rebuild") from error
    if data != _rendered(manifest):
        raise CorruptionError(f"{path}: expected the manifest as written, found other bytes; rebuild or roll back")
    if manifest.format != FORMAT:
        raise CorruptionError(f"{path}: expected format {FORMAT}, found {manifest.format}; rebuild")
    return manifest


def verify_files(folder: Path, manifest: Manifest) -> None:
    """Check that a folder holds exactly the files of its manifest.

    Raises:
        CorruptionError: Names the first file that is missing, changed or not the generation's, expected and found.
    """
    for name, expected in sorted(manifest.files.items()):
        path = folder / name
        found = f"sha256 {sha256_of(path)}" if path.is_file() else "no file"
        if found != f"sha256 {expected}":
            raise CorruptionError(f"{path}: expected sha256 {expected}, found {found}; rebuild or roll back")
    for path in files_below(folder):
        name = path.relative_to(folder).as_posix()
        if name != MANIFEST_FILE and name not in manifest.files:
            raise CorruptionError(f"{path}: expected no such file in {manifest.id}, found one; rebuild or roll back")


def _rendered(manifest: Manifest) -> bytes:
    values = manifest.model_dump(mode="json")
    own = hashlib.sha256(_canonical(values)).hexdigest()
    return json.dumps({**values, _OWN_HASH: own}, sort_keys=True, indent=1).encode() + b"\n"


def _batches(table: pa.Table) -> Iterator[dict[str, list[Any]]]:
    for start in range(0, table.num_rows, _BATCH):
        yield table.slice(start, _BATCH).to_pydict()


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
