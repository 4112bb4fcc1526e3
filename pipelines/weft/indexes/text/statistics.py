"""One BM25 for shards apart: what is looked for, weighed by corpus-wide statistics, with stock Lucene (SCL-8).

Lucene reads all shards of one part as one, and knows lengths and frequencies of these alone. BM25 of a term of
frequency f in a content of length l is

    idf · f / (f + k1 · (1 − b + b · l / average)).

So each term is boosted by idf(corpus) / idf(part), and a part is searched beside texts without words of any query, as
many and as long as it takes for the average lengths of its fields to be the corpus's. With one field k1 and b could say
the same; one searcher of Lucene has one pair of them, though, and there are four fields.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

_TRIED = 1_024  # numbers of texts among which the one is taken that leaves least to rounding


class FieldCounts(NamedTuple):
    """What BM25 needs to know of one field."""

    contents: int  # that have the field
    terms: int  # that all of these have in it, repeats counted


_NONE = FieldCounts(0, 0)

Term = tuple[str, str]
"""A field and one of its terms."""


@dataclass(frozen=True, slots=True)
class Words:
    """Terms of one field that are looked for, any of them or all side by side."""

    field: str
    terms: tuple[str, ...]
    weight: float = 1.0
    side_by_side: bool = False
    boosts: tuple[float, ...] = ()  # of each term; none where each has 1


@dataclass(frozen=True, slots=True)
class Joined:
    """What matches any of some, or all, by the sum of their scores."""

    parts: tuple[Words | Joined, ...]
    all_of_them: bool = False


Sought = Words | Joined


def terms_of(sought: Sought) -> Iterator[Term]:
    """Every term that is looked for."""
    if isinstance(sought, Words):
        return ((sought.field, term) for term in sought.terms)
    return chain.from_iterable(map(terms_of, sought.parts))


def idf(contents: int, holding: int) -> float:
    """How rare a term is: ln(1 + (contents − holding + 1/2) / (holding + 1/2))."""
    return math.log(1.0 + (contents - holding + 0.5) / (holding + 0.5))


def filling(part: FieldCounts, corpus: FieldCounts) -> FieldCounts:
    """Texts, and their terms, beside which a part has the corpus's average length; the corpus holds the part.

    Examples:
        >>> filling(FieldCounts(2, 10), FieldCounts(10, 100)), filling(FieldCounts(2, 10), FieldCounts(4, 20))
        (FieldCounts(contents=1, terms=20), FieldCounts(contents=0, terms=0))
        >>> filling(FieldCounts(2, 40), FieldCounts(10, 100))
        FieldCounts(contents=3, terms=10)
    """
    (own, own_terms), (all_of_them, all_terms) = part, corpus
    if not own or own * all_terms == own_terms * all_of_them:
        return FieldCounts(0, 0)

    def off(texts: int) -> tuple[float, int]:
        pooled = own + texts
        terms = max(texts, round(all_terms * pooled / all_of_them) - own_terms)
        return abs((own_terms + terms) * all_of_them / (pooled * all_terms) - 1.0), terms

    # A text has one term at least: beside long ones there have to be so many that short ones make up for them.
    surplus, short = own_terms * all_of_them - own * all_terms, all_terms - all_of_them
    least = max(1, -(-surplus // short)) if surplus > 0 and short else 1
    texts = min(range(least, min(least + _TRIED, max(least, all_of_them - own)) + 1), key=off)
    return FieldCounts(texts, off(texts)[1])


class CorpusStatistics:
    """The statistics of all parts together, and what they make of a search for one of them."""

    def __init__(self, parts: Sequence[Mapping[str, FieldCounts]]) -> None:
        """Take the counts of each part by field."""
        self._parts: Sequence[Mapping[str, FieldCounts]] = [defaultdict(lambda: _NONE, each) for each in parts]
        self.corpus: defaultdict[str, FieldCounts] = defaultdict(lambda: _NONE)
        for name, counts in chain.from_iterable(each.items() for each in parts):
            before = self.corpus[name]
            self.corpus[name] = FieldCounts(before.contents + counts.contents, before.terms + counts.terms)
        self.filled = [{name: filling(counts, self.corpus[name]) for name, counts in each.items()} for each in parts]

    def weighed(self, sought: Sought, part: int, frequencies: Mapping[Term, Sequence[int]]) -> Sought:
        """The same as it has to be looked for in a part, by how many contents of each part hold each term."""
        if isinstance(sought, Joined):
            return replace(sought, parts=tuple(self.weighed(each, part, frequencies) for each in sought.parts))
        name, contents = sought.field, self.corpus[sought.field].contents
        held = self._parts[part][name].contents + self.filled[part].get(name, _NONE).contents
        here = [idf(held, frequencies[name, term][part]) for term in sought.terms]
        everywhere = [idf(contents, sum(frequencies[name, term])) for term in sought.terms]
        if sought.side_by_side:
            return replace(sought, weight=sought.weight * sum(everywhere) / sum(here))
        return replace(sought, boosts=_boosts(everywhere, here, sought.weight))


def _boosts(wanted: Sequence[float], own: Sequence[float], weight: float) -> tuple[float, ...]:
    """What makes wanted idf of a part's own, to the last digit where single precision can, as Lucene multiplies."""
    idfs, held, whole = (np.array(each, dtype=np.float32) for each in (wanted, own, weight))
    nearby = (idfs / held).view(np.int32)[:, None] + np.arange(-4, 5, dtype=np.int32)
    tried = nearby.view(np.float32)
    off = np.abs(whole * tried * held[:, None] - (whole * idfs)[:, None])
    return tuple(np.take_along_axis(tried, off.argmin(axis=1)[:, None], axis=1)[:, 0].tolist())
