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
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from weft.domain.arrays import TermWeights
from weft.domain.errors import StoreError
from weft.indexes.dense.vectors import Near, hits_of, merged_near
from weft.indexes.rows import RowSet

if TYPE_CHECKING:
    from weft.indexes.dense.tokens import TokenStore
    from weft.indexes.dense.vectors import DenseIndex
    from weft.indexes.manifest import Manifest
    from weft.indexes.text.opened import Hits, OpenedTexts

Given = ParamSpec("Given")
Reply = TypeVar("Reply")

FAILED: ContextVar[dict[str, str] | None] = ContextVar("failed parts", default=None)
"""Why parts were left out of what is answered in this context, by name; None where nobody asks."""


@dataclass(frozen=True, slots=True)
class Indexes:
    """The opened indexes of some shards; row i means the same content in each."""

    text: OpenedTexts
    dense: Mapping[str, DenseIndex] = field(default_factory=dict)  # by encoder
    tokens: Mapping[str, TokenStore] = field(default_factory=dict)
    impacts: Any = None

    def close(self) -> None:
        """Release the files; closing twice is allowed."""
        self.text.close()
        if self.impacts is not None:
            self.impacts.close()


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


class Part(Protocol):
    """Where some shards of one generation are searched; shared by threads."""

    @property
    def name(self) -> str:
        """What an answer calls it."""

    @property
    def rows(self) -> range:
        """Its rows among those of the generation."""

    def begin(
        self, work: Callable[Concatenate[Indexes, Given], Reply], *arguments: Given.args, **named: Given.kwargs
    ) -> Callable[[], Reply]:
        """Begin a function of its indexes, one that can be imported; what is returned waits for the reply.

        The reply, or `StoreError` with why there is none, comes within the deadline of the part.
        """

    def close(self) -> None:
        """Release what of it is open in this process; closing twice is allowed."""


class LocalPart:
    """A part in this process."""

    def __init__(self, indexes: Indexes, rows: range, name: str = "here") -> None:
        self.name = name
        self.rows = rows
        self._indexes = indexes

    def begin(
        self, work: Callable[Concatenate[Indexes, Given], Reply], *arguments: Given.args, **named: Given.kwargs
    ) -> Callable[[], Reply]:
        """Begin nothing: whoever waits does it."""
        return lambda: work(self._indexes, *arguments, **named)

    def close(self) -> None:
        """Release the files; closing twice is allowed."""
        self._indexes.close()


def ask_all(
    parts: Sequence[Part], work: Callable[..., Reply], arguments: Sequence[tuple[Any, ...]]
) -> list[tuple[Part, Reply]]:
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


def allowed_of(part: Part, among: RowSet | None) -> Allowed:
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


def merged_hits(replies: Sequence[tuple[Part, Sequence[Hits]]], k: int) -> list[Hits]:
    """For each query the k best of what parts found for it, best first, ties by row."""
    merged = []
    for of_query in zip(*([(part, hits) for hits in each] for part, each in replies), strict=True):
        rows = np.concatenate([hits[0] + part.rows.start for part, hits in of_query])
        scores = np.concatenate([hits[1] for _, hits in of_query])
        order = np.lexsort((rows, -scores))[:k]
        merged.append((rows[order], scores[order]))
    return merged


def _nearest(
    indexes: Indexes, encoder: str, vectors: np.ndarray, k: int, allowed: Allowed, of: tuple[int, int]
) -> list[Near]:
    return indexes.dense[encoder].nearest(vectors, k, row_set(allowed), of=of)


def _vectors(indexes: Indexes, encoder: str, rows: np.ndarray) -> np.ndarray:
    return indexes.dense[encoder].vectors(rows)


def _isolation(indexes: Indexes, encoder: str) -> np.ndarray | None:
    return indexes.dense[encoder].isolation


def _gathered(indexes: Indexes, encoder: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return indexes.tokens[encoder].gathered(rows)


def _projection(indexes: Indexes, encoder: str) -> np.ndarray | None:
    return indexes.tokens[encoder].projection if encoder in indexes.tokens else None


def _weighed(indexes: Indexes, queries: Sequence[TermWeights], k: int, allowed: Sequence[Allowed]) -> Sequence[Hits]:
    hits: Sequence[Hits] = indexes.impacts.search_many(queries, k, list(map(row_set, allowed)))
    return hits


class SpreadVectors:
    """The vectors of one encoder, wherever parts have them; see `DenseIndex`."""

    def __init__(self, parts: Sequence[Part], encoder: str) -> None:
        self._parts = parts
        self._encoder = encoder
        self._contents = sum(len(part.rows) for part in parts)
        alone = [each for _, each in ask_all(parts, _isolation, [(encoder,)] * len(parts))]
        known = [each for each in alone if each is not None]
        self.isolation = np.concatenate(known) if len(known) == len(parts) else None

    def search(self, vectors: np.ndarray, k: int, among: RowSet | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows, int64 (n, k), and cosines, float32 (n, k), best first; row −1 pads."""
        of = self._contents, self._contents if among is None else len(among)
        arguments = [(self._encoder, vectors, k, allowed_of(part, among), of) for part in self._parts]
        replies = ask_all(self._parts, _nearest, arguments)
        by_query = zip(*([near.moved(part.rows.start) for near in nears] for part, nears in replies), strict=True)
        return hits_of([merged_near(nears, k) for nears in by_query], k)

    def vectors(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """Stored vectors of some rows: float32 (n_rows, dimension), unit rows; of a part that fails all 0."""
        wanted, replies = _of_rows(self._parts, _vectors, self._encoder, rows)
        vectors = np.zeros((len(wanted), next((each.shape[1] for _, each in replies), 0)), dtype=np.float32)
        for places, own in replies:
            vectors[places] = own
        return vectors


class SpreadTokens:
    """The token embeddings of one encoder, wherever parts have them; see `TokenStore`."""

    def __init__(self, parts: Sequence[Part], encoder: str, projection: np.ndarray) -> None:
        self._parts = parts
        self._encoder = encoder
        self.projection = projection

    def gathered(self, rows: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All tokens, one content's after the other's, and how many each has; of a part that fails there are none."""
        wanted, replies = _of_rows(self._parts, _gathered, self._encoder, rows)
        counts = np.zeros(len(wanted), dtype=np.int64)
        for places, (_, own) in replies:
            counts[places] = own
        starts = np.cumsum(counts) - counts
        tokens = np.zeros((int(counts.sum()), self.projection.shape[1]), dtype=np.int8)
        for places, (some, own) in replies:
            tokens[np.repeat(starts[places] - np.cumsum(own) + own, own) + np.arange(len(some))] = some
        return tokens, counts


class SpreadTerms:
    """Term weights, wherever parts have them; see `ImpactIndex`."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    def search_many(self, queries: Sequence[TermWeights], k: int, among: Sequence[RowSet | None]) -> Sequence[Hits]:
        """Rows and products per query, best first, ties by row."""
        arguments = [(queries, k, [allowed_of(part, each) for each in among]) for part in self._parts]
        return merged_hits(ask_all(self._parts, _weighed, arguments), k)


def tokens_of(parts: Sequence[Part], encoder: str) -> SpreadTokens | None:
    """The token embeddings of an encoder; None where none are kept."""
    projections = [each for _, each in ask_all(parts[:1], _projection, [(encoder,)])]
    return None if projections[0] is None else SpreadTokens(parts, encoder, projections[0])


def _of_rows(
    parts: Sequence[Part], work: Callable[..., Reply], encoder: str, rows: Sequence[int] | np.ndarray
) -> tuple[np.ndarray, list[tuple[np.ndarray, Reply]]]:
    """Rows, and of each part that has any and replies the places of its own among them, with its reply."""
    wanted = np.asarray(rows, dtype=np.int64)
    places = [np.flatnonzero((wanted >= part.rows.start) & (wanted < part.rows.stop)) for part in parts]
    asked = [(part, own) for part, own in zip(parts, places, strict=True) if len(own)]
    # Of no rows any part says how wide theirs are.
    asked = asked or [(parts[0], wanted[:0])]
    arguments = [(encoder, wanted[own] - part.rows.start) for part, own in asked]
    place_of = {part.name: own for part, own in asked}
    replies = ask_all([part for part, _ in asked], work, arguments)
    return wanted, [(place_of[part.name], reply) for part, reply in replies]
