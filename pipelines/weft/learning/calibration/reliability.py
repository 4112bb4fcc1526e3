"""Does a probability mean what it says? Measures and tables over predictions and their outcomes (CON-8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from weft.domain.arrays import Flags, Floats, Ints
from weft.learning.families.beta import Beta


@dataclass(frozen=True, slots=True)
class Predictions:
    """Probabilities and what came of them, grouped: each entry stands for `good + bad` observations."""

    probability: Floats  # float64 (n,) in [0, 1], predicted chance of a good outcome
    good: Floats  # both float64 (n,) >= 0, observations by outcome
    bad: Floats

    @property
    def mass(self) -> Floats:
        """Observations per entry."""
        return self.good + self.bad


@dataclass(frozen=True, slots=True)
class Reliability:
    """How far probabilities can be relied on; lower is better."""

    ece: float  # expected calibration error, Σ over bins of share · |observed − predicted|
    brier: float  # mean squared distance to the outcome (Brier, Monthly Weather Review 1950)
    log_loss: float  # mean −ln of the probability given to the outcome
    observations: float  # how many it is measured on


@dataclass(frozen=True, slots=True)
class Band:
    """What came of predictions in [lower, upper), the last band with its upper end."""

    lower: float
    upper: float
    predicted: float  # mean prediction; observed: share of good outcomes; both 0 in an empty band
    observed: float
    low: float  # Interval of the observed share, from Beta(good + ½, bad + ½) (Jeffreys)
    high: float
    observations: float  # how many fell in the band
    sufficient: bool  # whether they are enough to judge the band by

    @property
    def deviation(self) -> float:
        """|observed − predicted|."""
        return abs(self.observed - self.predicted)


def reliability(predictions: Predictions, *, bins: int) -> Reliability:
    """Measure predictions; the calibration error over `bins` bins of equal width.

    Raises:
        ValueError: There are no observations.
    """
    total = float(predictions.mass.sum())
    if total <= 0.0:
        raise ValueError("expected observations to measure calibration on, found none")
    place = np.minimum((predictions.probability * bins).astype(np.int64), bins - 1)
    # Per bin, mass · |observed − predicted| is |Σ good − Σ mass · probability|.
    surplus = np.bincount(place, weights=predictions.good - predictions.mass * predictions.probability)
    squares = predictions.good * (1.0 - predictions.probability) ** 2 + predictions.bad * predictions.probability**2
    return Reliability(
        ece=float(np.abs(surplus).sum()) / total,
        brier=float(squares.sum()) / total,
        log_loss=log_loss(predictions),
        observations=total,
    )


def error_by_chance(
    predictions: Predictions, groups: Ints, *, bins: int, draws: int, rng: np.random.Generator
) -> float:
    """The calibration error to be expected of a curve that is right, on as few observations that hang together.

    An error is never negative, so that chance alone makes one; more so where outcomes of one query come together. What
    each group deviates by keeps its size and gets a sign at random (Liu, Annals of Statistics 1988), and the error is
    measured again, on average.

    Examples:
        >>> even = Predictions(np.full(4, 0.5), good=np.array([1.0, 1.0, 0.0, 0.0]), bad=np.array([0.0, 0.0, 1.0, 1.0]))
        >>> together, apart = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0])
        >>> tuned = {"bins": 10, "draws": 400, "rng": np.random.default_rng(0)}
        >>> round(error_by_chance(even, together, **tuned), 1), error_by_chance(even, apart, **tuned)
        (0.2, 0.0)
    """
    place = np.minimum((predictions.probability * bins).astype(np.int64), bins - 1)
    surplus = np.zeros((int(groups.max()) + 1, bins))
    np.add.at(surplus, (groups, place), predictions.good - predictions.mass * predictions.probability)
    signs = rng.integers(0, 2, (draws, len(surplus))) * 2.0 - 1.0
    return float(np.abs(signs @ surplus).sum(axis=1).mean()) / float(predictions.mass.sum())


def split_folds(good: Floats, bad: Floats, folds: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Observations (n,) dealt to folds at random, (folds, n) each: counts alone do not tell which came together.

    Whole ones are dealt one by one, and what is left of an entry in one piece: old observations count for less than a
    whole one (LRN-2), and are most of what there is.
    """
    whole = [np.floor(mass) for mass in (good, bad)]
    parts = [rng.multinomial(each.astype(np.int64), [1.0 / folds] * folds).T.astype(np.float64) for each in whole]
    for mass, each, part in zip((good, bad), whole, parts, strict=True):
        part[rng.integers(0, folds, len(mass)), np.arange(len(mass))] += mass - each
    return parts[0], parts[1]


def log_loss(predictions: Predictions) -> float:
    """Mean −ln of the probability given to the outcome; probabilities of 0 and 1 count as the nearest float inside."""
    edge = np.finfo(np.float64).epsneg
    probability = np.clip(predictions.probability, edge, 1.0 - edge)
    losses = -predictions.good * np.log(probability) - predictions.bad * np.log1p(-probability)
    return float(losses.sum() / predictions.mass.sum())


def bands(predictions: Predictions, edges: Sequence[float], *, minimum: float, level: float) -> list[Band]:
    """The reliability table: one row per band between neighbouring `edges`, ascending."""
    rows = []
    for lower, upper in pairwise(edges):
        probability = predictions.probability
        inside = (probability >= lower) & ((probability < upper) | ((probability == upper) & (upper == edges[-1])))
        rows.append(_band(predictions, inside, (lower, upper), minimum, level))
    return rows


def _band(predictions: Predictions, inside: Flags, bounds: tuple[float, float], minimum: float, level: float) -> Band:
    good, bad = float(predictions.good[inside].sum()), float(predictions.bad[inside].sum())
    mass = good + bad
    weighted = float((predictions.probability * predictions.mass)[inside].sum())
    low, high = Beta(good + 0.5, bad + 0.5).interval(level)
    return Band(
        lower=bounds[0],
        upper=bounds[1],
        predicted=weighted / mass if mass else 0.0,
        observed=good / mass if mass else 0.0,
        low=low,
        high=high,
        observations=mass,
        sufficient=mass > 0.0 and mass >= minimum,
    )
