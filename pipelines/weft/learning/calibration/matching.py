"""From how well a content matches a query to the probability that it is good, and when to say that nothing is (RET-15).

A verdict on a result is counted by the result's match and by its rank. The match is cosine, share of words and
nearness: none depends on weights, fusion or other candidates. The rank says who came to judge it; a probability does
not depend on it. So the curve keeps its meaning while all of these change, and where one channel is silent, or tokens
are not compared, the same counts, summed over what is not known, give the curve of the rest. See `fit` for how curves
are fitted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import bdtr, expit

from weft.domain.arrays import Floats
from weft.domain.errors import StoreError
from weft.domain.matching import MatchFeatures
from weft.learning.evidence import MICRO, Evidence, day_of
from weft.learning.observe.matches import ASKED, MATCH, MEASURED, MEASURES, match_cell, rarest_class, values_of
from weft.learning.priors import Priors
from weft.learning.recency import Discount


@dataclass(frozen=True, slots=True)
class MatchBins:
    """Verdicts by match and rank."""

    match: Floats  # float64 (n, 3), meaning, words and nearness in the middle of their bins; NaN where not known
    rank: Floats  # float64 (n,) >= 1, where the results stood, in the middle of their class
    good: Floats  # both float64 (n,) >= 0, observations
    bad: Floats
    # float64 (n,), how many of the results that were shown one verdict stands for, which was asked for by chance; 0
    # where nobody asked
    stands_for: Floats

    @classmethod
    def of_shown(cls, match: Floats, good: Floats, bad: Floats) -> Self:
        """What is known of everything that was shown, wherever it stood."""
        one = np.ones(len(match))
        return cls(match, one, good, bad, one)

    def with_values(self, columns: Sequence[int]) -> MatchBins:
        """Those of which these columns are known."""
        rows = ~np.isnan(self.match[:, columns]).any(axis=1)
        return MatchBins(self.match[rows], self.rank[rows], self.good[rows], self.bad[rows], self.stands_for[rows])

    def with_counts(self, good: Floats, bad: Floats) -> MatchBins:
        """The same bins with other verdicts in them."""
        return replace(self, good=good, bad=bad)

    def without_rank(self) -> MatchBins:
        """The same with nothing told of where results stood."""
        return replace(self, rank=np.ones_like(self.rank))

    @property
    def volunteered(self) -> Floats:
        """1 where nobody asked for the verdicts, else 0, (n,)."""
        return np.asarray(self.stands_for == 0.0, dtype=np.float64)

    @property
    def weight(self) -> Floats:
        """What one verdict of each bin counts, (n,): 1 unasked, and in proportion to what it stands for where asked.

        All asked ones together count as many verdicts as would tell as much, were each worth the same: (Σw)² / Σw²
        (Kish 1965).
        """
        mass = self.good + self.bad
        squares = float(np.sum(mass * self.stands_for**2))
        share = float(np.sum(mass * self.stands_for)) / squares if squares else 0.0
        return self.volunteered + share * self.stands_for

    @property
    def observations(self) -> float:
        """How many verdicts there are."""
        return float(self.good.sum() + self.bad.sum())


def match_bins(evidence: Evidence, priors: Priors, *, now: float) -> MatchBins:
    """The verdicts by match in the evidence as they count at `now`, of all domains together.

    However small a chance an impression states, a verdict stands for `verdicts.stands_for` results at most: whoever
    could make one up would outweigh all others with it (FBK-11).
    """
    discount = Discount(day_of(now), priors.recency.project_half_life_days)
    rarest = rarest_class(priors.verdicts.stands_for)
    masses: dict[tuple[float, ...], list[int]] = {}
    for key, micro in evidence.counts.items():
        if key.parameter in (MATCH, ASKED):
            cell, bad = match_cell(key.bin, rarest)
            masses.setdefault(cell, [0, 0])[bad] += discount(micro, key.day)
    rows = [(*cell, *(max(each, 0) for each in sides)) for cell, sides in masses.items()]
    table = np.array(sorted(row for row in rows if row[-2] + row[-1] > 0), dtype=np.float64).reshape(-1, MEASURES + 4)
    match = np.where(table[:, :MEASURES] < 0.0, np.nan, table[:, :MEASURES])
    rank, stands_for, good, bad = table[:, MEASURES:].T
    return MatchBins(match, rank, good / MICRO, bad / MICRO, stands_for)


@dataclass(frozen=True, slots=True)
class MatchCurve:
    """logit P(good) = meaning · m + words · w + near · n + intercept, which never falls with any."""

    meaning: float  # >= 0; 0 for what the curve does without
    words: float
    intercept: float
    near: float = 0.0

    def log_odds(self, match: Floats) -> Floats:
        """Log-odds of a good result, of matches (n, 3); columns that the curve does without may be NaN."""
        slopes = np.array([self.meaning, self.words, self.near])
        return np.asarray(np.nan_to_num(match) @ slopes + self.intercept)

    def probabilities(self, match: Floats) -> Floats:
        """P(good) of matches (n, 3); columns that the curve does without may be NaN."""
        return np.asarray(expit(self.log_odds(match)))


@dataclass(frozen=True, slots=True)
class Answering:
    """From when on an answer counts as one.

    Nearness decides where it is known, else the cosine: words of queries that have no answer stand in texts, too, and
    with them fewer answers pass at the same bound (docs/measurements.md).
    """

    meaning: float | None  # what the greatest cosine has to exceed
    words: float | None  # what the greatest share of words has to exceed where the dense channel is silent
    bound: float  # how often at most a query like the probes of any one kind, which have no answer, does
    probes: int  # how many queries of the least kind that rests on
    near: float | None = None  # what the greatest nearness has to exceed; None where tokens are not kept
    # probability that `bound` holds here, over the draw of the probes; None where it was measured on the probes
    confidence: float | None = None
    # how often at most a question that has an answer falls short; None where that was not asked
    marked: float | None = None

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Self:
        """From JSON's own types; TypeError where the value is not one of its kind."""
        # Former versions state a curve beside the thresholds.
        return cls(**{name: each for name, each in value.items() if name != "curve"})

    def compared(self, match: MatchFeatures | None) -> tuple[float, float] | None:
        """A match and what it has to exceed; None where that cannot be told."""
        if match is None:
            return None
        if match.late_interaction is not None and self.near is not None:
            return match.late_interaction, self.near
        pair = (match.dense, self.meaning) if match.dense is not None else (match.lexical, self.words)
        return None if pair[0] is None or pair[1] is None else (pair[0], pair[1])


CURVES: Mapping[str, tuple[int, ...]] = {
    "near_words": (1, 2),
    "near": (2,),
    "both": (0, 1),
    "meaning": (0,),
    "words": (1,),
}
"""The columns of a match that each curve rests on. Nearness is half the cosine, and stands in for it where known."""


@dataclass(frozen=True, slots=True)
class MatchCalibration:
    """The curves of every set of channels, each None where good and bad do not separate."""

    both: MatchCurve | None  # Over cosine and words, the cosine alone, words alone
    meaning: MatchCurve | None
    words: MatchCurve | None
    answering: Answering | None = None
    # Over nearness and words, and nearness alone; where there are none, those over the cosine tell
    near_words: MatchCurve | None = None
    near: MatchCurve | None = None

    def probability(self, match: MatchFeatures | None) -> float | None:
        """P(good) of a result that matches like this; None where that cannot be told."""
        if match is None or (curve := self._curve(match)) is None:
            return None
        values = np.array([[np.nan if value is None else value for value in values_of(match)]])
        return float(curve.probabilities(values)[0])

    def _curve(self, match: MatchFeatures) -> MatchCurve | None:
        if match.dense is None:
            return None if match.lexical is None else self.words
        nearer, plain = (self.near, self.meaning) if match.lexical is None else (self.near_words, self.both)
        return plain if match.late_interaction is None or nearer is None else nearer

    def to_json_value(self) -> dict[str, Any]:
        """In JSON's own types."""
        return asdict(self)

    @classmethod
    def from_json_value(cls, value: Mapping[str, Any]) -> Self:
        """What `to_json_value` gave.

        Raises:
            StoreError: The value is not one of its kind.
        """
        try:
            curves = {name: value[name] and MatchCurve(**value[name]) for name in CURVES}
            return cls(**curves, answering=value["answering"] and Answering.of(value["answering"]))
        except (KeyError, TypeError) as error:
            raise StoreError(f"calibration: expected curves {sorted(CURVES)} of matches, found {value!r}") from error


def answering_from(kinds: Sequence[Sequence[MatchFeatures]], *, bound: float, confidence: float) -> Answering | None:
    """The least threshold that surely enough few queries of any of these kinds, which have no answer, exceed.

    An upper tolerance limit (Wilks 1941). This is split conformal prediction that holds for the given probes, not only
    on average over draws of them (Vovk 2012). It is the k-th smallest of n values, with k the least that has
    P(Binomial(n, 1 − bound) < k) >= confidence. With probability `confidence` at most the share `bound` of all such
    queries exceeds it, whatever their distribution. Of several kinds the highest threshold holds.

    Returns:
        None where the probes are too few: n has to be at least ln(1 − confidence) / ln(1 − bound).
    """
    meaning, words, near = (
        _threshold([[getattr(match, scale) for match in kind] for kind in kinds], bound, confidence)
        for scale in MEASURED
    )
    if meaning is None and words is None:
        return None
    return Answering(meaning, words, bound, min(len(kind) for kind in kinds), near, confidence)


def answering_of(
    own: Sequence[MatchFeatures],
    others: Sequence[MatchFeatures],
    *,
    marked: float,
    common: MatchFeatures = MatchFeatures(),  # noqa: B008  a value
) -> Answering | None:
    """The greatest threshold that at most a share of a store's own questions falls short of, and `common` at most.

    Where `common` names none, what is the store's own holds alone.

    Returns:
        None where questions are too few for it: there have to be 1 / `marked`.

    Examples:
        >>> own = [MatchFeatures(dense=each) for each in (0.5, 0.4, 0.7, 0.6)]
        >>> answering_of(own, [MatchFeatures(dense=0.3), MatchFeatures(dense=0.45)], marked=0.25)
        Answering(meaning=0.4, words=None, bound=0.5, probes=2, near=None, confidence=None, marked=0.25)
        >>> answering_of(own, [], marked=0.25, common=MatchFeatures(dense=0.3)).meaning
        0.3
        >>> answering_of(own, [], marked=0.2)
    """
    meaning, words, near = (
        _bounded(_least([getattr(match, scale) for match in own], marked), getattr(common, scale)) for scale in MEASURED
    )
    if meaning is None and words is None:
        return None
    fitted = Answering(meaning, words, 0.0, len(others), near, marked=marked)
    passed = [pair is not None and pair[0] > pair[1] for pair in map(fitted.compared, others)]
    return replace(fitted, bound=sum(passed) / len(passed) if passed else 1.0)


def _bounded(own: float | None, common: float | None) -> float | None:
    return own if own is None or common is None else min(own, common)


def _least(values: Sequence[float | None], marked: float) -> float | None:
    """The greatest value that no more than a share of all is at or below; None where one is not known, or none is."""
    ordered = sorted(value for value in values if value is not None)
    most = int(marked * len(values))
    if len(ordered) < len(values):
        return None
    return next((value for value in reversed(ordered[:most]) if bisect_right(ordered, value) <= most), None)


def _threshold(kinds: Sequence[Sequence[float | None]], bound: float, confidence: float) -> float | None:
    """None where a value is not known, or a kind has too few of them."""
    thresholds = []
    for kind in kinds:
        ordered = sorted(value for value in kind if value is not None)
        below = bdtr(np.arange(len(kind)), len(kind), 1.0 - bound)  # P(Binomial(n, 1 − bound) <= at)
        at = int(np.searchsorted(below, confidence))
        if len(ordered) < len(kind) or at == len(kind):
            return None
        thresholds.append(ordered[at])
    return max(thresholds, default=None)


Probe = Callable[[], Sequence[Sequence[MatchFeatures]]]
"""Asks queries that have no answer; by kind, the best match of each on each scale."""
