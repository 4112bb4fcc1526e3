"""Contents of a generation by row: what a filtered search may find (RET-4), samples of all, and hashes as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.ids import ContentHash

_TOGETHER = 1_024  # hashes read at once while iterating

HASH = np.dtype("S64")
"""One content hash, 64 hex digits."""


@dataclass(frozen=True, eq=False)
class RowSet:
    """Contents that a filter lets through; made once per filter, shared by threads, compared by identity."""

    mask: np.ndarray  # bool (contents,)

    @cached_property
    def rows(self) -> np.ndarray:
        """The rows, int64, ascending."""
        return np.flatnonzero(self.mask)

    def __len__(self) -> int:
        return len(self.rows)


def evenly_spaced(count: int, size: int) -> np.ndarray:
    """At most `size` of so many rows, int64, ascending: deterministic, and fair because rows are ordered by a hash.

    Examples:
        >>> evenly_spaced(10, 4).tolist(), evenly_spaced(3, 4).tolist(), evenly_spaced(0, 4).tolist()
        ([0, 3, 6, 9], [0, 1, 2], [])
    """
    return np.unique(np.linspace(0, count - 1, min(count, size)).astype(np.int64))


def hashes_of(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> np.ndarray:
    """The hashes of a column of strings."""
    return np.array(column.to_pylist(), dtype=HASH)


class Hashes(Sequence[ContentHash]):
    """Sorted content hashes, 64 bytes each: read as texts one at a time, and searched as they are stored."""

    def __init__(self, stored: np.ndarray) -> None:
        self.stored = stored  # HASH (contents,)

    def __len__(self) -> int:
        return len(self.stored)

    @overload
    def __getitem__(self, row: int) -> ContentHash: ...

    @overload
    def __getitem__(self, row: slice) -> list[ContentHash]: ...

    def __getitem__(self, row: int | slice) -> ContentHash | list[ContentHash]:
        """The hash at a row, or those of a slice."""
        if isinstance(row, slice):
            return [ContentHash(each.decode()) for each in self.stored[row].tolist()]
        return ContentHash(self.stored[row].decode())

    def __iter__(self) -> Iterator[ContentHash]:
        for start in range(0, len(self), _TOGETHER):
            yield from self[start : start + _TOGETHER]

    def rows_of(self, hashes: Sequence[str]) -> np.ndarray:
        """Row of each hash, −1 where it is none of these, int64 (n,)."""
        # Of the stored width, or all that is stored would be widened for the search; what is longer is none of these.
        names = [name if len(name := each.encode("ascii", "replace")) <= HASH.itemsize else b"" for each in hashes]
        return rows_of(np.array(names, dtype=HASH), self.stored)


def read_hashes(file: pq.ParquetFile) -> np.ndarray:
    """The hashes of a table of contents, in its order."""
    hashes = np.empty(file.metadata.num_rows, dtype=HASH)
    start = 0
    for batch in file.iter_batches(columns=["content_hash"]):
        hashes[start : start + len(batch)] = hashes_of(batch["content_hash"])
        start += len(batch)
    return hashes


def rows_of(names: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """The row of each name in sorted hashes; −1 where there is none."""
    if not len(hashes):
        return np.full(len(names), -1, dtype=np.int64)
    rows = np.minimum(np.searchsorted(hashes, names), len(hashes) - 1)
    return np.where(hashes[rows] == names, rows, -1)
