"""How fast knowledge goes stale: a belief about the decay rate λ per hour from current-status data (LRN-6).

A document that was accurate at age A says e^(−λA), one that was not 1 − e^(−λA). With a Gamma prior there is no closed
form, so the posterior is integrated numerically over ln λ, where it is log-concave.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy
from scipy.special import logsumexp, ndtri

from weft.domain.arrays import Floats
from weft.learning.evidence import MICRO
from weft.learning.parameters import ACCURATE, AGE_BINS, INACCURATE, Masses, by_bin

_POINTS = 257
"""Of the grid over ln λ: neighbours stand an eighth of a standard deviation apart or less, where the trapezoidal rule
on a smooth density that vanishes at both ends is exact to rounding (Trefethen and Weideman, SIAM Review 2014)."""
_NEGLIGIBLE = 40.0
"""Density that is e^40 times below its peak is left out."""
_EDGE = 1e-12
_CERTAIN = 500.0  # a hazard beyond which e^hazard is as good as infinite
_FURTHEST_BIN = 400


def survival_masses(age_hours: float, *, accurate: bool, weight: float = 1.0) -> Counter[str]:
    """What one document of an age >= 0, counted `weight` >= 0 times, says: micro-units by bin.

    Bin i of b = `AGE_BINS` per doubling holds ages of 2^(i/b) to 2^((i+1)/b) hours.

    Raises:
        ValueError: Age or weight is out of its range, or not a number.
    """
    if not 0.0 <= age_hours < math.inf or not 0.0 <= weight < math.inf:
        raise ValueError(f"expected a finite age >= 0 and a finite weight >= 0, got {age_hours}, {weight}")
    kind = ACCURATE if accurate else INACCURATE
    return Counter({f"{age_bin(age_hours)}/{AGE_BINS}.{kind}": round(weight * MICRO)})


def age_bin(age_hours: float) -> int:
    """The bin of an age; the first hour is in the first bin, whatever lies behind thousands of years in the last."""
    return min(int(AGE_BINS * math.log2(max(age_hours, 1.0))), _FURTHEST_BIN)


@dataclass(frozen=True, eq=False)
class Survival:
    """A belief about λ: Gamma(shape, rate) prior times the likelihood of documents by age."""

    shape: float  # both Of the prior, both > 0
    rate_hours: float
    ages: Floats = field(default_factory=lambda: np.empty(0))  # float64 (n,), hours; the geometric middle of each bin
    accurate: Floats = field(default_factory=lambda: np.empty(0))  # both float64 (n,) >= 0, documents seen at each age
    inaccurate: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if not (0.0 < self.shape < math.inf and 0.0 < self.rate_hours < math.inf):
            raise ValueError(f"expected shape > 0 and rate > 0, got {self.shape}, {self.rate_hours}")

    def given(self, masses: Masses) -> Survival:
        """The posterior after the masses of documents by bin of age."""
        rows = by_bin(masses, (ACCURATE, INACCURATE))
        ages = np.array([2.0 ** ((place + 0.5) / width) for place, width, _ in rows])
        seen = np.array([pair for _, _, pair in rows], dtype=np.float64).reshape(-1, 2)
        accurate, inaccurate = (np.maximum(seen, 0.0) / MICRO).T.copy()  # sums over strides round differently
        return replace(self, ages=ages, accurate=accurate, inaccurate=inaccurate)

    @property
    def observations(self) -> float:
        """Documents behind the belief, beyond the prior."""
        return float(self.accurate.sum() + self.inaccurate.sum())

    @property
    def mean(self) -> float:
        """Expected λ, per hour."""
        rates, mass = self._grid
        return float(rates @ mass)

    @property
    def variance(self) -> float:
        """Variance of λ."""
        rates, mass = self._grid
        return float((rates - self.mean) ** 2 @ mass)

    def interval(self, level: float) -> tuple[float, float]:
        """Equal-tailed credible interval of λ."""
        tail = (1.0 - level) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)

    def quantile(self, probability: float) -> float:
        """The λ that is not exceeded with that probability in (0, 1)."""
        log_rates, scores = self._quantiles
        return float(np.exp(np.interp(ndtri(probability), scores, log_rates)))

    def sample(self, rng: np.random.Generator) -> float:
        """One draw of λ, by inverse CDF."""
        return self.quantile(float(rng.random()))

    def half_life(self, level: float) -> tuple[float, float, float]:
        """Median half-life in hours, ln 2 / λ, and its equal-tailed credible interval: (low, median, high)."""
        low, high = self.interval(level)
        return math.log(2.0) / high, math.log(2.0) / self.quantile(0.5), math.log(2.0) / low

    def freshness(self, age_hours: float) -> float:
        """Posterior mean of e^(−λ·age), in (0, 1]; an age below 0, a clock that runs ahead, counts as 0.

        By Jensen's inequality it exceeds e^(−age · mean λ): old items fade, they do not vanish. Of the prior alone it
        is (rate / (rate + age))^shape.
        """
        age_hours = max(age_hours, 0.0)
        if self.observations == 0.0:
            return float((self.rate_hours / (self.rate_hours + age_hours)) ** self.shape)
        rates, mass = self._grid
        return float(np.exp(-age_hours * rates) @ mass)

    def freshness_of_ages(self, ages_hours: Floats) -> Floats:
        """`freshness` of each age (n,); NaN stays NaN."""
        ages_hours = np.maximum(ages_hours, 0.0)
        if self.observations == 0.0:  # the closed form spares an integral per candidate
            return np.asarray((self.rate_hours / (self.rate_hours + ages_hours)) ** self.shape)
        rates, mass = self._grid
        # Summed line by line: a product of matrices rounds an age differently in other company (ARC-9).
        return np.asarray((np.exp(-ages_hours[:, None] * rates) * mass).sum(axis=1))

    def log_evidence(self, factors: Floats) -> Floats:
        """Log-likelihood of the documents if the prior were Gamma(shape, rate / g), for each g of `factors` (n,).

        Up to a constant: ln E[p(λ | g) / p(λ)] under this posterior, which is ln g^(−shape)·E[e^(−λ·rate·(1/g − 1))].
        """
        rates, mass = self._grid
        rates, mass = rates[mass > 0.0], mass[mass > 0.0]
        exponents = -rates * self.rate_hours * (1.0 / factors[:, None] - 1.0)
        return np.asarray(logsumexp(exponents + np.log(mass), axis=1) - self.shape * np.log(factors))

    @cached_property
    def _grid(self) -> tuple[Floats, Floats]:
        """Rates (n,) and their probabilities (n,), which sum to 1."""
        mode = self._mode()
        step = 1e-4
        # By differences of the slope, which is exact: the curvature only says how wide the grid must be.
        curvature = (self._slope(mode - step) - self._slope(mode + step)) / (2.0 * step)
        # Below the mode the density falls at least like λ^shape, above it like e^(−rate·λ); near it like a Gaussian.
        exponent = self.shape + float(self.inaccurate.sum())
        wide = math.sqrt(2.0 * _NEGLIGIBLE / curvature)
        below = max(wide, _NEGLIGIBLE / exponent)
        above = max(wide, math.log1p(2.0 * _NEGLIGIBLE / exponent))
        log_rates = np.linspace(mode - below, mode + above, _POINTS)
        density = self._log_density(log_rates)
        mass = np.exp(density - density.max())
        return np.exp(log_rates), mass / mass.sum()

    @cached_property
    def _quantiles(self) -> tuple[Floats, Floats]:
        """Grid points of ln λ and their normal scores, between which straight lines are nearly right; both rising."""
        rates, mass = self._grid
        # The trapezoidal rule with the first correction of Euler and Maclaurin for the slope at its end.
        cumulative = np.cumsum(mass) - mass / 2.0 - np.gradient(mass) / 12.0
        inside = (cumulative > _EDGE) & (cumulative < 1.0 - _EDGE)
        return np.log(rates[inside]), np.asarray(ndtri(cumulative[inside]))

    def _mode(self) -> float:
        """The mode over ln λ: the slope falls strictly, from `shape` + inaccurate towards minus infinity."""
        centre = math.log(self.shape / self.rate_hours)
        low, high = centre - 1.0, centre + 1.0
        while self._slope(low) <= 0.0:
            low -= 2.0
        while self._slope(high) >= 0.0:
            high += 2.0
        return float(scipy.optimize.brentq(self._slope, low, high, xtol=1e-10))

    def _slope(self, log_rate: float) -> float:
        rate = math.exp(log_rate)
        hazard = rate * self.ages
        bounded = np.minimum(hazard, _CERTAIN)
        # h / (e^h − 1) tends to 1 where h does to 0, and would overflow where it is large.
        gone = np.divide(bounded, np.expm1(bounded), out=np.ones_like(hazard), where=bounded > 0.0)
        return self.shape - rate * self.rate_hours - float(self.accurate @ hazard) + float(self.inaccurate @ gone)

    def _log_density(self, log_rates: Floats) -> Floats:
        rates = np.exp(log_rates)
        hazard = rates[:, None] * self.ages
        lived = -hazard @ self.accurate
        died = np.log(-np.expm1(-hazard)) @ self.inaccurate
        return np.asarray(self.shape * log_rates - self.rate_hours * rates + lived + died)
