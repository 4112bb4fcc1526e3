"""The manifest of a generation: what it holds, what it was made with, and the hash of every file (ARC-2).

The content hash says what a generation means, not how its files came out. It covers, in a canonical form: every chunk
with its texts, ids and spans in the order of (content hash, URI, sequence); the facts of every document except its
modification time; the models; and the parameters. It leaves out everything that may differ between two runs over the
same input: shards, times, folders, file bytes, and the numbers that models compute, for which their names stand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ValidationError

from weft.domain.errors import CorruptionError
from weft.domain.ids import GenerationId
from weft.indexes.settings import LexicalSettings
from weft.indexes.shards import shards_of
from weft.runtime.storage.files import canonical, file_hashes, read_manifest, write_manifest

CHUNKS_FOLDER, VECTORS_FOLDER, LUCENE_FOLDER = "chunks", "vectors", "text/lucene"
WEIGHTS_FILE, IMPACTS_FOLDER = "text/weights.parquet", "text/impacts"
"""Where the parts of a generation lie in its folder."""

FORMAT = 2
"""Layout of a generation's folder; another is not read."""

PRECISIONS = "precisions"
"""The fact that pins each encoder's arithmetic."""

DEVICES = "devices"
"""The fact that says what each encoder computed on: "cpu" or "cuda"."""

SOURCES = "sources"
"""The fact that names where the documents came from."""

SPARSE = "sparse"
"""The role of the model that weighs terms, and the fact that says what decided the weights besides their texts."""

IMPACTS_MODULE = "weft.indexes.text.impact"
"""What indexes weights of terms: a module that is loaded by this name where terms are weighed."""

ANSWERING = "answering"
"""The fact that says from when on a match counts as an answer (RET-15)."""

DESCRIBED = "described"
"""The fact that says of which share of the documents what searches said about them was found out."""

BY_WORDS = "by_words"
"""The fact that a generation has no vectors yet: a first one, which the next takes the place of."""

_UNHASHED = frozenset({"modified_at", "made_from", "indexed_at"})


def encoder_folder(encoder: str) -> str:
    """The folder name of an encoder.

    Examples:
        >>> encoder_folder("sentence-transformers/all-MiniLM-L6-v2")
        'sentence-transformers--all-MiniLM-L6-v2'
    """
    return encoder.replace("/", "--")


def tables_of(generation: Path, name: str) -> list[Path]:
    """The files that a table of a generation consists of, a shard's each: `documents`, for one.

    Raises:
        CorruptionError: A shard has none, as those of earlier versions.
    """
    files = [shard / CHUNKS_FOLDER / f"{name}.parquet" for shard in shards_of(generation)]
    for file in files:
        if not file.exists():
            raise CorruptionError(f"{file}: expected the {name} of a shard, found none; index with `weft index --full`")
    return files


class DenseFacts(BaseModel):
    """How one encoder's vectors are searched; kept in the manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dimension: int
    kind: Literal["exact", "ivfpq"]  # "exact" compares every vector; "ivfpq" visits `probes` of `lists` lists
    lists: int = 0
    codes: int = 0  # bytes of code per vector
    probes: int = 0
    refine_factor: int = 1  # candidates re-scored per result asked for
    recall: float = 1.0  # share of the exact nearest `recall_depth` that was found on the sample; 1 for exact search
    # share of the contents that were there when the quantisers were trained, as if those that went since had been
    # drawn evenly; 1 for exact search
    trained_on: float = 1.0
    device: Literal["cpu", "cuda"] = "cpu"  # that trained and filled FAISS's index
    # what decided the vectors besides their texts; vectors made otherwise are never mixed with them
    made_with: str = ""
    token_bytes: float = 0.0  # stored for the token embeddings of a content on average; 0 where none are kept


class ShardFacts(BaseModel):
    """What one shard holds; kept in the manifest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    counts: Mapping[str, int]  # rows of its tables
    digest: str  # of its chunks


class Manifest(BaseModel):
    """What one generation is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    id: GenerationId
    parent: GenerationId | None  # the generation that was live when this one was begun
    content_hash: str
    created_at: float  # seconds since the epoch
    counts: Mapping[str, int]  # rows by table, and contents
    shards: Sequence[ShardFacts] = ()  # in the order of their hashes; what was built before there were any says none
    settings: str  # fingerprint of all settings it was built under
    models: Mapping[str, str]  # model id by role, such as "encoder"
    # how each encoder's vectors are searched, by encoder name, with the measured recall
    dense: Mapping[str, DenseFacts]
    lexical: LexicalSettings  # fields, analyser and BM25 parameters of the text index
    facts: Mapping[str, Any]  # whatever else the builder was told, for people
    files: Mapping[str, str]  # SHA-256 of every other file by its path in the folder

    @property
    def precisions(self) -> Mapping[str, str]:
        """The arithmetic that vectors were computed in, by encoder name."""
        precisions: Mapping[str, str] = self.facts.get(PRECISIONS, {})
        return precisions

    @property
    def devices(self) -> Mapping[str, str]:
        """What vectors were computed on, by encoder name."""
        devices: Mapping[str, str] = self.facts.get(DEVICES, {})
        return devices

    @property
    def sources(self) -> Sequence[str]:
        """Where its documents came from."""
        sources: Sequence[str] = self.facts.get(SOURCES, ())
        return sources

    @property
    def is_by_words(self) -> bool:
        """Whether its vectors are still to come: it answers by words and names alone."""
        return bool(self.facts.get(BY_WORDS))

    @property
    def weighed_with(self) -> str:
        """What decided its term weights besides their texts; empty where it keeps none."""
        return str(self.facts.get(SPARSE, ""))

    @property
    def sparse_encoder(self) -> str:
        """The name of the encoder that weighed its terms; empty where it keeps no weights."""
        return self.models.get(SPARSE, "").partition("@")[0]


class RowsDigest:
    """SHA-256 over rows in their order, however they are cut into tables; times and run-specific keys are left out."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, table: pa.Table) -> None:
        """Take the next rows in."""
        meant = table.drop_columns([name for name in table.column_names if name in _UNHASHED])
        for row in meant.to_pylist():
            self._digest.update(canonical(row))

    def hexdigest(self) -> str:
        """The digest of all rows so far, 64 hex digits."""
        return self._digest.hexdigest()


def content_hash_of(digests: Mapping[str, str], *, models: Mapping[str, str], parameters: Mapping[str, Any]) -> str:
    """SHA-256 of what a generation means; see the module for what it covers."""
    meant = {"models": dict(models), "parameters": dict(parameters), "tables": dict(digests)}
    return hashlib.sha256(canonical(meant)).hexdigest()


def seal(folder: Path, manifest: Manifest, hashed: Mapping[str, str] = MappingProxyType({})) -> Manifest:
    """Write a manifest, last of all files, with the hash of each of the others; hashes that are given say of more."""
    complete = manifest.model_copy(update={"files": {**hashed, **file_hashes(folder, hashed)}})
    write_manifest(folder, complete.model_dump(mode="json"))
    return complete


def seal_with(folder: Path, facts: Mapping[str, object]) -> Manifest:
    """Add facts to the manifest of a staged generation; what it means is what it was."""
    manifest = read_generation_manifest(folder)
    complete = manifest.model_copy(update={"facts": {**manifest.facts, **facts}})
    write_manifest(folder, complete.model_dump(mode="json"))
    return complete


def read_generation_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of a generation."""
    values = read_manifest(folder)
    if values.get("format") != FORMAT:
        raise CorruptionError(
            f"{folder}: expected format {FORMAT}, found {values.get('format')}, of another version of weft: "
            "index its sources anew with `weft index`, or use that version"
        )
    try:
        return Manifest.model_validate(values)
    except ValidationError as error:
        raise CorruptionError(f"{folder}: expected the manifest of a generation, found: {error}; rebuild") from error
