"""Which passage of a document is shown: the best one, or one near it whose headings name what is asked for (RET-11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.indexes.chunk_store import ChunkStore
from weft.learning.priors import NearPrior
from weft.retrieval.query.wording import Lexicon, Wording
from weft.retrieval.ranking.context import RankingContext

Named = Callable[[int, Ints], Floats]
"""From a query's place in its batch and chunks, by place, to the share of it that the headings above each name."""

_HELD = 16_384  # chunks whose headings are remembered: 5 MB


class _Reader(NamedTuple):
    prior: NearPrior
    lexicon: Lexicon
    words_above: Callable[[int], frozenset[str]]


class Headings:
    """What the headings of one generation name; shared by threads."""

    def __init__(self, chunks: ChunkStore) -> None:
        self._chunks = chunks
        self._reader: _Reader | None = None

    def named(self, contexts: Sequence[RankingContext]) -> Named:
        """How much of each question the headings above chunks name.

        Of the words of a question that say what it asks about, the share that stands in the headings, whatever their
        endings, synonyms counted as one: in [0, 1], 0 where a question has no such word.
        """
        reader = self._reading(contexts[0].reading.beliefs.near)
        asked = [Wording(each.plan.text, reader.lexicon).content for each in contexts]

        def named(query: int, places: Ints) -> Floats:
            own = asked[query]
            shares = [len(own & reader.words_above(place)) / max(1, len(own)) for place in places.tolist()]
            return np.array(shares, dtype=np.float64)

        return named

    def _reading(self, prior: NearPrior) -> _Reader:
        reader = self._reader
        if reader is None or reader.prior is not prior:
            lexicon = Lexicon(prior)
            reader = self._reader = _Reader(prior, lexicon, lru_cache(_HELD)(partial(self._words_above, lexicon)))
        return reader

    def _words_above(self, lexicon: Lexicon, place: int) -> frozenset[str]:
        return Wording(" ".join(self._chunks.heading_path(place)), lexicon).content


def unnamed(_query: int, places: Ints) -> Floats:
    """Nothing: of documents without headings, and where headings do not count."""
    return np.zeros(len(places))
