"""Gamma beliefs about a size, such as how long a chunk should be, from integer evidence (LRN-1, LRN-9).

A size x seen in use is taken as a draw of an inverse gamma distribution with scale θ, the size that is looked for:
p(x | θ) ∝ θ/x² · e^(−θ/x). Its conjugate prior is Gamma(shape, rate), so n observations worth Σw and Σw/x make
Gamma(shape + Σw, rate + Σw/x): a mean that moves from the prior's to the harmonic mean of what was seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

from pipelines.learning.evidence import MICRO
from pipelines.learning.families.beta import confidence

SCALE = 1_000.0
"""Inverses are kept per so many units: Σw·1000/x keeps its digits in micro-units, for sizes up to thousands."""


@dataclass(frozen=True, slots=True)
class GammaEvidence:
    """Statistics of sizes, in micro-units: Σw, Σw·1000/x and Σw·ln x. Adding is merging.

    Examples:
        >>> GammaEvidence.of(500.0) + GammaEvidence.of(250.0, weight=0.5)
        GammaEvidence(weight=1500000, inverse=4000000, log=8975338)
    """

    weight: int = 0
    inverse: int = 0
    log: int = 0

    @classmethod
    def of(cls, size: float, weight: float = 1.0) -> GammaEvidence:
        """Evidence of one size >= 1, counted `weight` >= 0 times.

        Raises:
            ValueError: Either is out of its range, or not a number.
        """
        if not 1.0 <= size < math.inf or not 0.0 <= weight < math.inf:
            raise ValueError(f"expected a finite size >= 1 and a finite weight >= 0, got {size}, {weight}")
        inverse, log = weight * SCALE / size, weight * math.log(size)
        return cls(round(weight * MICRO), round(inverse * MICRO), round(log * MICRO))

    def __add__(self, other: GammaEvidence) -> GammaEvidence:
        return GammaEvidence(self.weight + other.weight, self.inverse + other.inverse, self.log + other.log)

    def times(self, factor: float) -> GammaEvidence:
        """The same sizes, each counted `factor` >= 0 times as often, rounded to micro-units."""
        return GammaEvidence(round(self.weight * factor), round(self.inverse * factor), round(self.log * factor))

    def enlarged(self, factor: float) -> GammaEvidence:
        """Evidence of `factor` > 0 times the sizes.

        Examples:
            >>> GammaEvidence.of(250.0).enlarged(2.0) == GammaEvidence.of(500.0)
            True
        """
        log = self.log + round(self.weight * math.log(factor))
        return GammaEvidence(self.weight, round(self.inverse / factor), log)

    @property
    def observations(self) -> float:
        """How many sizes there are, >= 0; a negative balance counts as none."""
        return max(self.weight, 0) / MICRO

    @property
    def inverses(self) -> float:
        """Σw/x, >= 0."""
        return max(self.inverse, 0) / (MICRO * SCALE)

    @property
    def typical(self) -> float:
        """Geometric mean of the sizes, e^(Σw·ln x / Σw); NaN without any."""
        return math.exp(self.log / self.weight) if self.weight > 0 else math.nan


@dataclass(frozen=True, slots=True)
class Gamma:
    """Gamma(shape, rate) over a size > 0: a prior from `conf/`, or a belief computed from one.

    Attributes:
        observations: Behind the belief, beyond the prior.
    """

    shape: float
    rate: float
    observations: float = 0.0

    def __post_init__(self) -> None:
        if not (0.0 < self.shape < math.inf and 0.0 < self.rate < math.inf):
            raise ValueError(f"expected shape > 0 and rate > 0, got {self.shape}, {self.rate}")

    @classmethod
    def around(cls, mean: float, rate: float) -> Gamma:
        """The belief of that mean > 0 and rate > 0: Gamma(mean · rate, rate)."""
        return cls(mean * rate, rate)

    @property
    def mean(self) -> float:
        """Expected size, shape / rate."""
        return self.shape / self.rate

    @property
    def variance(self) -> float:
        """Of the size: shape / rate²."""
        return self.shape / self.rate**2

    def interval(self, level: float) -> tuple[float, float]:
        """Equal-tailed credible interval that holds the size with probability `level` in (0, 1).

        Examples:
            >>> low, high = Gamma(1.0, 1.0).interval(0.9)  # of an exponential: −ln .95 and −ln .05
            >>> round(low, 6), round(high, 6)
            (0.051293, 2.995732)
        """
        tail = (1.0 - level) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)

    def quantile(self, probability: float) -> float:
        """The size that is not exceeded with that probability in (0, 1)."""
        return float(gammaincinv(self.shape, probability)) / self.rate

    def sample(self, rng: np.random.Generator) -> float:
        """One draw of the size, by inverse CDF: beliefs that are close draw sizes that are close."""
        return self.quantile(float(rng.uniform(np.finfo(np.float64).tiny, 1.0)))

    def given(self, evidence: GammaEvidence, *, recency: float = 1.0) -> Gamma:
        """The posterior after `evidence`, each unit of which counts `recency` in [0, 1].

        Examples:
            >>> Gamma(30.0, 0.1).given(GammaEvidence.of(100.0, weight=10.0)).mean
            200.0
        """
        seen = recency * evidence.observations
        return Gamma(self.shape + seen, self.rate + recency * evidence.inverses, self.observations + seen)

    def confidence(self, halfway: float) -> float:
        """How settled the belief is, in [0, 1)."""
        return confidence(self.observations, halfway=halfway)
