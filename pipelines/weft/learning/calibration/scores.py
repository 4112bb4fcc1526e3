"""From a score to the probability that the result is good, fitted to binned outcomes (CON-8, RET-15)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar, Self

import numpy as np
import scipy
from scipy.special import expit

from weft.domain.arrays import Floats
from weft.domain.documents import Domain
from weft.domain.errors import StoreError
from weft.learning.calibration.matching import MatchCalibration
from weft.learning.calibration.reliability import Predictions, log_loss, split_folds
from weft.learning.evidence import MICRO, Evidence, day_of
from weft.learning.parameters import RELEVANCE
from weft.learning.parts import PartChange, PartChanges
from weft.learning.priors import RecencyPrior
from weft.learning.recency import Discount


@dataclass(frozen=True, slots=True)
class ScoreBins:
    """Outcomes by score, arrays (n,) ascending in `score`, the middle of each bin in (0, 1)."""

    score: Floats
    good: Floats  # float64 >= 0, observations; no bin is empty
    bad: Floats

    @property
    def observations(self) -> float:
        """How many outcomes there are."""
        return float(self.good.sum() + self.bad.sum())


@dataclass(frozen=True, slots=True)
class Isotonic:
    """A curve that only rises: through the rates that pooling adjacent violators leaves, straight between bins."""

    method: ClassVar[str] = "isotonic"
    scores: tuple[float, ...]
    probabilities: tuple[float, ...]

    @classmethod
    def fit(cls, bins: ScoreBins) -> Self:
        """Weighted least squares over rising curves (Barlow et al., 1972)."""
        mass = bins.good + bins.bad
        rising = scipy.optimize.isotonic_regression(bins.good / mass, weights=mass).x
        return cls(tuple(bins.score.tolist()), tuple(np.asarray(rising).tolist()))

    def probabilities_of(self, scores: Floats) -> Floats:
        """P(good) of scores (n,); beyond the outer bins the curve is flat."""
        return np.interp(scores, self.scores, self.probabilities)


@dataclass(frozen=True, slots=True)
class BetaCurve:
    """Beta calibration, logit P(good) = a·ln s − b·ln(1 − s) + c with a, b >= 0 (Kull et al., AISTATS 2017)."""

    method: ClassVar[str] = "beta"
    a: float
    b: float
    c: float

    @classmethod
    def fit(cls, bins: ScoreBins) -> Self:
        """Maximum likelihood; the loss is convex, so that the start does not matter."""
        design = np.stack([np.log(bins.score), -np.log1p(-bins.score), np.ones_like(bins.score)], axis=1)
        mass = bins.good + bins.bad

        def loss(parameters: Floats) -> tuple[float, Floats]:
            z = design @ parameters
            value = float(np.sum(bins.good * np.logaddexp(0.0, -z) + bins.bad * np.logaddexp(0.0, z)))
            gradient = design.T @ (mass * expit(z) - bins.good)
            return value / mass.sum(), gradient / mass.sum()

        rising = [(0.0, None), (0.0, None), (None, None)]
        solution = scipy.optimize.minimize(loss, np.array([1.0, 1.0, 0.0]), jac=True, bounds=rising, method="L-BFGS-B")
        a, b, c = (float(value) for value in solution.x)
        return cls(a, b, c)

    def probabilities_of(self, scores: Floats) -> Floats:
        """P(good) of scores (n,); at 0 and 1 the limits of the curve."""
        edge = np.finfo(np.float64).epsneg
        inside = np.clip(scores, edge, 1.0 - edge)
        probability: Floats = expit(self.a * np.log(inside) - self.b * np.log1p(-inside) + self.c)
        return probability


UNCHANGED = BetaCurve(1.0, 1.0, 0.0)
"""The curve that leaves every score as it is."""

CURVES: Mapping[str, type[Isotonic] | type[BetaCurve]] = {BetaCurve.method: BetaCurve, Isotonic.method: Isotonic}
"""The families of curves that compete, the one with fewer parameters first: it wins a tie."""


@dataclass(frozen=True, slots=True)
class ScoreCalibration:
    """A fitted curve."""

    name: ClassVar[str] = "calibration"
    curve: Isotonic | BetaCurve  # from the score that results are ranked by
    match: MatchCalibration | None = None  # from how well a result matches by itself; None where verdicts are too few

    @property
    def method(self) -> str:
        """Name of the curve's family."""
        return self.curve.method

    def probability(self, score: float) -> float:
        """P(good) of a score in [0, 1]; it never falls with the score."""
        return float(self.curve.probabilities_of(np.array([score]))[0])

    def probabilities(self, scores: Floats) -> Floats:
        """`probability` of scores (n,)."""
        return self.curve.probabilities_of(scores)

    def to_table(self) -> str:
        """The curve as one JSON object; `from_table` gives exactly it back."""
        match = {} if self.match is None else {"match": self.match.to_json_value()}
        return json.dumps({"method": self.method, **asdict(self.curve), **match}, sort_keys=True)

    @classmethod
    def from_table(cls, text: str) -> Self:
        """The calibration that `to_table` wrote.

        Raises:
            StoreError: The text is not one of its kind.
        """
        try:
            values = json.loads(text)
            family: Callable[..., Isotonic | BetaCurve] = CURVES[values.pop("method")]
            stored = values.pop("match", None)
            match = None if stored is None else MatchCalibration.from_json_value(stored)
            return cls(family(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}), match)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"calibration: expected one of {sorted(CURVES)} with its values, found {text!r}"
            ) from error

    def changes(self, before: Self | None) -> PartChanges:
        """Which curve says what a score is worth, and which one did."""
        return PartChanges.between(
            *(() if each is None else (PartChange("", each.to_table()),) for each in (before, self))
        )


@dataclass(frozen=True, slots=True)
class Fit:
    """The curve that won, and how that was found out."""

    calibration: ScoreCalibration
    held_out: Predictions  # every observation as predicted by the winning family fitted without it
    losses: Mapping[str, float]  # cross-validated log loss by family


def score_bins(evidence: Evidence, recency: RecencyPrior, *, now: float, domain: Domain | None = None) -> ScoreBins:
    """The outcomes by score in the evidence as they count at `now`, of one domain or of all together."""
    discount = Discount(day_of(now), recency.project_half_life_days)
    masses: dict[float, list[int]] = {}
    for key, micro in evidence.counts.items():
        if key.parameter == RELEVANCE and domain in (None, key.domain):
            place, outcome = key.bin.split(".")
            index, bins = (int(part) for part in place.split("/"))
            masses.setdefault((index + 0.5) / bins, [0, 0])[outcome == "bad"] += discount(micro, key.day)
    rows = [(score, max(good, 0), max(bad, 0)) for score, (good, bad) in sorted(masses.items())]
    table = np.array([row for row in rows if row[1] + row[2] > 0], dtype=np.float64).reshape(-1, 3)
    return ScoreBins(table[:, 0], table[:, 1] / MICRO, table[:, 2] / MICRO)


def calibrate(bins: ScoreBins, *, folds: int, seed: int, smoothing: float) -> Fit:
    """Fit every family of curves and keep the one that predicts held-out outcomes best.

    Raises:
        ValueError: There are no observations.
    """
    good, bad = split_folds(bins.good, bins.bad, folds, np.random.default_rng(seed))
    if good.sum() + bad.sum() == 0:
        raise ValueError("expected observations to calibrate on, found none")
    held_out = {
        name: _held_out(family, ScoreBins(bins.score, good.sum(axis=0), bad.sum(axis=0)), good, bad, smoothing)
        for name, family in CURVES.items()
    }
    losses = {name: log_loss(predictions) for name, predictions in held_out.items()}
    best = min(losses, key=losses.__getitem__)
    return Fit(ScoreCalibration(CURVES[best].fit(_smoothed(bins, smoothing))), held_out[best], losses)


def _held_out(
    family: type[Isotonic] | type[BetaCurve], everything: ScoreBins, good: Floats, bad: Floats, smoothing: float
) -> Predictions:
    predicted = []
    for fold_good, fold_bad in zip(good, bad, strict=True):
        others = ScoreBins(everything.score, everything.good - fold_good, everything.bad - fold_bad)
        predicted.append(family.fit(_smoothed(others, smoothing)).probabilities_of(everything.score))
    return Predictions(np.concatenate(predicted), good.ravel(), bad.ravel())


def _smoothed(bins: ScoreBins, smoothing: float) -> ScoreBins:
    # Laplace's rule keeps the overall rate itself off 0 and 1.
    rate = (bins.good.sum() + 1.0) / (bins.good.sum() + bins.bad.sum() + 2.0)
    return ScoreBins(bins.score, bins.good + smoothing * rate, bins.bad + smoothing * (1.0 - rate))
