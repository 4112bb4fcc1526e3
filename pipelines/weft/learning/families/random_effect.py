"""Random effects in log-odds: by how much outcomes differ from what was expected of them (LRN-18).

An outcome y in {0, 1} that was expected with log-odds l is Bernoulli(σ(l + u)), with u ~ Normal(0, variance). What was
expected anyway moves u little, a surprise moves it much. The posterior is log-concave: its mode is reached by Newton
steps, and its curvature there gives the deviation (Laplace's approximation; Breslow and Clayton, JASA 1993).
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logsumexp

from weft.domain.arrays import Floats, Ints

_STEPS = 40  # halved steps reach 1e-9 from anywhere in a few; the rest costs nothing
_REACH = 4.0  # of one step, in log-odds: Newton's overshoots where the curve is flat


def random_effects(
    log_odds: Floats, good: Floats, weight: Floats, of: Ints, *, count: int, variance: Floats | float
) -> tuple[Floats, Floats]:
    """Mode and standard deviation of each effect."""
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


def learned_variance(log_odds: Floats, good: Floats, weight: Floats, of: Ints, *, prior: float, spread: float) -> float:
    """Variance of effects by how outcomes of one thing go together beyond what was expected (empirical Bayes).

    The marginal likelihood of outcomes, effects integrated out (Gauss–Hermite), on a grid of variances, times a prior
    that is normal in their logarithm. Things with a single outcome say nothing of how outcomes go together.

    Returns:
        The posterior's geometric mean, > 0.
    """
    _, number, counts = np.unique(of, return_inverse=True, return_counts=True)
    # The first thousands are enough, and the same for the same outcomes: they are numbered in the order of `of`.
    several = np.cumsum(counts > 1) * (counts > 1)  # numbered from 1; 0 for things with one outcome
    some = (several[number] > 0) & (several[number] <= _THINGS)
    if not some.any():
        return prior
    group, count = several[number[some]] - 1, int(several[number[some]].max())
    steps = np.arange(-_GRID, _GRID + 1) * (_REACH_OF_GRID * spread / _GRID)
    logs = np.array(
        [
            _marginal(log_odds[some], good[some], weight[some], group, count, prior * float(np.exp(step)))
            for step in steps
        ]
    )
    # The prior is normal in ln variance, on whose steps the grid lies; the mean of these is the geometric one.
    logs -= 0.5 * (steps / spread) ** 2
    shares = np.exp(logs - logs.max())
    return float(prior * np.exp(np.sum(shares * steps) / np.sum(shares)))


_GRID, _REACH_OF_GRID = 6, 2.5  # steps either way, and how many standard deviations they span
_THINGS = 2_000  # tell a variance within a few percent; reading them costs some milliseconds
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)


def _marginal(log_odds: Floats, good: Floats, weight: Floats, of: Ints, count: int, variance: float) -> float:  # noqa: PLR0917
    """Log likelihood of outcomes under a variance of their effects."""
    shifted = log_odds[:, None] + np.sqrt(variance) * _NODES
    each = weight[:, None] * (good[:, None] * shifted - np.logaddexp(0.0, shifted))
    sums = np.zeros((count, len(_NODES)))
    np.add.at(sums, of, each)
    return float(np.sum(logsumexp(sums, axis=1, b=_WEIGHTS / _WEIGHTS.sum())))
