"""Dirichlet beliefs about which of several ways is the right one, from integer evidence (LRN-1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from pipelines.learning.evidence import MICRO
from pipelines.learning.families.beta import Beta, confidence

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DirichletEvidence:
    """Mass seen for each category, in micro-units (>= 0). Adding is merging.

    Examples:
        >>> DirichletEvidence.of(0, 3) + DirichletEvidence.of(2, 3, weight=0.5)
        DirichletEvidence(masses=(1000000, 0, 500000))
    """

    masses: tuple[int, ...]

    @classmethod
    def of(cls, category: int, categories: int, weight: float = 1.0) -> DirichletEvidence:
        """Evidence of one observation of a category, from 0, counted `weight` >= 0 times.

        Raises:
            ValueError: There is no such category, or the weight is out of its range.
        """
        if not 0 <= category < categories or not 0.0 <= weight < math.inf:
            raise ValueError(f"expected one of {categories} categories and a finite weight >= 0, got {category}")
        return cls(tuple(round(weight * MICRO) if place == category else 0 for place in range(categories)))

    def __add__(self, other: DirichletEvidence) -> DirichletEvidence:
        return DirichletEvidence(tuple(a + b for a, b in zip(self.masses, other.masses, strict=True)))


@dataclass(frozen=True, slots=True)
class Dirichlet:
    """Dirichlet(α) over the shares of categories: a prior from `conf/`, or a belief computed from one.

    Attributes:
        observations: Behind the belief, beyond the prior.
    """

    alpha: tuple[float, ...]
    observations: float = 0.0

    def __post_init__(self) -> None:
        if len(self.alpha) < 2 or not all(0.0 < each < math.inf for each in self.alpha):
            raise ValueError(f"expected two or more α > 0, got {self.alpha}")

    @property
    def mean(self) -> tuple[float, ...]:
        """Expected shares, α / Σα."""
        total = math.fsum(self.alpha)
        return tuple(each / total for each in self.alpha)

    @property
    def variance(self) -> tuple[float, ...]:
        """Variances of the shares, those of their Betas."""
        return tuple(beta.variance for beta in self._shares())

    @property
    def likeliest(self) -> int:
        """The category of the greatest expected share, the first of equals."""
        return max(range(len(self.alpha)), key=self.alpha.__getitem__)

    def interval(self, level: float) -> tuple[tuple[float, float], ...]:
        """Equal-tailed credible interval of each share, each of probability `level` in (0, 1)."""
        return tuple(beta.interval(level) for beta in self._shares())

    def sample(self, rng: np.random.Generator) -> tuple[float, ...]:
        """One draw of the shares, by inverse CDFs of Gammas: beliefs that are close draw shares that are close."""
        low = np.finfo(np.float64).tiny
        draws = gammaincinv(np.array(self.alpha), rng.uniform(low, 1.0, len(self.alpha))) + low
        return tuple(float(each) for each in draws / draws.sum())

    def given(self, evidence: DirichletEvidence, *, recency: float = 1.0) -> Dirichlet:
        """The posterior after `evidence`, each unit of which counts `recency` in [0, 1].

        Examples:
            >>> Dirichlet((3.0, 1.0)).given(DirichletEvidence.of(1, 2, weight=4.0)).mean
            (0.375, 0.625)
        """
        counts = [recency * max(mass, 0) / MICRO for mass in evidence.masses]
        alpha = tuple(a + count for a, count in zip(self.alpha, counts, strict=True))
        return Dirichlet(alpha, self.observations + math.fsum(counts))

    def confidence(self, halfway: float) -> float:
        """How settled the belief is, in [0, 1)."""
        return confidence(self.observations, halfway=halfway)

    def _shares(self) -> list[Beta]:
        total = math.fsum(self.alpha)
        return [Beta(each, total - each) for each in self.alpha]
