"""How fast knowledge goes stale: a Gamma belief about the decay rate λ per hour (LRN-6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.learning.priors import GammaPrior


def freshness(belief: GammaPrior, age_hours: float) -> float:
    """Posterior mean of e^(−λ·age): (rate / (rate + age))^shape for λ ~ Gamma(shape, rate).

    By Jensen's inequality it exceeds e^(−age · mean λ): old items fade, they do not vanish. An age below 0, a clock
    that runs ahead, counts as 0.

    Examples:
        >>> freshness(GammaPrior(shape=2.0, rate_hours=200.0), 200.0)
        0.25
    """
    return float((belief.rate_hours / (belief.rate_hours + max(age_hours, 0.0))) ** belief.shape)


def freshness_of_ages(belief: GammaPrior, ages_hours: NDArray[np.float64]) -> NDArray[np.float64]:
    """`freshness` of each age (n,); NaN stays NaN."""
    mean: NDArray[np.float64] = (belief.rate_hours / (belief.rate_hours + np.maximum(ages_hours, 0.0))) ** belief.shape
    return mean
