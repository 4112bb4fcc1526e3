"""One BM25 for shards in different processes: corpus-wide statistics with stock Lucene (SCL-8).

In one process Lucene reads all shards as one, and none of this is needed. A shard that is opened alone knows lengths
and document frequencies of its own contents only; what differs is put into the parameters that it is opened with, and
into the boosts of a query's terms. BM25 of a term of frequency f in a content of length l is

    idf · f / (f + k1 · (1 − b + b · l / average)),

so with r = average(shard) / average(corpus) a shard gives the corpus's score by k1′ = k1 · (1 − b) + k1 · b · r,
b′ = k1 · b · r / k1′ and a boost of idf(corpus) / idf(shard).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True, slots=True)
class FieldStatistics:
    """What BM25 needs to know of one field; adding is taking contents together."""

    contents: int  # that have the field
    terms: int  # that all of these have in it, repeats counted
    frequencies: Mapping[str, int]  # contents that hold a term, by those terms that are asked for

    def __add__(self, other: FieldStatistics) -> FieldStatistics:
        terms = self.frequencies.keys() | other.frequencies.keys()
        counts = {term: self.frequencies.get(term, 0) + other.frequencies.get(term, 0) for term in terms}
        return FieldStatistics(self.contents + other.contents, self.terms + other.terms, counts)

    @classmethod
    def of_all(cls, shards: Iterable[FieldStatistics]) -> FieldStatistics:
        """The corpus's, from those of its shards."""
        return reduce(FieldStatistics.__add__, shards, cls(0, 0, {}))

    @property
    def average(self) -> float:
        """Terms of a content; 1 where there is none, as Lucene has it."""
        return self.terms / self.contents if self.contents else 1.0

    def idf(self, term: str) -> float:
        """How rare a term is: ln(1 + (contents − holding + 1/2) / (holding + 1/2))."""
        holding = self.frequencies.get(term, 0)
        return math.log(1.0 + (self.contents - holding + 0.5) / (holding + 0.5))


def parameters(shard: FieldStatistics, corpus: FieldStatistics, *, k1: float, b: float) -> tuple[float, float]:
    """k1 and b that a shard's field is opened with, to give the scores of the corpus.

    Examples:
        >>> shard, corpus = FieldStatistics(2, 10, {}), FieldStatistics(10, 100, {})
        >>> parameters(shard, corpus, k1=1.0, b=0.5)
        (0.75, 0.3333333333333333)
    """
    ratio = shard.average / corpus.average if corpus.average else 1.0
    own = k1 * (1.0 - b) + k1 * b * ratio
    return own, k1 * b * ratio / own if own else 0.0


def boosts(shard: FieldStatistics, corpus: FieldStatistics) -> dict[str, float]:
    """What each term of a query weighs in a shard, to give the scores of the corpus."""
    return {term: corpus.idf(term) / shard.idf(term) for term in corpus.frequencies}
