"""How much of what a query asks for texts say, by its rare words (RET-15)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from weft.domain.matching import Coverage


class QueryWord(NamedTuple):
    """A word of a query."""

    word: str  # as it was typed
    terms: Sequence[str]  # what it is indexed by
    holding: int  # how many contents hold all of them, about: as many as hold the rarest


def coverage_of(words: Iterable[QueryWord], texts: Iterable[Collection[str]], contents: int) -> Coverage:
    """What texts say of a query; a word weighs idf = ln((contents + 1) / (holding + ½))."""
    weighed = [(each, math.log((contents + 1.0) / (min(each.holding, contents) + 0.5))) for each in words if each.terms]
    total = sum(weight for _, weight in weighed)
    if total <= 0.0:
        return Coverage(0.0, 0.0)
    sums = [sum(weight for each, weight in weighed if all(term in text for term in each.terms)) for text in texts]
    missing = [(each.word, weight) for each, weight in weighed if each.holding == 0]
    unknown = sum(weight for _, weight in missing)
    return Coverage(max(sums, default=0.0) / total, unknown / total, tuple(word for word, _ in missing))
