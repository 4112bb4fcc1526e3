"""From how well a content matches a query to the probability that it is good, and when to say that nothing is (RET-15).

A verdict on a result is counted by the result's match: cosine and share of words, which do not depend on weights,
fusion or what else was found. So the curve keeps its meaning while all of these change, and where one channel is silent
the same counts, summed over what is not known, give the curve of the other one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from pipelines.domain.documents import Domain
from pipelines.domain.errors import StoreError
from pipelines.domain.matching import Match
from pipelines.domain.ranking import ANY
from pipelines.learning.evidence import MICRO, Evidence, EvidenceKey, day_of
from pipelines.learning.priors import RecencyPrior
from pipelines.learning.recency import Discount
from pipelines.learning.reliability import Predictions, log_loss

Floats = NDArray[np.float64]

MATCH = "match"
"""The parameter that verdicts are kept under by how well their results matched."""
_UNKNOWN = "-"
_EDGE = 1e-9


def match_key(day: int, domain: Domain, match: Match, *, good: bool, bins: int) -> EvidenceKey:
    """Where a verdict about one result is kept, whoever gave it.

    Examples:
        >>> key = match_key(3, Domain.CODE, Match(meaning=0.62), good=True, bins=20)
        >>> key.parameter, key.bin
        ('match', '12.-/20.good')
    """
    places = [None if value is None else min(int(value * bins), bins - 1) for value in _values(match)]
    return match_key_at(day, domain, places, good=good, bins=bins)


def match_key_at(day: int, domain: Domain, places: Sequence[int | None], *, good: bool, bins: int) -> EvidenceKey:
    """The same, for who knows in which bin each measure of the match lies; None where it is not known."""
    told = (_UNKNOWN if place is None else f"{place:02d}" for place in places)
    bin_ = f"{'.'.join(told)}/{bins}.{'good' if good else 'bad'}"
    return EvidenceKey(day, domain.value, ANY, ANY, ANY, MATCH, bin_)


@dataclass(frozen=True, slots=True)
class MatchBins:
    """Verdicts by match.

    Attributes:
        match: float64 (n, 2), meaning and words in the middle of their bins; NaN where not known.
        good, bad: float64 (n,) >= 0, observations.
    """

    match: Floats
    good: Floats
    bad: Floats

    def knowing(self, columns: Sequence[int]) -> MatchBins:
        """Those of which these columns are known."""
        rows = ~np.isnan(self.match[:, columns]).any(axis=1)
        return MatchBins(self.match[rows], self.good[rows], self.bad[rows])

    @property
    def observations(self) -> float:
        """How many verdicts there are."""
        return float(self.good.sum() + self.bad.sum())


def match_bins(evidence: Evidence, recency: RecencyPrior, *, now: float) -> MatchBins:
    """The verdicts by match in the evidence as they count at `now`, of all domains together."""
    discount = Discount(day_of(now), recency.project_half_life_days)
    masses: dict[tuple[float, float], list[int]] = {}
    for key, micro in evidence.counts.items():
        if key.parameter == MATCH:
            cell, bad = _cell(key.bin)
            masses.setdefault(cell, [0, 0])[bad] += discount(micro, key.day)
    rows = [(*cell, *(max(each, 0) for each in sides)) for cell, sides in masses.items()]
    table = np.array(sorted(row for row in rows if row[2] + row[3] > 0), dtype=np.float64).reshape(-1, 4)
    table[:, :2] = np.where(table[:, :2] < 0.0, np.nan, table[:, :2])
    return MatchBins(table[:, :2], table[:, 2] / MICRO, table[:, 3] / MICRO)


def _cell(bin_: str) -> tuple[tuple[float, float], bool]:
    """Middle of both bins, −1 where not known, and whether the verdict was bad."""
    places, rest = bin_.split("/")
    bins, outcome = rest.split(".")
    meaning, words = (-1.0 if place == _UNKNOWN else (int(place) + 0.5) / int(bins) for place in places.split("."))
    return (meaning, words), outcome == "bad"


@dataclass(frozen=True, slots=True)
class MatchCurve:
    """logit P(good) = meaning · m + words · w + intercept, which never falls with either.

    Attributes:
        meaning, words: >= 0; 0 for what the curve does without.
    """

    meaning: float
    words: float
    intercept: float

    @classmethod
    def fit(cls, bins: MatchBins, columns: Sequence[int]) -> Self:
        """Maximum likelihood with one more good and one more bad verdict at the middle: finite whatever was seen.

        Args:
            columns: Of the match that may matter.
        """
        values = np.hstack([bins.match[:, columns], np.ones((len(bins.match), 1))])
        middle = np.concatenate([np.full(len(columns), 0.5), [1.0]])
        design = np.vstack([values, middle])
        good, mass = np.append(bins.good, 1.0), np.append(bins.good + bins.bad, 2.0)

        def loss(parameters: Floats) -> tuple[float, Floats]:
            z = design @ parameters
            value = float(np.sum(mass * np.logaddexp(0.0, z) - good * z))
            return value / mass.sum(), design.T @ (mass * expit(z) - good) / mass.sum()

        rising = [(0.0, None)] * len(columns) + [(None, None)]
        found = minimize(loss, np.zeros(len(middle)), jac=True, bounds=rising, method="L-BFGS-B").x
        slopes = dict(zip(columns, found[:-1].tolist(), strict=True))
        return cls(slopes.get(0, 0.0), slopes.get(1, 0.0), float(found[-1]))

    def probabilities(self, match: Floats) -> Floats:
        """P(good) of matches (n, 2); columns that the curve does without may be NaN."""
        known = np.nan_to_num(match)
        return np.asarray(expit(known[:, 0] * self.meaning + known[:, 1] * self.words + self.intercept))


@dataclass(frozen=True, slots=True)
class Answering:
    """From when on an answer counts as one.

    The cosine alone decides where it is known: words of queries that have no answer stand in texts, too, and with them
    fewer answers pass at the same bound (docs/evaluation.md).

    Attributes:
        meaning: What the greatest cosine has to exceed.
        words: What the greatest share of words has to exceed where the dense channel is silent.
        bound: How often at most a query like the probes of any one kind, which have no answer, does.
        probes: How many queries of the least kind that rests on.
    """

    meaning: float | None
    words: float | None
    bound: float
    probes: int

    def compared(self, match: Match | None) -> tuple[float, float] | None:
        """A match and what it has to exceed; None where that cannot be told.

        Examples:
            >>> answering = Answering(meaning=0.4, words=None, bound=0.05, probes=100)
            >>> answering.compared(Match(meaning=0.3, words=0.9)), answering.compared(Match(words=0.9))
            ((0.3, 0.4), None)
        """
        if match is None:
            return None
        known = (match.meaning, self.meaning) if match.meaning is not None else (match.words, self.words)
        return None if known[0] is None or known[1] is None else (known[0], known[1])


_CURVES: Mapping[str, tuple[int, ...]] = {"both": (0, 1), "meaning": (0,), "words": (1,)}


@dataclass(frozen=True, slots=True)
class MatchCalibration:
    """The curves of every set of channels, each None where good and bad do not separate.

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

    def probability(self, match: Match | None) -> float | None:
        """P(good) of a result that matches like this; None where that cannot be told."""
        if match is None or (curve := self._curve(match)) is None:
            return None
        values = np.array([[np.nan if value is None else value for value in _values(match)]])
        return float(curve.probabilities(values)[0])

    def _curve(self, match: Match) -> MatchCurve | None:
        if match.meaning is not None and match.words is not None:
            return self.both
        if match.meaning is not None:
            return self.meaning
        return self.words if match.words is not None else None

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
            curves = {name: value[name] and MatchCurve(**value[name]) for name in _CURVES}
            # Thresholds of P(good) were written once: they compare something else.
            told = value["answering"] if value["answering"] and "meaning" in value["answering"] else None
            return cls(**curves, answering=told and Answering(**told))
        except (KeyError, TypeError) as error:
            raise StoreError(f"calibration: expected curves {sorted(_CURVES)} of matches, found {value!r}") from error


@dataclass(frozen=True, slots=True)
class MatchFit:
    """What verdicts say about matches.

    Attributes:
        held_out: By curve, every verdict as predicted by a curve fitted without it.
        gains: By curve, by how much that predicts better than the overall rate, in nats per verdict.
    """

    calibration: MatchCalibration
    held_out: Mapping[str, Predictions]
    gains: Mapping[str, float]


def calibrate_matches(bins: MatchBins, *, folds: int, seed: int, least_gain: float) -> MatchFit:
    """Fit the curve of every set of channels, and keep those that tell good from bad.

    Args:
        folds: Parts >= 2 that verdicts are dealt to at random; each is predicted from the others.
        seed: Of the deal, so that a fit can be repeated.
        least_gain: Nats per verdict, against the overall rate on held-out ones: below, good and bad do not separate.
    """
    curves: dict[str, MatchCurve | None] = {}
    held_out: dict[str, Predictions] = {}
    gains: dict[str, float] = {}
    for name, columns in _CURVES.items():
        known = bins.knowing(columns)
        curves[name] = None
        if known.observations >= folds:
            held_out[name] = _held_out(known, columns, folds, np.random.default_rng(seed))
            gains[name] = _entropy(known) - log_loss(held_out[name])
            if gains[name] >= least_gain:
                curves[name] = MatchCurve.fit(known, columns)
    return MatchFit(MatchCalibration(curves["both"], curves["meaning"], curves["words"]), held_out, gains)


def _held_out(bins: MatchBins, columns: Sequence[int], folds: int, rng: np.random.Generator) -> Predictions:
    chances = [1.0 / folds] * folds
    good, bad = (rng.multinomial(np.rint(mass).astype(np.int64), chances).T for mass in (bins.good, bins.bad))
    predicted = []
    for fold_good, fold_bad in zip(good, bad, strict=True):
        others = MatchBins(bins.match, good.sum(axis=0) - fold_good, bad.sum(axis=0) - fold_bad)
        predicted.append(MatchCurve.fit(others, columns).probabilities(bins.match))
    return Predictions(np.concatenate(predicted), good.ravel().astype(np.float64), bad.ravel().astype(np.float64))


def _entropy(bins: MatchBins) -> float:
    rate = min(max(float(bins.good.sum()) / bins.observations, _EDGE), 1.0 - _EDGE)
    return -rate * math.log(rate) - (1.0 - rate) * math.log(1.0 - rate)


def answering_from(kinds: Sequence[Sequence[Match]], *, bound: float) -> Answering | None:
    """The least threshold that a query of any of these kinds, which have no answer, exceeds with probability `bound`.

    Split conformal prediction (Vovk, Gammerman and Shafer 2005; Lei et al., JASA 2018): with the k-th smallest of n
    values, k = ⌈(n + 1)(1 − bound)⌉, one more that is exchangeable with them exceeds it with probability at most
    `bound`, whatever its distribution. Of several kinds the highest threshold holds.

    Args:
        kinds: By kind, the best match of each query that has no answer, on either scale.
        bound: In (0, 1).

    Returns:
        None where the probes are too few for the bound.

    Examples:
        >>> some = [Match(meaning=each) for each in (0.1, 0.4, 0.2, 0.3)]
        >>> answering_from([some], bound=0.25)
        Answering(meaning=0.4, words=None, bound=0.25, probes=4)
        >>> answering_from([some], bound=0.1)
    """
    meaning, words = (
        _threshold([[_values(match)[column] for match in kind] for kind in kinds], bound) for column in (0, 1)
    )
    if meaning is None and words is None:
        return None
    return Answering(meaning, words, bound, min(len(kind) for kind in kinds))


def _threshold(kinds: Sequence[Sequence[float | None]], bound: float) -> float | None:
    """None where a value is not known, or a kind has too few of them."""
    found = []
    for kind in kinds:
        known = sorted(value for value in kind if value is not None)
        place = math.ceil((len(kind) + 1) * (1.0 - bound))
        if len(known) < len(kind) or place > len(known):
            return None
        found.append(known[place - 1])
    return max(found, default=None)


Probe = Callable[[], Sequence[Sequence[Match]]]
"""Asks queries that have no answer; by kind, the best match of each on either scale."""


def _values(match: Match) -> tuple[float | None, float | None]:
    return match.meaning, match.words
