"""Random effects in log-odds: by how much outcomes differ from what was expected of them (LRN-18).

An outcome y in {0, 1} that was expected with log-odds l is Bernoulli(σ(l + u)), with u ~ Normal(0, variance). What was
expected anyway moves u little, a surprise moves it much. The posterior is log-concave: its mode is reached by Newton
steps, and its curvature there gives the deviation (Laplace's approximation; Breslow and Clayton, JASA 1993).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_STEPS = 40  # halved steps reach 1e-9 from anywhere in a few; the rest costs nothing
_REACH = 4.0  # of one step, in log-odds: Newton's overshoots where the curve is flat


def random_effects(
    log_odds: Floats, good: Floats, weight: Floats, of: Ints, *, count: int, variance: Floats | float
) -> tuple[Floats, Floats]:
    """Mode and standard deviation of each effect.

    Args:
        log_odds: What was expected of each outcome, (n,).
        good: 1 for a good outcome, 0 for a bad one, or a share between, (n,).
        weight: Observations that each counts, >= 0, (n,).
        of: The effect that each speaks for, (n,).
        count: How many effects there are; one without outcomes is 0.
        variance: Of the effects, > 0; of all, or of each, (count,).

    Examples:
        >>> three, expected = np.ones(3), np.full(3, -2.0)
        >>> u, deviation = random_effects(expected, three, three, np.zeros(3, dtype=int), count=2, variance=9.0)
        >>> u.round(1).tolist(), deviation.round(1).tolist()
        ([3.8, 0.0], [1.5, 3.0])
    """
    effects = np.zeros(count)

    def slopes() -> tuple[Floats, Floats]:
        """Slope of the log posterior, and how much it bends."""
        expected = expit(log_odds + effects[of])
        gradient, curvature = -effects / variance, np.full(count, 1.0) / variance
        np.add.at(gradient, of, weight * (good - expected))
        np.add.at(curvature, of, weight * expected * (1.0 - expected))
        return gradient, curvature

    for _ in range(_STEPS):
        gradient, curvature = slopes()
        step = np.clip(gradient / curvature, -_REACH, _REACH)
        effects += step
        if not np.any(np.abs(step) > 1e-9):
            break
    return effects, 1.0 / np.sqrt(slopes()[1])


def learned_variance(
    residuals: Floats, spread: Floats, of: Ints, apart: Sequence[Ints], *, prior: float, strength: float
) -> float:
    """Variance of effects from how outcomes of one thing go together beyond what was expected (empirical Bayes).

    Of two outcomes of the same thing, the product of their residuals y − p averages Cov(p, p') of the effect, about
    variance · p(1 − p) · p'(1 − p'). The estimate counts as many pairs as there are, the prior as `strength`.

    Args:
        residuals: y − p of each outcome, (n,).
        spread: p(1 − p) of each, (n,).
        of: The thing that each is an outcome of, (n,).
        apart: Finer numbers, (n,) each: outcomes that share one do not make a pair. No two share several.
        prior: > 0.
        strength: Pairs that the prior is worth, > 0.

    Returns:
        Above 0: at least what the prior alone leaves.
    """
    products, scale, pairs = (
        _pairs(values, of) - sum(_pairs(values, finer) for finer in apart)
        for values in (residuals, spread, np.ones_like(residuals))
    )
    if pairs <= 0.0 or scale <= 0.0:
        return prior
    estimate = max(0.0, products / scale)
    return (strength * prior + pairs * estimate) / (strength + pairs)


def _pairs(values: Floats, of: Ints) -> float:
    """Sum over ordered pairs of different rows with the same number of the product of their values."""
    sums = np.bincount(of, weights=values)
    return float(np.sum(sums**2) - np.sum(values**2))
