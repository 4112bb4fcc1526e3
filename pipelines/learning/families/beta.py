"""Beta beliefs about a rate, such as "this signal agreed with the outcome", from integer evidence (LRN-4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from pipelines.learning.evidence import MICRO


@dataclass(frozen=True, slots=True)
class BetaEvidence:
    """Mass seen for and against a rate, in micro-units (>= 0). Adding is merging.

    Examples:
        >>> BetaEvidence.of(0.8) + BetaEvidence.of(0.4, weight=0.5)
        BetaEvidence(hits=1000000, misses=500000)
    """

    hits: int = 0
    misses: int = 0

    @classmethod
    def of(cls, agreement: float, weight: float = 1.0) -> BetaEvidence:
        """Evidence of one observation: agreement in [0, 1], counted `weight` >= 0 times.

        Raises:
            ValueError: Either is out of its range, or not a number.
        """
        if not 0.0 <= agreement <= 1.0 or not 0.0 <= weight < float("inf"):
            raise ValueError(f"expected agreement in [0, 1] and a finite weight >= 0, got {agreement}, {weight}")
        mass = round(weight * MICRO)
        hits = round(weight * agreement * MICRO)
        return cls(hits, mass - hits)

    def __add__(self, other: BetaEvidence) -> BetaEvidence:
        return BetaEvidence(self.hits + other.hits, self.misses + other.misses)


@dataclass(frozen=True, slots=True)
class Beta:
    """Beta(a, b) over a rate in (0, 1): a prior from `conf/`, or a belief computed from one.

    Attributes:
        observations: Behind the belief, beyond the prior.
    """

    a: float
    b: float
    observations: float = 0.0

    def __post_init__(self) -> None:
        if not (self.a > 0.0 and self.b > 0.0):
            raise ValueError(f"expected a > 0 and b > 0, got {self.a}, {self.b}")

    @classmethod
    def around(cls, mean: float, strength: float) -> Beta:
        """The belief of that mean in (0, 1) worth `strength` > 0 observations: Beta(κ·m, κ·(1 − m))."""
        return cls(strength * mean, strength * (1.0 - mean))

    @property
    def mean(self) -> float:
        """Expected rate, a / (a + b)."""
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> float:
        """a·b / ((a + b)²·(a + b + 1))."""
        total = self.a + self.b
        return self.a * self.b / (total * total * (total + 1.0))

    def interval(self, level: float) -> tuple[float, float]:
        """Equal-tailed credible interval that holds the rate with probability `level` in (0, 1).

        Examples:
            >>> low, high = Beta(1, 1).interval(0.9)
            >>> round(low, 6), round(high, 6)
            (0.05, 0.95)
        """
        tail = (1.0 - level) / 2.0
        return float(betaincinv(self.a, self.b, tail)), float(betaincinv(self.a, self.b, 1.0 - tail))

    def sample(self, rng: np.random.Generator) -> float:
        """One draw of the rate (Thompson sampling)."""
        return float(rng.beta(self.a, self.b))

    def given(self, evidence: BetaEvidence, *, recency: float = 1.0) -> Beta:
        """The posterior after `evidence`, each unit of which counts `recency` in [0, 1].

        Examples:
            >>> Beta(1, 1).given(BetaEvidence.of(1.0) + BetaEvidence.of(0.0, weight=0.5)).mean
            0.571...
        """
        hits, misses = (recency * side / MICRO for side in (evidence.hits, evidence.misses))
        return Beta(self.a + hits, self.b + misses, self.observations + hits + misses)

    def confidence(self, halfway: float) -> float:
        """How settled the belief is, in [0, 1); see `confidence`."""
        return confidence(self.observations, halfway=halfway)


def confidence(n_effective: float, *, halfway: float) -> float:
    """How settled a belief is: 1 − 1/(1 + n_effective / halfway), one half at `halfway` observations.

    Examples:
        >>> confidence(0.0, halfway=10.0), confidence(10.0, halfway=10.0)
        (0.0, 0.5)
    """
    return 1.0 - 1.0 / (1.0 + n_effective / halfway)
