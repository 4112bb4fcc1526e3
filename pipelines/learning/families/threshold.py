"""From which confidence on to act: Bayesian decision theory over a fitted curve (LRN-7).

P(good | c) is logistic in the confidence c. Acting on everything from τ on costs C_FP · P(bad, c ≥ τ), leaving the rest
costs C_FN · P(good, c < τ); whatever the distribution of c, the sum is least where P(good | c) passes
q = C_FP / (C_FP + C_FN). So the curve is written by that very point, P(good | c) = logistic(logit q + s·(c − τ*)), and
the posterior of τ* is a marginal of the posterior of the fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from pipelines.learning.evidence import MICRO
from pipelines.learning.families.beta import confidence
from pipelines.learning.priors import ThresholdPrior

Floats = NDArray[np.float64]

_CELLS = 121  # of the grid, per axis
_RESOLVED = 8.0  # cells per standard deviation, from which on a sum over cells is as good as an integral
_ZOOMS = 8  # each takes the grid to at least a quarter of its width where it is too coarse
_NEGLIGIBLE = 1e-9
_SLOPES = (1e-3, 1e2)  # reach of the first grid, in prior means


@dataclass(frozen=True, slots=True)
class ThresholdEvidence:
    """Mass of good and bad decisions by bin of confidence, in micro-units. Adding is merging.

    Attributes:
        masses: (good, bad) by bin: bin i of n holds confidences in [i/n, (i + 1)/n).

    Examples:
        >>> seen = ThresholdEvidence.of(0.72, good=True, bins=20)
        >>> seen + ThresholdEvidence.of(0.74, good=False, bins=20, weight=0.5)
        ThresholdEvidence(masses={(14, 20): (1000000, 500000)})
    """

    masses: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, confidence: float, *, good: bool, bins: int, weight: float = 1.0) -> ThresholdEvidence:
        """Evidence of one decision of a confidence in [0, 1], counted `weight` >= 0 times.

        Raises:
            ValueError: Either is out of its range, or not a number.
        """
        if not 0.0 <= confidence <= 1.0 or not 0.0 <= weight < math.inf:
            raise ValueError(f"expected confidence in [0, 1] and a finite weight >= 0, got {confidence}, {weight}")
        mass = round(weight * MICRO)
        place = min(int(confidence * bins), bins - 1)
        return cls({(place, bins): (mass, 0) if good else (0, mass)})

    def __add__(self, other: ThresholdEvidence) -> ThresholdEvidence:
        total = dict(self.masses)
        for place, (good, bad) in other.masses.items():
            before = total.get(place, (0, 0))
            total[place] = (before[0] + good, before[1] + bad)
        return ThresholdEvidence(total)


@dataclass(frozen=True, eq=False)
class Threshold:
    """A belief about τ*: Beta prior on it and Gamma prior on the slope, times the likelihood of decisions.

    Attributes:
        confidences: float64 (n,), middles of the bins.
        good, bad: float64 (n,) >= 0, decisions seen in each.
    """

    prior: ThresholdPrior
    confidences: Floats = field(default_factory=lambda: np.empty(0))
    good: Floats = field(default_factory=lambda: np.empty(0))
    bad: Floats = field(default_factory=lambda: np.empty(0))

    def given(self, evidence: ThresholdEvidence, *, recency: float = 1.0) -> Threshold:
        """The posterior after `evidence`, each unit of which counts `recency` in [0, 1]."""
        rows = sorted(evidence.masses.items())
        middles = np.array([(place + 0.5) / bins for (place, bins), _ in rows])
        seen = np.array([masses for _, masses in rows], dtype=np.float64).reshape(-1, 2)
        counts = recency * np.maximum(seen, 0.0) / MICRO
        return Threshold(
            self.prior,
            np.concatenate([self.confidences, middles]),
            np.concatenate([self.good, counts[:, 0]]),
            np.concatenate([self.bad, counts[:, 1]]),
        )

    @property
    def observations(self) -> float:
        """Decisions behind the belief, beyond the prior."""
        return float(self.good.sum() + self.bad.sum())

    def confidence(self, halfway: float) -> float:
        """How settled the belief is, in [0, 1)."""
        return confidence(self.observations, halfway=halfway)

    @property
    def mean(self) -> float:
        """Expected τ*, in (0, 1)."""
        grid = self._grid
        return float(grid.thresholds @ grid.marginal)

    @property
    def variance(self) -> float:
        """Variance of τ*."""
        grid = self._grid
        return float((grid.thresholds - self.mean) ** 2 @ grid.marginal)

    def interval(self, level: float) -> tuple[float, float]:
        """Equal-tailed credible interval of τ*."""
        tail = (1.0 - level) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)

    def quantile(self, probability: float) -> float:
        """The τ* that is not exceeded with that probability: within a cell of the grid, mass is spread evenly."""
        grid = self._grid
        half = (grid.thresholds[1] - grid.thresholds[0]) / 2.0
        edges = np.concatenate([grid.thresholds - half, grid.thresholds[-1:] + half])
        return float(np.interp(probability, np.concatenate([[0.0], np.cumsum(grid.marginal)]), edges))

    def sample(self, rng: np.random.Generator) -> float:
        """One draw of τ*, by inverse CDF."""
        return self.quantile(float(rng.random()))

    def probability(self, confidence: float) -> float:
        """P(good) of a decision of that confidence: the posterior mean of the curve."""
        grid = self._grid
        odds = _log_odds(self.prior, grid.thresholds, grid.slopes, confidence)
        return float(np.sum(expit(odds) * grid.joint))

    def of_agent(self, agent: Threshold) -> float:
        """The expected threshold for an agent, of whose own decisions `agent` is the belief.

        Its offset is scaled by `prior.offset_share`, and the result clamped to the prior's bounds.
        """
        moved = self.mean + self.prior.offset_share * (agent.mean - self.mean)
        return min(max(moved, self.prior.lowest), self.prior.highest)

    @cached_property
    def _grid(self) -> _Grid:
        """The posterior on cells small enough for it: where they are too large, the grid closes in on the mass."""
        mean = self.prior.slope_shape / self.prior.slope_rate
        bounds = (0.0, 1.0), (math.log(mean * _SLOPES[0]), math.log(mean * _SLOPES[1]))
        grid = self._on(*bounds)
        for _ in range(_ZOOMS):
            along = ((grid.thresholds, grid.marginal), (np.log(grid.slopes), grid.joint.sum(axis=0)))
            if all(_is_fine(*axis) for axis in along):
                break
            bounds = _closer(*along[0], bounds[0]), _closer(*along[1], bounds[1])
            grid = self._on(*bounds)
        return grid

    def _on(self, thresholds: tuple[float, float], log_slopes: tuple[float, float]) -> _Grid:
        middles, slopes = _middles(*thresholds), np.exp(_middles(*log_slopes))
        log = _beta_log_density(self.prior, middles)[:, None] + _gamma_log_density(self.prior, slopes)[None, :]
        for middle, good, bad in zip(self.confidences, self.good, self.bad, strict=True):
            odds = _log_odds(self.prior, middles, slopes, float(middle))
            # ln P(good) = odds − ln(1 + e^odds), and ln P(bad) lacks the first term.
            log = log + good * odds - (good + bad) * np.logaddexp(0.0, odds)
        mass = np.exp(log - log.max())
        return _Grid(middles, slopes, np.asarray(mass / mass.sum()))


@dataclass(frozen=True, slots=True)
class _Grid:
    """Probabilities of cells, (thresholds, slopes), which sum to 1; cells are even in τ and in ln s."""

    thresholds: Floats
    slopes: Floats
    joint: Floats

    @property
    def marginal(self) -> Floats:
        """Probabilities of the thresholds."""
        return np.asarray(self.joint.sum(axis=1))


def _middles(low: float, high: float) -> Floats:
    return low + (np.arange(_CELLS) + 0.5) * (high - low) / _CELLS


def _is_fine(middles: Floats, mass: Floats) -> bool:
    centre = float(middles @ mass)
    return math.sqrt(float((middles - centre) ** 2 @ mass)) >= _RESOLVED * float(middles[1] - middles[0])


def _closer(middles: Floats, mass: Floats, bounds: tuple[float, float]) -> tuple[float, float]:
    """The cells that hold all but a negligible share, and one more at each side, within the former bounds."""
    cumulative = np.cumsum(mass)
    first = int(np.searchsorted(cumulative, _NEGLIGIBLE)) - 1
    last = int(np.searchsorted(cumulative, 1.0 - _NEGLIGIBLE)) + 2
    width = float(middles[1] - middles[0])
    return max(bounds[0], bounds[0] + first * width), min(bounds[1], bounds[0] + last * width)


def _log_odds(prior: ThresholdPrior, thresholds: Floats, slopes: Floats, confidence: float) -> Floats:
    """Log-odds of a good decision, (thresholds, slopes)."""
    costs = prior.cost_false_positive / (prior.cost_false_positive + prior.cost_false_negative)
    return np.asarray(logit(costs) + slopes[None, :] * (confidence - thresholds[:, None]))


def _beta_log_density(prior: ThresholdPrior, thresholds: Floats) -> Floats:
    return np.asarray((prior.a - 1.0) * np.log(thresholds) + (prior.b - 1.0) * np.log1p(-thresholds))


def _gamma_log_density(prior: ThresholdPrior, slopes: Floats) -> Floats:
    """Of ln s, since cells are even in it."""
    return np.asarray(prior.slope_shape * np.log(slopes) - prior.slope_rate * slopes)
