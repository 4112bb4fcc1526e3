"""The indexes of one generation, wherever its parts are: what they find is merged as if it were one index (SCL-12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from weft.domain.arrays import TermWeights
from weft.indexes.dense.tokens import TokenStore
from weft.indexes.dense.vectors import DenseIndex, Near, hits_of, merged_near
from weft.indexes.parts import Allowed, Hits, IndexPart, LocalPart, PartFacts, allowed_of, ask_all, merged_hits, row_set
from weft.indexes.rows import RowSet
from weft.indexes.text.opened import OpenedTexts

Reply = TypeVar("Reply")


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


def facts_of(indexes: Indexes) -> PartFacts:
    """What is known of a part that has these indexes."""
    return PartFacts(
        indexes.text.counts(),
        {name: index.isolation for name, index in indexes.dense.items()},
        {name: store.projection for name, store in indexes.tokens.items()},
    )


def local_part(indexes: Indexes, rows: range, name: str = "here") -> LocalPart:
    """A part that these indexes are."""
    return LocalPart(indexes, rows, facts_of(indexes), name)


def _nearest(
    indexes: Indexes, encoder: str, vectors: np.ndarray, k: int, allowed: tuple[Allowed, tuple[int, int]]
) -> list[Near]:
    return indexes.dense[encoder].nearest(vectors, k, row_set(allowed[0]), of=allowed[1])


def _vectors(indexes: Indexes, encoder: str, rows: np.ndarray) -> np.ndarray:
    return indexes.dense[encoder].vectors(rows)


def _gathered(indexes: Indexes, encoder: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return indexes.tokens[encoder].gathered(rows)


def _weighed(indexes: Indexes, queries: Sequence[TermWeights], k: int, allowed: Sequence[Allowed]) -> Sequence[Hits]:
    hits: Sequence[Hits] = indexes.impacts.search_many(queries, k, list(map(row_set, allowed)))
    return hits


class SpreadVectors:
    """The vectors of one encoder, wherever parts have them; see `DenseIndex`."""

    def __init__(self, parts: Sequence[IndexPart], encoder: str) -> None:
        self._parts = parts
        self._encoder = encoder
        self._contents = sum(len(part.rows) for part in parts)
        alone = [part.facts.isolation.get(encoder) for part in parts]
        measured = [each for each in alone if each is not None]
        self.isolation = np.concatenate(measured) if len(measured) == len(parts) else None

    def search(self, vectors: np.ndarray, k: int, among: RowSet | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows, int64 (n, k), and cosines, float32 (n, k), best first; row −1 pads."""
        of = self._contents, self._contents if among is None else len(among)
        arguments = [(self._encoder, vectors, k, (allowed_of(part, among), of)) for part in self._parts]
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

    def __init__(self, parts: Sequence[IndexPart], encoder: str) -> None:
        self._parts = parts
        self._encoder = encoder
        self.projection = parts[0].facts.projections[encoder]

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

    def __init__(self, parts: Sequence[IndexPart]) -> None:
        self._parts = parts

    def search_many(self, queries: Sequence[TermWeights], k: int, among: Sequence[RowSet | None]) -> Sequence[Hits]:
        """Rows and products per query, best first, ties by row."""
        arguments = [(queries, k, [allowed_of(part, each) for each in among]) for part in self._parts]
        return merged_hits(ask_all(self._parts, _weighed, arguments), k)


def _of_rows(
    parts: Sequence[IndexPart], work: Callable[..., Reply], encoder: str, rows: Sequence[int] | np.ndarray
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
