"""From which confidence on to act: Bayesian decision theory over a fitted curve (LRN-7).

P(good | c) is logistic in the confidence c. Acting on everything from τ on costs C_FP · P(bad, c ≥ τ), leaving the rest
costs C_FN · P(good, c < τ); whatever the distribution of c, the sum is least where P(good | c) passes
q = C_FP / (C_FP + C_FN). So the curve is written by that very point, P(good | c) = logistic(logit q + s·(c − τ*)), and
the posterior of τ* is a marginal of the posterior of the fit.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.special import betaln, expit, logit, logsumexp

from weft.domain.arrays import Floats
from weft.learning.evidence import MICRO
from weft.learning.parameters import BAD, CONFIDENCE_BINS, GOOD, Masses, by_bin
from weft.learning.priors import ThresholdPrior

_CELLS = 121  # of the grid, per axis
_RESOLVED = 8.0  # cells per standard deviation, from which on a sum over cells is as good as an integral
_ZOOMS = 8  # each takes the grid to at least a quarter of its width where it is too coarse
_NEGLIGIBLE = 1e-9
_SLOPES = (1e-3, 1e2)  # reach of the first grid, in prior means


def threshold_masses(confidence: float, *, good: bool, weight: float = 1.0) -> Counter[str]:
    """What one decision of a confidence in [0, 1], counted `weight` >= 0 times, says: micro-units by bin.

    Bin i of n = `CONFIDENCE_BINS` holds confidences in [i/n, (i + 1)/n).

    Raises:
        ValueError: Confidence or weight is out of its range, or not a number.
    """
    if not 0.0 <= confidence <= 1.0 or not 0.0 <= weight < math.inf:
        raise ValueError(f"expected confidence in [0, 1] and a finite weight >= 0, got {confidence}, {weight}")
    place = min(int(confidence * CONFIDENCE_BINS), CONFIDENCE_BINS - 1)
    return Counter({f"{place}/{CONFIDENCE_BINS}.{GOOD if good else BAD}": round(weight * MICRO)})


@dataclass(frozen=True, eq=False)
class Threshold:
    """A belief about τ*: Beta prior on it and Gamma prior on the slope, times the likelihood of decisions."""

    prior: ThresholdPrior
    confidences: Floats = field(default_factory=lambda: np.empty(0))  # float64 (n,), middles of the bins
    good: Floats = field(default_factory=lambda: np.empty(0))  # both float64 (n,) >= 0, decisions seen in each
    bad: Floats = field(default_factory=lambda: np.empty(0))

    def given(self, masses: Masses) -> Threshold:
        """The posterior after the masses of decisions by bin of confidence."""
        rows = by_bin(masses, (GOOD, BAD))
        middles = np.array([(place + 0.5) / bins for place, bins, _ in rows])
        seen = np.array([pair for _, _, pair in rows], dtype=np.float64).reshape(-1, 2)
        good, bad = (np.maximum(seen, 0.0) / MICRO).T.copy()  # sums over strides round differently
        return replace(self, confidences=middles, good=good, bad=bad)

    @property
    def observations(self) -> float:
        """Decisions behind the belief, beyond the prior."""
        return float(self.good.sum() + self.bad.sum())

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

    def log_evidence(self, means: Floats) -> Floats:
        """Log-likelihood of the decisions if the prior's mean were m, for each m of `means` (n,) in (0, 1).

        Up to a constant: ln E[Beta(τ*; k·m, k·(1 − m)) / Beta(τ*; a, b)] under this posterior, k = a + b.
        """
        grid, strength = self._grid, self.prior.a + self.prior.b
        a, b = strength * means[:, None], strength * (1.0 - means[:, None])
        seen = grid.marginal > 0.0
        taus, mass = grid.thresholds[seen], grid.marginal[seen]
        ratio = (a - self.prior.a) * np.log(taus) + (b - self.prior.b) * np.log1p(-taus) - betaln(a, b)
        return np.asarray(logsumexp(ratio + np.log(mass), axis=1))

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
        # The first grid spans all that the priors allow. With much evidence all mass lies in a cell or two of it, where
        # a sum is no integral: so it closes in until a standard deviation spans several cells.
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
