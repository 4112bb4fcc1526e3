"""Vectors in row order: each content's vector from the parts or from the generation before, on disk from the start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft.domain.errors import StoreError
from weft.indexes.dense.isolation import Others, compared_rows, write_isolation
from weft.indexes.dense.samples import VECTORS_FILE, mapped_vectors, read_samples
from weft.indexes.dense.tokens import TOKEN_FILES, TokenSources, TokenStore, gather_tokens, has_tokens, projection_of
from weft.indexes.manifest import CHUNKS_FOLDER, VECTORS_FOLDER
from weft.indexes.rows import HASH, hashes_of, rows_of
from weft.indexes.settings import IsolationSettings
from weft.indexes.shards import take_over
from weft.runtime.storage.run_files import Brought

_ROWS = 8_192  # rows copied at once: bounds memory, changes nothing else


@dataclass(frozen=True, slots=True)
class DenseTask:
    """One encoder's vectors in one shard, to be put in row order."""

    parts: tuple[Path, ...]  # folders that may hold tables of vectors and of tokens
    # shards of the generation before that unchanged contents are taken from; its vectors were made in the same way
    base: tuple[Path, ...]
    same: Path | None  # the one of them that holds just the contents of this shard
    shard: Path  # whose contents they are of
    name: str  # of the folder of the encoder's files in every shard
    work: Path  # folder for what is needed until the generation is complete
    encoder: str
    dimension: int
    number: int = 0  # of the shard

    @property
    def reads(self) -> Iterator[Brought]:
        """What was cut for the shard, and what its token embeddings were made with."""
        yield from map(Brought, self.parts)
        made_with = (projection_of(path) for part in self.parts for path in part.glob("tokens*.parquet"))
        yield from (Brought(path) for path in made_with if not path.exists())

    @property
    def folder(self) -> Path:
        """Where the encoder's files go."""
        return self.shard / VECTORS_FOLDER / self.name

    @property
    def inherited(self) -> list[tuple[Path, Path]]:
        """The encoder's folders in the generation before, each with the table of contents."""
        return [(shard / VECTORS_FOLDER / self.name, contents_of(shard)) for shard in self.base]


class Gathered(NamedTuple):
    """What came together in a shard."""

    token_bytes: float  # of all its token embeddings
    stayed: int  # contents of the generation before that are among its own


def gather(task: DenseTask) -> Gathered:
    """Write an encoder's vectors and tokens; running it again writes the same."""
    hashes = _hashes_on_disk(task)
    if task.same is not None:
        taken = [f"{VECTORS_FOLDER}/{task.name}/{name}" for name in (VECTORS_FILE, *TOKEN_FILES)]
        take_over(task.same, task.shard, [name for name in taken if (task.same / name).exists()])
    else:
        gather_vectors(task, hashes)
        gather_tokens(TokenSources(task.parts, task.inherited, task.encoder), hashes, task.folder)
    token_bytes = TokenStore(task.folder).bytes_per_content * len(hashes) if has_tokens(task.folder) else 0.0
    stayed = 0
    for shard in task.base:
        batches = pq.ParquetFile(contents_of(shard)).iter_batches(batch_size=_ROWS, columns=["content_hash"])
        stayed += sum(int((rows_of(hashes_of(batch["content_hash"]), hashes) >= 0).sum()) for batch in batches)
    return Gathered(token_bytes, stayed)


def contents_of(shard: Path) -> Path:
    """The table of contents of a shard."""
    return shard / CHUNKS_FOLDER / "contents.parquet"


@dataclass(frozen=True, slots=True)
class IsolationTask:
    """How much alone the contents of one shard stand among those of all."""

    folder: Path
    number: int  # of the shard
    counts: tuple[int, ...]  # contents of all shards
    samples: tuple[Path, ...]  # files of the vectors that each is compared with
    settings: IsolationSettings

    @property
    def reads(self) -> list[Brought]:
        """The vectors that each is compared with."""
        return [Brought(file) for file in self.samples]


def isolate(task: IsolationTask) -> None:
    """Write it beside their vectors."""
    others = Others(compared_rows(sum(task.counts), task.settings), read_samples(task.samples))
    first = sum(task.counts[: task.number])
    write_isolation(task.folder, mapped_vectors(task.folder), task.settings, others, first)


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
    contents = pq.ParquetFile(contents_of(task.shard))
    rows = contents.metadata.num_rows
    if not rows:
        return np.empty(0, dtype=HASH)
    task.work.mkdir(parents=True, exist_ok=True)
    path = task.work / f"{task.shard.name}-{task.name}.hashes"
    hashes = np.memmap(path, dtype=HASH, mode="w+", shape=(rows,))
    start = 0
    for batch in contents.iter_batches(batch_size=_ROWS, columns=["content_hash"]):
        hashes[start : start + len(batch)] = hashes_of(batch["content_hash"])
        start += len(batch)
    return hashes


def _sources(task: DenseTask) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Hashes and vectors of every place that has some, a bounded number at once."""
    for folder, contents in task.inherited:
        yield from _inherited(contents, folder)
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
