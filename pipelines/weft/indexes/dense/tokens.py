"""Token embeddings of a generation's contents, in row order in one memory-mapped file (ING-19, RET-10).

They may not fit in memory, so they are read twice: their counts say where each content's go, then runs are copied.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft.domain.errors import CorruptionError, StoreError
from weft.indexes import schemas
from weft.indexes.rows import hashes_of, rows_of
from weft.indexes.shards import stacked

TOKENS_FILE = "tokens.npy"
OFFSETS_FILE = "token_offsets.npy"
PROJECTION_FILE = "projection.npy"
TOKEN_FILES = (TOKENS_FILE, OFFSETS_FILE, PROJECTION_FILE)
_ROWS = 4_096  # contents read at once: bounds memory, changes nothing else


class TokenStore:
    """Token embeddings of a generation's contents under one encoder; immutable, shared by threads."""

    def __init__(self, *folders: Path) -> None:
        """Open the files of every shard; CorruptionError where they do not belong together."""
        self._tokens = stacked([_mapped(folder / TOKENS_FILE) for folder in folders])
        self._offsets, *others = [_mapped(folder / OFFSETS_FILE) for folder in folders]
        for offsets in others:
            self._offsets = np.concatenate([self._offsets, self._offsets[-1] + offsets[1:]])
        # queries' tokens are multiplied by it, (width of the encoder's tokens, width stored)
        self.projection: np.ndarray = np.load(folders[0] / PROJECTION_FILE, allow_pickle=False)
        shape = (int(self._offsets[-1]), self.projection.shape[1])
        if self._tokens.shape != shape:
            raise CorruptionError(
                f"{folders[0]}: expected tokens of shape {shape}, found {self._tokens.shape}; rebuild"
            )

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @property
    def bytes_per_content(self) -> float:
        """Bytes stored for a content on average, offsets included."""
        tokens = self._tokens.shape[0] * self._tokens.shape[1] * self._tokens.dtype.itemsize
        return float(tokens + self._offsets.nbytes) / max(1, len(self))

    def span(self, first: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows [first, stop): how many tokens each has, and all their tokens, int8 (tokens, width)."""
        offsets = self._offsets[first : stop + 1]
        return np.diff(offsets), self._tokens[offsets[0] : offsets[-1]]

    def tokens(self, rows: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """Stored tokens of some contents, by row: int8 (tokens, width) each, directions of any length."""
        wanted = np.asarray(rows, dtype=np.int64)
        bounds = zip(self._offsets[wanted].tolist(), self._offsets[wanted + 1].tolist(), strict=True)
        return [self._tokens[start:end] for start, end in bounds]

    def gathered(self, rows: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same as one array, copied: all tokens, one content's after the other's, and how many each content has."""
        wanted = np.asarray(rows, dtype=np.int64)
        starts = self._offsets[wanted].astype(np.int64)
        counts = self._offsets[wanted + 1].astype(np.int64) - starts
        places = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return self._tokens[places], counts


def has_tokens(folder: Path) -> bool:
    """Whether an encoder's folder holds token embeddings."""
    return (folder / TOKENS_FILE).is_file()


class TokenRows(NamedTuple):
    """Content hashes, how many tokens each has, and all tokens one after another, int8 (tokens, width)."""

    names: np.ndarray
    counts: np.ndarray
    tokens: np.ndarray


@dataclass(frozen=True, slots=True)
class TokenSources:
    """Where the token embeddings of one encoder are found."""

    parts: Sequence[Path]  # folders that may hold tables of tokens
    # the encoder's folders in the generation before, if its tokens were made in the same way, with tables of contents
    inherited: Sequence[tuple[Path, Path]]
    encoder: str


def gather_tokens(sources: TokenSources, hashes: np.ndarray, out: Path) -> None:
    """Write the token store of one encoder, where the parts or else the generation before have token embeddings.

    A content met in two places keeps the longer tokens, of equally long ones those whose bytes sort first.
    """
    files = [path for part in sources.parts for path in sorted(part.glob("tokens*.parquet"))]
    files = [path for path in files if sources.encoder in _column(path, "encoder").to_pylist()]
    before = [(folder, contents) for folder, contents in sources.inherited if has_tokens(folder)]
    if not before and not files:
        return
    projection = before[0][0] / PROJECTION_FILE if before else projection_of(files[0])
    stores = [(TokenStore(folder), contents) for folder, contents in before]
    width = int(np.load(projection, allow_pickle=False).shape[1])
    counts = _counted(_sources(files, stores, sources.encoder, width=None), hashes, sources.encoder)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    shape = (int(offsets[-1]), width)
    stored = np.lib.format.open_memmap(out / TOKENS_FILE, mode="w+", dtype=np.int8, shape=shape)
    _fill(stored, offsets, _sources(files, stores, sources.encoder, width=width), hashes)
    stored.flush()
    np.save(out / OFFSETS_FILE, offsets)
    shutil.copyfile(projection, out / PROJECTION_FILE)


def _counted(sources: Iterable[TokenRows], hashes: np.ndarray, encoder: str) -> np.ndarray:
    """How many tokens each row has: the most that were found of it."""
    counts = np.full(len(hashes), -1, dtype=np.int64)
    for some in sources:
        rows = rows_of(some.names, hashes)
        np.maximum.at(counts, rows[rows >= 0], some.counts[rows >= 0])
    if (counts < 0).any():
        missing = hashes[int(np.flatnonzero(counts < 0)[0])].decode()
        raise StoreError(f"expected token embeddings of {encoder} for every content, found none for {missing}")
    return counts


def _fill(stored: np.ndarray, offsets: np.ndarray, sources: Iterable[TokenRows], hashes: np.ndarray) -> None:
    seen = np.zeros(len(hashes), dtype=bool)
    for names, counts, tokens in sources:
        rows = rows_of(names, hashes)
        starts = np.concatenate([[0], np.cumsum(counts)])
        wanted = np.flatnonzero(rows >= 0)
        wanted = wanted[counts[wanted] == offsets[rows[wanted] + 1] - offsets[rows[wanted]]]
        first = np.zeros(len(wanted), dtype=bool)
        first[np.unique(rows[wanted], return_index=True)[1]] = True
        fresh = first & ~seen[rows[wanted]]
        for one, last in _runs(wanted[fresh], rows):
            stored[offsets[rows[one]] : offsets[rows[last] + 1]] = tokens[starts[one] : starts[last + 1]]
        seen[rows[wanted]] = True
        for at in wanted[~fresh]:
            place = stored[offsets[rows[at]] : offsets[rows[at] + 1]]
            other = tokens[starts[at] : starts[at + 1]]
            if other.tobytes() < place.tobytes():
                place[:] = other


def _runs(wanted: np.ndarray, rows: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and last of each run of positions that are neighbours where they come from and where they go."""
    if len(wanted):
        breaks = np.flatnonzero((np.diff(wanted) != 1) | (np.diff(rows[wanted]) != 1))
        firsts, lasts = np.append(-1, breaks) + 1, np.append(breaks, len(wanted) - 1)
        yield from zip(wanted[firsts].tolist(), wanted[lasts].tolist(), strict=True)


def _sources(
    files: Sequence[Path], stores: Sequence[tuple[TokenStore, Path]], encoder: str, *, width: int | None
) -> Iterator[TokenRows]:
    """What every place has, a bounded number at once; without a width only the counts."""
    for store, contents in stores:
        yield from _of_store(store, contents)
    for path in files:
        yield from _of_part(path, encoder, width)


def _of_store(store: TokenStore, contents: Path) -> Iterator[TokenRows]:
    start = 0
    for batch in pq.ParquetFile(contents).iter_batches(batch_size=_ROWS, columns=["content_hash"]):
        stop = start + len(batch)
        yield TokenRows(hashes_of(batch["content_hash"]), *store.span(start, stop))
        start = stop


def _of_part(path: Path, encoder: str, width: int | None) -> Iterator[TokenRows]:
    names = ["content_hash", "encoder", "count", *([] if width is None else ["tokens"])]
    table = pq.read_table(path, columns=names)
    for batch in table.filter(pc.equal(table["encoder"], pa.scalar(encoder))).to_batches(max_chunksize=_ROWS):
        blobs: list[Any] = [] if width is None else batch["tokens"].to_pylist()
        tokens = np.frombuffer(b"".join(blobs), dtype=np.int8).reshape(-1, width or 1)
        yield TokenRows(hashes_of(batch["content_hash"]), batch["count"].to_numpy(), tokens)


def _mapped(path: Path) -> np.ndarray:
    # As a plain array: a slice of numpy's own class for mapped files costs fifty times as much.
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _column(path: Path, name: str) -> pa.ChunkedArray[Any]:
    return pq.read_table(path, columns=[name])[name]


def projection_of(path: Path) -> Path:
    """The file of the projection that a table of token embeddings was made with."""
    metadata: Any = pq.read_schema(path).metadata
    return Path(metadata[schemas.PROJECTION].decode())
