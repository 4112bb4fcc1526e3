"""Parts of a generation, each some of its shards with all their indexes, searched as one wherever they are (SCL-12).

A part is asked by a function of its opened indexes. One in this process runs it; one elsewhere is sent its name and
arguments. What fails or is too slow is left out, and named in `FAILED`. A part numbers its own rows from 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np

from weft.domain.errors import StoreError
from weft.indexes.manifest import Manifest
from weft.indexes.rows import RowSet

Hits = tuple[np.ndarray, np.ndarray]
"""Rows, int64 (n,), and scores, float64 (n,), best first, ties by row."""

Reply = TypeVar("Reply")

FAILED: ContextVar[dict[str, str] | None] = ContextVar("failed parts", default=None)
"""Why parts were left out of what is answered in this context, by name; None where nobody asks."""


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What is known of a part once it is open."""

    counts: Mapping[str, tuple[int, int]]  # how many contents have each field, and how many terms in it
    isolation: Mapping[str, np.ndarray | None] = field(default_factory=dict)  # by encoder; see `DenseIndex`
    # what token states of queries are multiplied by, by encoder that token embeddings are kept of
    projections: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Share:
    """Which shards of any generation a part has: the ranges of `number`, from 0, of so many parts."""

    number: int
    of: int

    def shards(self, manifest: Manifest) -> slice:
        """Its shards of a generation; none where that has fewer shards than there are parts."""
        shards = max(1, len(manifest.shards))
        return slice(self.number * shards // self.of, (self.number + 1) * shards // self.of)

    def rows(self, manifest: Manifest) -> range:
        """The rows of these."""
        counts = [each.counts["contents"] for each in manifest.shards] or [manifest.counts["contents"]]
        some = self.shards(manifest)
        return range(sum(counts[: some.start]), sum(counts[: some.stop]))

    def has(self, manifest: Manifest, file: str) -> bool:
        """Whether a file of a generation is an index of these."""
        some, matched = self.shards(manifest), _INDEX_FILE.match(file)
        return matched is not None and some.start <= int(matched[1] or 0) < some.stop


WHOLE = Share(0, 1)
"""All shards."""


def is_table(file: str) -> bool:
    """Whether a file of a generation is none that parts have: a table, or of the graph.

    Examples:
        >>> [is_table(file) for file in ("vectors/a/vectors.npy", "shards/0001/text/lucene/_0.cfs")]
        [False, False]
        >>> [is_table(file) for file in ("chunks/documents.parquet", "shards/0001/chunks/chunks.parquet")]
        [True, True]
    """
    return _INDEX_FILE.match(file) is None


_INDEX_FILE = re.compile(r"(?:shards/(\d+)/)?(?:vectors|text)/")


class IndexPart(Protocol):
    """Where some shards of one generation are searched; shared by threads."""

    @property
    def name(self) -> str:
        """What an answer calls it."""

    @property
    def rows(self) -> range:
        """Its rows among those of the generation."""

    @property
    def facts(self) -> PartFacts:
        """What is known of it."""

    def begin(self, work: Callable[..., Reply], *arguments: Any) -> Callable[[], Reply]:
        """Begin a function of its opened indexes and of arguments; it can be imported, and its result waited for.

        The reply, or `StoreError` with why there is none, comes within the deadline of the part.
        """

    def close(self) -> None:
        """Release what of it is open in this process; closing twice is allowed."""


class Closable(Protocol):
    """Opened indexes."""

    def close(self) -> None:
        """Release the files; closing twice is allowed."""


class LocalPart:
    """A part in this process."""

    def __init__(self, indexes: Closable, rows: range, facts: PartFacts, name: str = "here") -> None:
        self.name = name
        self.rows = rows
        self.facts = facts
        self._indexes = indexes

    def begin(self, work: Callable[..., Reply], *arguments: Any) -> Callable[[], Reply]:
        """Begin nothing: whoever waits does it."""
        return lambda: work(self._indexes, *arguments)

    def close(self) -> None:
        """Release the files; closing twice is allowed."""
        self._indexes.close()


def ask_all(
    parts: Sequence[IndexPart], work: Callable[..., Reply], arguments: Sequence[tuple[Any, ...]]
) -> list[tuple[IndexPart, Reply]]:
    """The parts that reply, all asked at once, each with arguments of its own; others are named in `FAILED`.

    Raises:
        StoreError: None replies.
    """
    waits = [(part, part.begin(work, *own)) for part, own in zip(parts, arguments, strict=True)]
    replies, failed = [], dict[str, str]()
    for part, wait in waits:
        try:
            replies.append((part, wait()))
        except StoreError as error:
            failed[part.name] = str(error)
    if not replies and failed:
        raise StoreError("; ".join(f"{name}: {why}" for name, why in failed.items()))
    if (noted := FAILED.get()) is not None:
        noted.update(failed)
    return replies


@contextmanager
def noting_failures(noted: dict[str, str]) -> Iterator[None]:
    """Note what fails inside, in this thread and in those that are given its context, by name of the part."""
    token = FAILED.set(noted)
    try:
        yield
    finally:
        FAILED.reset(token)


Allowed = RowSet | tuple[bytes, int] | None
"""The rows of a part that a filter lets through: as they are, or their bits and how many there are; None for all."""


def allowed_of(part: IndexPart, among: RowSet | None) -> Allowed:
    """What a filter lets through of a part; of one that holds everything the very set, which is known by identity."""
    if among is None or len(part.rows) == len(among.mask):
        return among
    return np.packbits(among.mask[part.rows.start : part.rows.stop]).tobytes(), len(part.rows)


def row_set(allowed: Allowed) -> RowSet | None:
    """The rows again; the same bits are the same set."""
    return _unpacked(*allowed) if isinstance(allowed, tuple) else allowed


@lru_cache(maxsize=64)
def _unpacked(bits: bytes, count: int) -> RowSet:
    return RowSet(np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=count).astype(bool))


def merged_hits(replies: Sequence[tuple[IndexPart, Sequence[Hits]]], k: int) -> list[Hits]:
    """For each query the k best of what parts found for it, best first, ties by row."""
    merged = []
    for of_query in zip(*([(part, hits) for hits in each] for part, each in replies), strict=True):
        rows = np.concatenate([hits[0] + part.rows.start for part, hits in of_query])
        scores = np.concatenate([hits[1] for _, hits in of_query])
        order = np.lexsort((rows, -scores))[:k]
        merged.append((rows[order], scores[order]))
    return merged
