"""Beta beliefs about a rate, such as "this source held when it was verified", from integer evidence (LRN-4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from weft.learning.evidence import MICRO


@dataclass(frozen=True, slots=True)
class Beta:
    """Beta(a, b) over a rate in (0, 1): a prior from `conf/`, or a belief computed from one."""

    a: float
    b: float
    observations: float = 0.0  # behind the belief, beyond the prior

    def __post_init__(self) -> None:
        if not (self.a > 0.0 and self.b > 0.0):
            raise ValueError(f"expected a > 0 and b > 0, got {self.a}, {self.b}")

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
        """Equal-tailed credible interval that holds the rate with probability `level` in (0, 1)."""
        tail = (1.0 - level) / 2.0
        return float(betaincinv(self.a, self.b, tail)), float(betaincinv(self.a, self.b, 1.0 - tail))

    def sample(self, rng: np.random.Generator) -> float:
        """One draw of the rate (Thompson sampling)."""
        return float(rng.beta(self.a, self.b))

    def given(self, hits: int, misses: int) -> Beta:
        """The posterior after masses >= 0 for and against, in micro-units."""
        for_, against = hits / MICRO, misses / MICRO
        return Beta(self.a + for_, self.b + against, self.observations + for_ + against)


def confidence(n_effective: float, *, halfway: float) -> float:
    """How settled a belief is: 1 − 1/(1 + n_effective / halfway), one half at `halfway` observations."""
    return 1.0 - 1.0 / (1.0 + n_effective / halfway)
