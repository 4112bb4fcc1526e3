"""Which passage of a document is shown: the best one, or one near it whose headings name what is asked for (RET-11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.indexes.chunk_store import ChunkStore
from weft.wording.questions import Question

Named = Callable[[int, Ints], Floats]
"""From a query's place in its batch and chunks, by place, to the share of it that the headings above each name."""

_HELD = 16_384  # chunks whose headings are remembered: 5 MB


class Headings:
    """What the headings of one generation name; shared by threads."""

    def __init__(self, chunks: ChunkStore) -> None:
        self._chunks = chunks
        self._words_above = lru_cache(_HELD)(self._read)

    def named(self, questions: Sequence[str]) -> Named:
        """How much of each question the headings above chunks name.

        Of the words of a question that say what it asks about, the share that stands in the headings, whatever their
        endings, synonyms counted as one: in [0, 1], 0 where a question has no such word.
        """
        asked = [Question(question).content for question in questions]

        def named(query: int, places: Ints) -> Floats:
            own = asked[query]
            shares = [len(own & self._words_above(place)) / max(1, len(own)) for place in places.tolist()]
            return np.array(shares, dtype=np.float64)

        return named

    def _read(self, place: int) -> frozenset[str]:
        return Question(" ".join(self._chunks.heading_path(place))).content


def unnamed(_query: int, places: Ints) -> Floats:
    """Nothing: of documents without headings, and where headings do not count."""
    return np.zeros(len(places))
