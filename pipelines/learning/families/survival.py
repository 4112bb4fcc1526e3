"""How fast knowledge goes stale: a belief about the decay rate λ per hour from current-status data (LRN-6).

A document that was accurate at age A says e^(−λA), one that was not 1 − e^(−λA). With a Gamma prior there is no closed
form, so the posterior is integrated numerically over ln λ, where it is log-concave.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import ndtri

from pipelines.learning.evidence import MICRO
from pipelines.learning.families.beta import confidence

Floats = NDArray[np.float64]

_POINTS = 257
"""Of the grid over ln λ: neighbours stand an eighth of a standard deviation apart or less, where the trapezoidal rule
on a smooth density that vanishes at both ends is exact to rounding (Trefethen and Weideman, SIAM Review 2014)."""
_NEGLIGIBLE = 40.0
"""Density that is e^40 times below its peak is left out."""
_EDGE = 1e-12
_CERTAIN = 500.0  # a hazard beyond which e^hazard is as good as infinite
_FURTHEST_BIN = 400


@dataclass(frozen=True, slots=True)
class SurvivalEvidence:
    """Mass of accurate and inaccurate documents by bin of age, in micro-units. Adding is merging.

    Attributes:
        masses: (accurate, inaccurate) by bin: bin i of b per doubling holds ages of 2^(i/b) to 2^((i+1)/b) hours.

    Examples:
        >>> seen = SurvivalEvidence.of(48.0, accurate=True, per_doubling=4)
        >>> seen + SurvivalEvidence.of(50.0, accurate=False, weight=0.5, per_doubling=4)
        SurvivalEvidence(masses={(22, 4): (1000000, 500000)})
    """

    masses: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, age_hours: float, *, accurate: bool, per_doubling: int, weight: float = 1.0) -> SurvivalEvidence:
        """Evidence of one document of an age >= 0, counted `weight` >= 0 times.

        Raises:
            ValueError: Either is out of its range, or not a number.
        """
        if not 0.0 <= age_hours < math.inf or not 0.0 <= weight < math.inf:
            raise ValueError(f"expected a finite age >= 0 and a finite weight >= 0, got {age_hours}, {weight}")
        mass = round(weight * MICRO)
        return cls({(age_bin(age_hours, per_doubling), per_doubling): (mass, 0) if accurate else (0, mass)})

    def __add__(self, other: SurvivalEvidence) -> SurvivalEvidence:
        total = dict(self.masses)
        for place, (accurate, inaccurate) in other.masses.items():
            before = total.get(place, (0, 0))
            total[place] = (before[0] + accurate, before[1] + inaccurate)
        return SurvivalEvidence(total)

    @property
    def observations(self) -> float:
        """How many documents there are."""
        return sum(max(mass, 0) for pair in self.masses.values() for mass in pair) / MICRO


def age_bin(age_hours: float, per_doubling: int) -> int:
    """The bin of an age; the first hour is in the first bin, whatever lies behind thousands of years in the last.

    Examples:
        >>> age_bin(0.0, 4), age_bin(1.0, 4), age_bin(2.0, 4), age_bin(47.9, 4)
        (0, 0, 4, 22)
    """
    return min(int(per_doubling * math.log2(max(age_hours, 1.0))), _FURTHEST_BIN)


@dataclass(frozen=True, eq=False)
class Survival:
    """A belief about λ: Gamma(shape, rate) prior times the likelihood of documents by age.

    Attributes:
        shape, rate_hours: Of the prior, both > 0.
        ages: float64 (n,), hours; the geometric middle of each bin.
        accurate, inaccurate: float64 (n,) >= 0, documents seen at each age.
    """

    shape: float
    rate_hours: float
    ages: Floats = field(default_factory=lambda: np.empty(0))
    accurate: Floats = field(default_factory=lambda: np.empty(0))
    inaccurate: Floats = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if not (0.0 < self.shape < math.inf and 0.0 < self.rate_hours < math.inf):
            raise ValueError(f"expected shape > 0 and rate > 0, got {self.shape}, {self.rate_hours}")

    def given(self, evidence: SurvivalEvidence, *, recency: float = 1.0) -> Survival:
        """The posterior after `evidence`, each unit of which counts `recency` in [0, 1]."""
        rows = sorted(evidence.masses.items())
        ages = np.array([2.0 ** ((place + 0.5) / per_doubling) for (place, per_doubling), _ in rows])
        seen = np.array([masses for _, masses in rows], dtype=np.float64).reshape(-1, 2)
        counts = recency * np.maximum(seen, 0.0) / MICRO
        return Survival(
            self.shape,
            self.rate_hours,
            np.concatenate([self.ages, ages]),
            np.concatenate([self.accurate, counts[:, 0]]),
            np.concatenate([self.inaccurate, counts[:, 1]]),
        )

    @property
    def observations(self) -> float:
        """Documents behind the belief, beyond the prior."""
        return float(self.accurate.sum() + self.inaccurate.sum())

    def confidence(self, halfway: float) -> float:
        """How settled the belief is, in [0, 1)."""
        return confidence(self.observations, halfway=halfway)

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

        By Jensen's inequality it exceeds e^(−age · mean λ): old items fade, they do not vanish.

        Examples:
            >>> round(Survival(2.0, 200.0).freshness(200.0), 12)  # (rate / (rate + age))^shape of the prior alone
            0.25
        """
        rates, mass = self._grid
        return float(np.exp(-max(age_hours, 0.0) * rates) @ mass)

    def freshness_of_ages(self, ages_hours: Floats) -> Floats:
        """`freshness` of each age (n,); NaN stays NaN."""
        rates, mass = self._grid
        # Summed line by line: a product of matrices rounds an age differently in other company (ARC-9).
        return np.asarray((np.exp(-np.maximum(ages_hours, 0.0)[:, None] * rates) * mass).sum(axis=1))

    @cached_property
    def _grid(self) -> tuple[Floats, Floats]:
        """Rates (n,) and their probabilities (n,), which sum to 1."""
        mode = self._mode()
        step = 1e-4
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
        gone = np.divide(bounded, np.expm1(bounded), out=np.ones_like(hazard), where=bounded > 0.0)
        return self.shape - rate * self.rate_hours - float(self.accurate @ hazard) + float(self.inaccurate @ gone)

    def _log_density(self, log_rates: Floats) -> Floats:
        rates = np.exp(log_rates)
        hazard = rates[:, None] * self.ages
        lived = -hazard @ self.accurate
        died = np.log(-np.expm1(-hazard)) @ self.inaccurate
        return np.asarray(self.shape * log_rates - self.rate_hours * rates + lived + died)
