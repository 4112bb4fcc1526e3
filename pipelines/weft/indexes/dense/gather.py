"""Vectors in row order: each content's vector from the parts or from the generation before, on disk from the start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft.domain.errors import StoreError
from weft.indexes.dense.isolation import write_isolation
from weft.indexes.dense.tokens import TokenSources, TokenStore, gather_tokens, has_tokens
from weft.indexes.dense.vectors import FAISS_FILE, VECTORS_FILE, TrainedIndex, index_vectors
from weft.indexes.manifest import DenseFacts, read_generation_manifest
from weft.indexes.rows import HASH, hashes_of, rows_of
from weft.indexes.settings import VectorSettings

_ROWS = 8_192  # rows copied at once: bounds memory, changes nothing else


@dataclass(frozen=True, slots=True)
class DenseTask:
    """One encoder's vectors, to be put in row order and indexed."""

    parts: tuple[Path, ...]  # folders that may hold tables of vectors and of tokens
    base: Path | None  # the generation that unchanged contents are taken from; its vectors were made in the same way
    contents: Path  # the table of contents, row by row
    folder: Path  # where the encoder's files go, by the same name in every generation
    work: Path  # folder for what is needed until the generation is complete
    encoder: str
    dimension: int
    made_with: str
    settings: VectorSettings
    retrained: bool = False  # quantisers are trained anew, though those of `base` may serve

    @property
    def inherited(self) -> Path | None:
        """The folder of the same encoder in the generation before."""
        return None if self.base is None else self.base / "vectors" / self.folder.name


def build_vectors(task: DenseTask) -> DenseFacts:
    """Write an encoder's vectors and their index; running it again writes the same."""
    hashes = _hashes_on_disk(task)
    gather_vectors(task, hashes)
    gather_tokens(TokenSources(task.parts, task.inherited, _contents(task), task.encoder), hashes, task.folder)
    token_bytes = TokenStore(task.folder).bytes_per_content if has_tokens(task.folder) else 0.0
    facts = index_vectors(task.folder, task.settings, trained=_trained(task, hashes))
    stored = np.load(task.folder / VECTORS_FILE, mmap_mode="r", allow_pickle=False)
    write_isolation(task.folder, stored, task.settings.isolation)
    return facts.model_copy(update={"made_with": task.made_with, "token_bytes": token_bytes})


def _contents(task: DenseTask) -> Path:
    """The table of contents of the generation before, if there is one."""
    return (task.base or Path()) / "chunks" / "contents.parquet"


def _trained(task: DenseTask, hashes: np.ndarray) -> TrainedIndex | None:
    if task.base is None or task.inherited is None or task.retrained:
        return None
    facts = read_generation_manifest(task.base).dense.get(task.encoder)
    if facts is None or facts.kind == "exact":
        return None
    batches = pq.ParquetFile(_contents(task)).iter_batches(batch_size=_ROWS, columns=["content_hash"])
    stayed = sum(int((rows_of(hashes_of(batch["content_hash"]), hashes) >= 0).sum()) for batch in batches)
    return TrainedIndex(task.inherited / FAISS_FILE, facts.probes, facts.trained_on * stayed / max(1, len(hashes)))


def vector_tables(part: Path) -> list[Path]:
    """A part's tables of vectors, one per encoder: their dimensions differ."""
    return sorted(part.glob("vectors*.parquet"))


def gather_vectors(task: DenseTask, hashes: np.ndarray) -> None:
    """Write float16 (contents, dimension) in row order; of a content met twice the vector whose bytes sort first."""
    task.folder.mkdir(parents=True, exist_ok=True)
    shape = (len(hashes), task.dimension)
    stored = np.lib.format.open_memmap(task.folder / VECTORS_FILE, mode="w+", dtype=np.float16, shape=shape)
    seen = np.zeros(len(hashes), dtype=bool)
    for names, vectors in _sources(task):
        _place(names, vectors, hashes, stored, seen)
    stored.flush()
    if not seen.all():
        missing = hashes[int(np.flatnonzero(~seen)[0])].decode()
        raise StoreError(
            f"expected a vector of {task.encoder} for every content, found none for {(~seen).sum()}: {missing}"
        )


def _hashes_on_disk(task: DenseTask) -> np.ndarray:
    """The sorted content hashes as a memory map, so that they are searched and not held."""
    contents = pq.ParquetFile(task.contents)
    rows = contents.metadata.num_rows
    if not rows:
        return np.empty(0, dtype=HASH)
    task.work.mkdir(parents=True, exist_ok=True)
    path = task.work / f"{task.folder.name}.hashes"
    hashes = np.memmap(path, dtype=HASH, mode="w+", shape=(rows,))
    start = 0
    for batch in contents.iter_batches(batch_size=_ROWS, columns=["content_hash"]):
        hashes[start : start + len(batch)] = hashes_of(batch["content_hash"])
        start += len(batch)
    return hashes


def _sources(task: DenseTask) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Hashes and vectors of every place that has some, a bounded number at once."""
    if task.base is not None and task.inherited is not None:
        yield from _inherited(_contents(task), task.inherited)
    for part in task.parts:
        for path in vector_tables(part):
            yield from _of_part(pq.read_table(path), task.encoder)


def _inherited(contents: Path, folder: Path) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if not (folder / VECTORS_FILE).exists():
        return
    stored = np.load(folder / VECTORS_FILE, mmap_mode="r", allow_pickle=False)
    start = 0
    for batch in pq.ParquetFile(contents).iter_batches(batch_size=_ROWS, columns=["content_hash"]):
        yield hashes_of(batch["content_hash"]), np.asarray(stored[start : start + len(batch)])
        start += len(batch)


def _of_part(table: pa.Table, encoder: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rows = table.filter(pc.equal(table["encoder"], pa.scalar(encoder)))
    for batch in rows.to_batches(max_chunksize=_ROWS):
        lists: Any = batch["vector"]
        vectors = lists.flatten().to_numpy(zero_copy_only=False).reshape(len(batch), -1)
        yield hashes_of(batch["content_hash"]), vectors.astype(np.float16)


def _place(names: np.ndarray, vectors: np.ndarray, hashes: np.ndarray, stored: np.ndarray, seen: np.ndarray) -> None:
    """Put vectors at the rows of their contents; what is no content of this generation is left out."""
    rows = rows_of(names, hashes)
    present = rows >= 0
    rows, vectors = rows[present], vectors[present]
    fresh = ~seen[rows]
    stored[rows[fresh]] = vectors[fresh]
    seen[rows[fresh]] = True
    again, others = rows[~fresh], vectors[~fresh]
    for at in np.flatnonzero((np.asarray(stored[again]).view(np.uint16) != others.view(np.uint16)).any(axis=1)):
        row = int(again[at])
        if others[at].tobytes() < np.asarray(stored[row]).tobytes():
            stored[row] = others[at]
