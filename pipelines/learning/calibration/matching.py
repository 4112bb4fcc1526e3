"""From how well a content matches a query to the probability that it is good, and when to say that nothing is (RET-15).

A verdict on a result is counted by the result's match: cosine, share of words and nearness, which do not depend on
weights, fusion or what else was found; and by where it stood, which says who came to judge it, and is no part of what
a probability rests on. So the curve keeps its meaning while all of these change, and where one channel is silent, or
tokens are not compared, the same counts, summed over what is not known, give the curve of the rest. How curves are
fitted: `matching_fit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, expit

from pipelines.domain.documents import Domain
from pipelines.domain.errors import StoreError
from pipelines.domain.matching import Match
from pipelines.domain.ranking import ANY
from pipelines.learning.evidence import MICRO, Evidence, EvidenceKey, day_of
from pipelines.learning.priors import Priors
from pipelines.learning.recency import Discount

Floats = NDArray[np.float64]

MATCH = "match"
"""The parameter that verdicts are kept under by how well their results matched."""
ASKED = "match.asked"
"""The same for verdicts that were asked for, about a result drawn at random."""
MEASURED = ("meaning", "words", "near")
"""What verdicts are counted by, in the order of the columns of a match."""
MEASURES = len(MEASURED)
_UNKNOWN = "-"
_PER_HALVING = 4  # classes of chances between one and its half: weights are within a tenth of what they should be
_PER_DOUBLING = 2  # classes of ranks between one and its double: the first four apart, deeper ones within a fifth


def match_key(
    day: int, domain: Domain, match: Match, *, rank: int, good: bool, bins: int, asked: float | None = None
) -> EvidenceKey:
    """Where a verdict about one result is kept, whoever gave it.

    Args:
        rank: Where the result stood, from 1.
        asked: Probability with which it was asked for; None where nobody asked.

    Examples:
        >>> key = match_key(3, Domain.CODE, Match(meaning=0.62), rank=1, good=True, bins=20)
        >>> key.parameter, key.bin
        ('match', '12.-/20.good.00')
        >>> key = match_key(3, Domain.CODE, Match(meaning=0.62), rank=4, good=True, bins=20, asked=0.125)
        >>> key.parameter, key.bin
        ('match.asked', '12.-/20.good.04/12')
        >>> match_key(3, Domain.CODE, Match(meaning=0.62, words=0.4, near=0.58), rank=9, good=True, bins=20).bin
        '12.08.11/20.good.06'
    """
    places = [None if value is None else min(int(value * bins), bins - 1) for value in values_of(match)]
    depth = int(rank_places(np.array([rank]))[0])
    draw = None if asked is None else int(draw_places(np.array([asked]))[0])
    return match_key_at(day, domain, places, depth=depth, good=good, bins=bins, draw=draw)


def match_key_at(
    day: int,
    domain: Domain,
    places: Sequence[int | None],
    *,
    depth: int,
    good: bool,
    bins: int,
    draw: int | None = None,
) -> EvidenceKey:
    """The same, for who knows the bin of each measure of the match and the classes of rank and chance; or None."""
    # Nearness, the last, is not written where it is not known: so keys are what they were before there was one.
    known = places[:-1] if places[-1] is None else places
    told = (_UNKNOWN if place is None else f"{place:02d}" for place in known)
    bin_ = f"{'.'.join(told)}/{bins}.{'good' if good else 'bad'}.{depth:02d}"
    if draw is None:
        return EvidenceKey(day, domain.value, ANY, ANY, ANY, MATCH, bin_)
    return EvidenceKey(day, domain.value, ANY, ANY, ANY, ASKED, f"{bin_}/{draw:02d}")


def draw_places(chances: Floats) -> NDArray[np.int64]:
    """The class that each chance in (0, 1] to be asked about is counted under: verdicts stand for 1 / chance results.

    Examples:
        >>> draw_places(np.array([1.0, 0.5, 0.02])).tolist()
        [0, 4, 23]
    """
    return np.asarray(np.rint(-_PER_HALVING * np.log2(chances)), dtype=np.int64)


def rank_places(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class that each rank from 1 on is counted under.

    Examples:
        >>> rank_places(np.array([1, 2, 3, 4, 5, 9, 10])).tolist()
        [0, 2, 3, 4, 5, 6, 7]
    """
    return np.asarray(np.rint(_PER_DOUBLING * np.log2(ranks)), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class MatchBins:
    """Verdicts by match and rank.

    Attributes:
        match: float64 (n, 3), meaning, words and nearness in the middle of their bins; NaN where not known.
        rank: float64 (n,) >= 1, where the results stood, in the middle of their class.
        good, bad: float64 (n,) >= 0, observations.
        stands_for: float64 (n,), how many of the results that were shown one verdict stands for, which was asked for
            by chance; 0 where nobody asked.
    """

    match: Floats
    rank: Floats
    good: Floats
    bad: Floats
    stands_for: Floats

    @classmethod
    def of_all(cls, match: Floats, good: Floats, bad: Floats) -> Self:
        """What is known of everything that was shown, wherever it stood."""
        one = np.ones(len(match))
        return cls(match, one, good, bad, one)

    def knowing(self, columns: Sequence[int]) -> MatchBins:
        """Those of which these columns are known."""
        rows = ~np.isnan(self.match[:, columns]).any(axis=1)
        return MatchBins(self.match[rows], self.rank[rows], self.good[rows], self.bad[rows], self.stands_for[rows])

    def with_counts(self, good: Floats, bad: Floats) -> MatchBins:
        """The same bins with other verdicts in them."""
        return replace(self, good=good, bad=bad)

    def wherever(self) -> MatchBins:
        """The same with nothing told of where results stood."""
        return replace(self, rank=np.ones_like(self.rank))

    @property
    def unasked(self) -> Floats:
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
        return self.unasked + share * self.stands_for

    @property
    def observations(self) -> float:
        """How many verdicts there are."""
        return float(self.good.sum() + self.bad.sum())


def match_bins(evidence: Evidence, priors: Priors, *, now: float) -> MatchBins:
    """The verdicts by match in the evidence as they count at `now`, of all domains together.

    Those that were counted before ranks were are left out: how far down people had read is not known of them. However
    small a chance an impression states, a verdict stands for `verdicts.stands_for` results at most: whoever could make
    one up would outweigh all others with it (FBK-11).
    """
    discount = Discount(day_of(now), priors.recency.project_half_life_days)
    rarest = _PER_HALVING * math.log2(priors.verdicts.stands_for)
    masses: dict[tuple[float, ...], list[int]] = {}
    for key, micro in evidence.counts.items():
        if key.parameter in (MATCH, ASKED) and (told := _cell(key.bin, rarest)) is not None:
            cell, bad = told
            masses.setdefault(cell, [0, 0])[bad] += discount(micro, key.day)
    rows = [(*cell, *(max(each, 0) for each in sides)) for cell, sides in masses.items()]
    table = np.array(sorted(row for row in rows if row[-2] + row[-1] > 0), dtype=np.float64).reshape(-1, MEASURES + 4)
    match = np.where(table[:, :MEASURES] < 0.0, np.nan, table[:, :MEASURES])
    rank, stands_for, good, bad = table[:, MEASURES:].T
    return MatchBins(match, rank, good / MICRO, bad / MICRO, stands_for)


def _cell(bin_: str, rarest: float) -> tuple[tuple[float, ...], bool] | None:
    """Middle of all bins, −1 where not known; rank; what a verdict stands for; and whether it was bad.

    Args:
        rarest: Class of chances beyond which all count as that.
    """
    places, rest, *draw = bin_.split("/")
    bins, outcome, *depth = rest.split(".")
    if not depth:
        return None
    middles = [-1.0 if place == _UNKNOWN else (int(place) + 0.5) / int(bins) for place in places.split(".")]
    middles += [-1.0] * (MEASURES - len(middles))
    stands_for = 2.0 ** (min(int(draw[0]), rarest) / _PER_HALVING) if draw else 0.0
    return (*middles, 2.0 ** (int(depth[0]) / _PER_DOUBLING), stands_for), outcome == "bad"


@dataclass(frozen=True, slots=True)
class MatchCurve:
    """logit P(good) = meaning · m + words · w + near · n + intercept, which never falls with any.

    Attributes:
        meaning, words, near: >= 0; 0 for what the curve does without.
    """

    meaning: float
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

    Attributes:
        meaning: What the greatest cosine has to exceed.
        words: What the greatest share of words has to exceed where the dense channel is silent.
        bound: How often at most a query like the probes of any one kind, which have no answer, does.
        probes: How many queries of the least kind that rests on.
        near: What the greatest nearness has to exceed; None where tokens are not kept.
        confidence: Probability that `bound` holds here, over the draw of the probes; None of earlier versions, whose
            bound holds on average over stores.
    """

    meaning: float | None
    words: float | None
    bound: float
    probes: int
    near: float | None = None
    confidence: float | None = None

    def compared(self, match: Match | None) -> tuple[float, float] | None:
        """A match and what it has to exceed; None where that cannot be told.

        Examples:
            >>> answering = Answering(meaning=0.4, words=None, bound=0.05, probes=100)
            >>> answering.compared(Match(meaning=0.3, words=0.9)), answering.compared(Match(words=0.9))
            ((0.3, 0.4), None)
            >>> nearer = Answering(meaning=0.4, words=None, bound=0.05, probes=100, near=0.5)
            >>> nearer.compared(Match(meaning=0.3, near=0.6))
            (0.6, 0.5)
        """
        if match is None:
            return None
        if match.near is not None and self.near is not None:
            return match.near, self.near
        known = (match.meaning, self.meaning) if match.meaning is not None else (match.words, self.words)
        return None if known[0] is None or known[1] is None else (known[0], known[1])


CURVES: Mapping[str, tuple[int, ...]] = {
    "near_words": (1, 2),
    "near": (2,),
    "both": (0, 1),
    "meaning": (0,),
    "words": (1,),
}
"""The columns of a match that each curve rests on. Nearness is half the cosine, and stands in for it where known."""
_NEARER = ("near_words", "near")


@dataclass(frozen=True, slots=True)
class MatchCalibration:
    """The curves of every set of channels, each None where good and bad do not separate.

    Attributes:
        both, meaning, words: Over cosine and words, the cosine alone, words alone.
        near_words, near: Over nearness and words, and nearness alone; where there are none, those over the cosine tell.

    Examples:
        >>> known = MatchCalibration(None, MatchCurve(8.0, 0.0, -4.0), None)
        >>> known.probability(Match(meaning=0.5)), known.probability(Match(words=0.5))
        (0.5, None)
        >>> MatchCalibration.from_json_value(known.to_json_value()) == known
        True
    """

    both: MatchCurve | None
    meaning: MatchCurve | None
    words: MatchCurve | None
    answering: Answering | None = None
    near_words: MatchCurve | None = None
    near: MatchCurve | None = None

    def probability(self, match: Match | None) -> float | None:
        """P(good) of a result that matches like this; None where that cannot be told."""
        if match is None or (curve := self._curve(match)) is None:
            return None
        values = np.array([[np.nan if value is None else value for value in values_of(match)]])
        return float(curve.probabilities(values)[0])

    def _curve(self, match: Match) -> MatchCurve | None:
        if match.meaning is None:
            return None if match.words is None else self.words
        nearer, plain = (self.near, self.meaning) if match.words is None else (self.near_words, self.both)
        return plain if match.near is None or nearer is None else nearer

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
            told_of = {**dict.fromkeys(_NEARER), **value}  # nearness was not counted once
            curves = {name: told_of[name] and MatchCurve(**told_of[name]) for name in CURVES}
            # Thresholds of P(good) were written once: they compare something else.
            told = value["answering"] if value["answering"] and "meaning" in value["answering"] else None
            return cls(**curves, answering=told and Answering(**told))
        except (KeyError, TypeError) as error:
            raise StoreError(f"calibration: expected curves {sorted(CURVES)} of matches, found {value!r}") from error


def answering_from(kinds: Sequence[Sequence[Match]], *, bound: float, confidence: float) -> Answering | None:
    """The least threshold that surely enough few queries of any of these kinds, which have no answer, exceed.

    An upper tolerance limit (Wilks 1941), which is split conformal prediction made to hold for the probes at hand and
    not only on average over draws of them (Vovk 2012): with the k-th smallest of n values, k the least with
    P(Binomial(n, 1 − bound) < k) >= confidence, the share of all such queries that exceeds it is at most `bound` with
    probability `confidence`, whatever their distribution. Of several kinds the highest threshold holds.

    Args:
        kinds: By kind, the best match of each query that has no answer, on each scale.
        bound, confidence: In (0, 1).

    Returns:
        None where the probes are too few: n has to be at least ln(1 − confidence) / ln(1 − bound).

    Examples:
        >>> some = [Match(meaning=each) for each in (0.1, 0.4, 0.2, 0.3)]
        >>> answering_from([some], bound=0.5, confidence=0.9)
        Answering(meaning=0.4, words=None, bound=0.5, probes=4, near=None, confidence=0.9)
        >>> answering_from([some], bound=0.4, confidence=0.9)
    """
    meaning, words, near = (
        _threshold([[getattr(match, scale) for match in kind] for kind in kinds], bound, confidence)
        for scale in ("meaning", "words", "near")
    )
    if meaning is None and words is None:
        return None
    return Answering(meaning, words, bound, min(len(kind) for kind in kinds), near, confidence)


def _threshold(kinds: Sequence[Sequence[float | None]], bound: float, confidence: float) -> float | None:
    """None where a value is not known, or a kind has too few of them."""
    found = []
    for kind in kinds:
        known = sorted(value for value in kind if value is not None)
        below = bdtr(np.arange(len(kind)), len(kind), 1.0 - bound)  # P(Binomial(n, 1 − bound) <= at)
        at = int(np.searchsorted(below, confidence))
        if len(known) < len(kind) or at == len(kind):
            return None
        found.append(known[at])
    return max(found, default=None)


Probe = Callable[[], Sequence[Sequence[Match]]]
"""Asks queries that have no answer; by kind, the best match of each on each scale."""


def values_of(match: Match) -> tuple[float | None, ...]:
    """Meaning, words and nearness, each None where not known."""
    return tuple(getattr(match, name) for name in MEASURED)
