"""Beliefs about sizes of chunks: Gamma over a size, Dirichlet over the ways to cut what is too large (LRN-1, LRN-9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

from weft.learning.families.beta import Beta

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Gamma:
    """Gamma(shape, rate) over a size > 0.

    A size x seen in use is taken as a draw of an inverse gamma distribution with the size that is looked for as its
    scale: p(x | θ) ∝ θ/x² · e^(−θ/x). So the posterior is Gamma(shape + Σw, rate + Σw/x), whose mean moves from the
    prior's to the harmonic mean of what was seen.
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        if not (0.0 < self.shape < math.inf and 0.0 < self.rate < math.inf):
            raise ValueError(f"expected shape > 0 and rate > 0, got {self.shape}, {self.rate}")

    @property
    def mean(self) -> float:
        """Expected size, shape / rate."""
        return self.shape / self.rate

    def interval(self, level: float) -> tuple[float, float]:
        """Equal-tailed credible interval that holds the size with probability `level` in (0, 1)."""
        tail = (1.0 - level) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)

    def quantile(self, probability: float) -> float:
        """The size that is not exceeded with that probability in (0, 1)."""
        return float(gammaincinv(self.shape, probability)) / self.rate

    def sample(self, rng: np.random.Generator) -> float:
        """One draw of the size, by inverse CDF: beliefs that are close draw sizes that are close."""
        return self.quantile(float(rng.uniform(_TINY, 1.0)))

    def given(self, weight: float, inverse: float) -> Gamma:
        """The posterior after sizes of which Σw and Σw/x are known."""
        return Gamma(self.shape + weight, self.rate + inverse)


@dataclass(frozen=True, slots=True)
class Dirichlet:
    """Dirichlet(α) over the shares of categories."""

    alpha: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.alpha) < 2 or not all(0.0 < each < math.inf for each in self.alpha):
            raise ValueError(f"expected two or more α > 0, got {self.alpha}")

    @property
    def mean(self) -> tuple[float, ...]:
        """Expected shares, α / Σα."""
        total = math.fsum(self.alpha)
        return tuple(each / total for each in self.alpha)

    def interval(self, level: float) -> tuple[tuple[float, float], ...]:
        """Equal-tailed credible interval of each share, each of probability `level` in (0, 1)."""
        total = math.fsum(self.alpha)
        return tuple(Beta(each, total - each).interval(level) for each in self.alpha)

    def sample(self, rng: np.random.Generator) -> tuple[float, ...]:
        """One draw of the shares, by inverse CDFs of Gammas: beliefs that are close draw shares that are close."""
        draws = gammaincinv(np.array(self.alpha), rng.uniform(_TINY, 1.0, len(self.alpha))) + _TINY
        return tuple(float(each) for each in draws / draws.sum())

    def given(self, counts: Sequence[float]) -> Dirichlet:
        """The posterior after so many observations >= 0 of each category."""
        return Dirichlet(tuple(a + count for a, count in zip(self.alpha, counts, strict=True)))
