"""From belief in agreement to weights: log-odds, floored at 0, as shares of the active signals (LRN-4).

What signals have in common is taken out of the log-odds: the weights w >= 0 minimise ½·w'Σw − ℓ'w, with ℓ the log-odds
and Σ the covariance of the signals within outcomes of one kind. Where none is negative, w = Σ⁻¹ℓ, the direction of
Fisher's linear discriminant. Before evidence Σ is a multiple of the unit matrix, and the weights are those stated.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from pipelines.domain.ranking import Signal, WeightBelief
from pipelines.learning.agreement import AgreementPosterior
from pipelines.learning.gathering import SIGNALS
from pipelines.learning.priors import IntervalSettings

Floats = NDArray[np.float64]

# A draw may round to 0 or 1, whose log-odds are infinite; half a float's resolution keeps it finite.
_EDGE = float(np.finfo(np.float64).epsneg)
_SWEEPS = 500  # of coordinate descent, which settles within dozens unless signals say nearly the same
_SETTLED = 1e-9  # relative change of the largest weight at which it has


def believed_weights(
    posterior: AgreementPosterior, active: Collection[Signal], interval: IntervalSettings
) -> dict[Signal, WeightBelief]:
    """Shares at the posterior mean of agreement, with equal-tailed intervals from draws of a fixed seed.

    Where no active signal agrees with outcomes more often than not, the shares are those of the prior.

    Raises:
        ValueError: No signal is active.
    """
    columns = _columns(active)
    a, b = posterior.a[columns], posterior.b[columns]
    fallback = _fallback(posterior.prior_log_odds[columns])
    spread = _among(posterior, columns)
    shares = _exact(_shares((a / (a + b)).mean(axis=-1)[None], spread, fallback)[0])
    draws = _shares(_draws(a, b, np.random.default_rng(interval.seed), interval.draws), spread, fallback)
    tail = (1.0 - interval.level) / 2.0
    low, high = np.quantile(draws, [tail, 1.0 - tail], axis=0)
    return {
        SIGNALS[column]: WeightBelief(
            mean=share,
            low=min(float(low[place]), share),
            high=max(float(high[place]), share),
            n_effective=float(posterior.n_effective[column]),
            level=posterior.level[column],
        )
        for place, (column, share) in enumerate(zip(columns, shares, strict=True))
    }


def sampled_shares(
    posterior: AgreementPosterior, active: Collection[Signal], rng: np.random.Generator
) -> dict[Signal, float]:
    """Shares at one draw of every agreement.

    Raises:
        ValueError: No signal is active.
    """
    columns = _columns(active)
    fallback = _fallback(posterior.prior_log_odds[columns])
    draw = _draws(posterior.a[columns], posterior.b[columns], rng, 1)
    shares = _shares(draw, _among(posterior, columns), fallback)[0]
    return {SIGNALS[column]: share for column, share in zip(columns, _exact(shares), strict=True)}


def share_draws(
    posterior: AgreementPosterior, active: Collection[Signal], rng: np.random.Generator, n: int
) -> dict[Signal, Floats]:
    """Shares at `n` draws of every agreement, float64 (n,) by signal.

    Raises:
        ValueError: No signal is active.
    """
    columns = _columns(active)
    fallback = _fallback(posterior.prior_log_odds[columns])
    draws = _draws(posterior.a[columns], posterior.b[columns], rng, n)
    shares = _shares(draws, _among(posterior, columns), fallback)
    return {SIGNALS[column]: shares[:, place] for place, column in enumerate(columns)}


def _columns(active: Collection[Signal]) -> list[int]:
    columns = [index for index, signal in enumerate(SIGNALS) if signal in active]
    if not columns:
        raise ValueError("expected at least one active signal, got none")
    return columns


def _draws(a: Floats, b: Floats, rng: np.random.Generator, n: int) -> Floats:
    """Agreement, the mean of the rates after good and after bad outcomes, float64 (n, signals)."""
    draws: Floats = rng.beta(a, b, size=(n, *a.shape)).mean(axis=-1)
    return draws


def _among(posterior: AgreementPosterior, columns: list[int]) -> Floats | None:
    return None if posterior.spread is None else posterior.spread[np.ix_(columns, columns)]


def _shares(agreement: Floats, spread: Floats | None, fallback: Floats) -> Floats:
    """Normalised weights by agreement (n, signals); `fallback` where all are 0."""
    odds = logit(np.clip(agreement, _EDGE, 1.0 - _EDGE))
    weights = np.maximum(odds, 0.0) if spread is None else discriminant(odds, spread)
    total = weights.sum(axis=-1, keepdims=True)
    return np.where(total > 0.0, weights / np.where(total > 0.0, total, 1.0), fallback)


def discriminant(odds: Floats, spread: Floats) -> Floats:
    """The w >= 0 that minimise ½·w'Σw − ℓ'w, for each row ℓ of `odds` (n, signals).

    By descent along one coordinate after the other, which converges for any positive definite Σ (Tseng, Journal of
    Optimization Theory and Applications 2001).

    Args:
        spread: Σ, positive definite (signals, signals).

    Examples:
        >>> discriminant(np.array([[1.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 0.5]])).tolist()
        [[1.0, 2.0]]
        >>> discriminant(np.array([[1.0, 0.1]]), np.array([[1.0, 0.5], [0.5, 1.0]])).tolist()  # the second adds nothing
        [[1.0, 0.0]]
    """
    weights = np.maximum(odds, 0.0) / np.diag(spread)
    for _ in range(_SWEEPS):
        before = weights.copy()
        for place, variance in enumerate(np.diag(spread)):
            weights[:, place] += (odds[:, place] - weights @ spread[:, place]) / variance
            np.maximum(weights[:, place], 0.0, out=weights[:, place])
        if np.abs(weights - before).max() <= _SETTLED * np.abs(weights).max():
            break
    return weights


def _fallback(prior_log_odds: Floats) -> Floats:
    total = prior_log_odds.sum()
    return prior_log_odds / total if total > 0.0 else np.full_like(prior_log_odds, 1.0 / len(prior_log_odds))


def _exact(shares: Floats) -> list[float]:
    """The shares with their sum, rounded once, not above 1, so that no score exceeds 1 by a rounding."""
    exact = [float(share) for share in shares]
    largest = max(range(len(exact)), key=exact.__getitem__)
    exact[largest] = 1.0 - math.fsum(exact[:largest] + exact[largest + 1 :])
    return exact
