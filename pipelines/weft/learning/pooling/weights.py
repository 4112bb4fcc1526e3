"""From belief in agreement to weights: log-odds, floored at 0, as shares of the active signals (LRN-4).

What signals have in common is taken out of the log-odds: the weights w >= 0 minimise ½·w'Σw − ℓ'w, with ℓ the log-odds
and Σ the covariance of the signals within outcomes of one kind. Where none is negative, w = Σ⁻¹ℓ, the direction of
Fisher's linear discriminant. Before evidence Σ is a multiple of the unit matrix, and the weights are those stated.

A signal whose spread was hardly seen is weighed by its log-odds alone: nothing divided by next to nothing says nothing.

Few outcomes find a direction by chance. D² says how much better it separates good from bad than the prior direction. D²
is compared with what chance alone gives, and the weights lie between both directions, by their Akaike weights (Burnham
and Anderson 2002). If nothing better than the prior was found, the prior holds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit, logit

from weft.domain.arrays import Floats
from weft.domain.ranking import Signal, WeightBelief
from weft.learning.pooling.agreement import AgreementPosterior
from weft.learning.pooling.covariance import SignalCovariance
from weft.learning.pooling.gathering import SIGNALS

# A draw may round to 0 or 1, whose log-odds are infinite; half a float's resolution keeps it finite.
_EDGE = float(np.finfo(np.float64).epsneg)
SEED = 20240  # fixed, so that the same beliefs are always reported with the same intervals
_DRAWS = 1000  # per interval: its bounds then stand within about a percentage point
_VAGUEST = 1.0  # no part is worth less than one observation
_SWEEPS = 500  # of coordinate descent, which settles within dozens unless signals say nearly the same
_SETTLED = 1e-9  # relative change of the largest weight at which it has


class SharePosterior:
    """What is believed of the shares of some signals: expected ones, and draws of them (Thompson).

    Raises:
        ValueError: No signal is active.
    """

    def __init__(self, posterior: AgreementPosterior, active: Collection[Signal]) -> None:
        self._columns = _columns(active)
        self._a, self._b = posterior.a[self._columns], posterior.b[self._columns]
        self._stated_odds = posterior.prior_log_odds[self._columns]
        self._stated = _stated(self._stated_odds)
        self._spread = _among(posterior.spread, self._columns)
        self._observed = posterior.n_effective[self._columns]
        self._levels = [posterior.level[column] for column in self._columns]

    def believed(self, level: float) -> dict[Signal, WeightBelief]:
        """Shares at the posterior mean of agreement, with equal-tailed intervals from draws of a fixed seed.

        Where no active signal agrees with outcomes more often than not, the shares are those of the prior.
        """
        shares = _exact(self._mean)
        draws = self._drawn(np.random.default_rng(SEED), _DRAWS)
        tail = (1.0 - level) / 2.0
        low, high = np.quantile(draws, [tail, 1.0 - tail], axis=0)
        return {
            SIGNALS[column]: WeightBelief(
                mean=share,
                low=min(float(low[place]), share),
                high=max(float(high[place]), share),
                n_effective=float(self._observed[place]),
                level=self._levels[place],
            )
            for place, (column, share) in enumerate(zip(self._columns, shares, strict=True))
        }

    def means(self) -> dict[Signal, float]:
        """The expected shares alone."""
        return {SIGNALS[column]: share for column, share in zip(self._columns, _exact(self._mean), strict=True)}

    def sample(self, rng: np.random.Generator) -> dict[Signal, float]:
        """One draw of the shares: >= 0, with sum 1, and on average the expected ones."""
        shares = _exact(self._drawn(rng, 1)[0])
        return {SIGNALS[column]: share for column, share in zip(self._columns, shares, strict=True)}

    def draws(self, rng: np.random.Generator, n: int) -> dict[Signal, Floats]:
        """`n` draws of the shares, float64 (n,) by signal."""
        shares = self._drawn(rng, n)
        return {SIGNALS[column]: shares[:, place] for place, column in enumerate(self._columns)}

    def _drawn(self, rng: np.random.Generator, n: int) -> Floats:
        """Draws of the shares, (n, signals): unbiased, and each as far apart as it is at draws of agreement."""
        return self._sticks.draws(rng, n)

    @cached_property
    def _sticks(self) -> StickBreaking:
        return StickBreaking.of(self._mean, self._at_draws(np.random.default_rng(SEED), _DRAWS).var(axis=0))

    @cached_property
    def _mean(self) -> Floats:
        """Shares at the mean of agreement, (signals,)."""
        doubt = self._doubt()
        mean: Floats = (1.0 - doubt) * self._learned() + doubt * self._stated
        return mean

    def _at_draws(self, rng: np.random.Generator, n: int) -> Floats:
        """Shares at draws of agreement, (n, signals): as far apart as those found are, about the mean of shares.

        A Beta takes every outcome for a coin; the mean of a signal that varies less is known better by that much.
        Shares are floored at 0, so that their average gives more than it should to signals that are worth nothing.
        """
        agreement: Floats = rng.beta(self._a, self._b, size=(n, *self._a.shape)).mean(axis=-1)
        drawn = _log_odds(agreement)
        learned = self._shares(self._mean_log_odds() + self._spread.noise * (drawn - self._mean_log_odds()))
        return _shares(np.maximum(learned + (self._mean - self._learned()), 0.0), self._stated)

    def _learned(self) -> Floats:
        learned: Floats = self._shares(self._mean_log_odds())[0]
        return learned

    def _mean_log_odds(self) -> Floats:
        """Log-odds of agreement, the mean of the rates after good and after bad outcomes, (1, signals)."""
        return _log_odds((self._a / (self._a + self._b)).mean(axis=-1)[None])

    def _shares(self, odds: Floats) -> Floats:
        """Shares by the discriminant, as far as signals are known to vary, and for the rest by log-odds alone.

        All that vary share what is stated of them all: distances from a page's mean are on another scale than stated
        odds, and what is learned of some signals must not raise others of which nothing was told.
        """
        certainty = self._spread.certainty
        scaled = odds + certainty * (self._stated_odds - self._mean_log_odds())
        alone = _shares(np.maximum(scaled, 0.0), self._stated)
        together = _shares(certainty * discriminant(odds, self._spread.covariance), alone)
        return (alone @ certainty)[:, None] * together + (1.0 - certainty) * alone

    def _doubt(self) -> float:
        """The part of the weights that is left to what is stated, in [0, 1].

        D² = ŵ'Σŵ − (ℓ'w₀)² / w₀'Σw₀ is by how much the weights found tell good from bad better than the stated
        ones at their best scale. Log-odds being about twice a difference of means, chance makes of it
        4·(1/n₊ + 1/n₋) times a χ² of k degrees of freedom: X is D² in these units. The Akaike weight of what is stated
        is 1/(1 + exp((X − 2k)/2)); told is its ratio to that at X = k, which chance is expected to make, at most 1.
        n₊ and n₋ are as many as are independent: neither those of one answer are, nor those of a question asked again.
        """
        observed = float(self._observed.max())
        if observed <= 0.0:
            return 0.0
        among, odds = self._spread.covariance, self._mean_log_odds()
        weights = discriminant(odds, among)[0]
        along = max(0.0, float(odds[0] @ self._stated)) ** 2 / float(self._stated @ among @ self._stated)
        gained = max(0.0, float(weights @ among @ weights) - along)
        independent = min(observed / self._spread.caution, self._spread.repetition.independent(observed))
        unit = 4.0 / (independent * self._spread.balance)
        directions = float(self._spread.free[self._observed > 0.0].sum())
        return min(1.0, float(expit(directions - gained / unit / 2.0) / expit(directions / 2.0)))


@dataclass(frozen=True, slots=True)
class StickBreaking:
    """Random shares with stated means: each takes a Beta part of what those before it left.

    That is the generalised Dirichlet distribution (Connor and Mosimann, JASA 1969). Parts are independent, so that the
    expected share is the product of their expectations, which is its mean to the last digit, and a mean of 0 is always
    0. The surest come first: what they leave hardly varies.
    """

    order: Sequence[int]  # Places of the shares above 0, in the order of breaking
    a: Floats  # both float64 (order - 1,), of the Betas
    b: Floats
    size: int  # How many shares there are

    @classmethod
    def of(cls, mean: Floats, variance: Floats) -> StickBreaking:
        """Shares of those means, which sum to 1, and of those variances as far as means allow."""
        above = np.flatnonzero(mean > _EDGE)
        order = above[np.argsort(variance[above] / mean[above] ** 2, kind="stable")]
        left = np.cumsum(mean[order][::-1])[::-1]
        square = 1.0  # expectation of the square of what is left
        parts = []
        for place, rest in zip(order[:-1].tolist(), left.tolist(), strict=False):
            part = min(float(mean[place]) / rest, 1.0 - _EDGE)
            apart = (float(variance[place]) + float(mean[place]) ** 2) / square - part**2
            even = part * (1.0 - part)
            strength = min(max(even / max(apart, _EDGE) - 1.0, _VAGUEST), 1.0 / _EDGE)
            parts.append((strength * part, strength * (1.0 - part)))
            square *= (1.0 - part) ** 2 + even / (strength + 1.0)
        a, b = np.array(parts, dtype=np.float64).reshape(-1, 2).T
        return cls(order.tolist(), a, b, len(mean))

    def draws(self, rng: np.random.Generator, n: int) -> Floats:
        """`n` draws, float64 (n, shares)."""
        parts = rng.beta(self.a, self.b, size=(n, len(self.a)))
        left = np.cumprod(1.0 - parts, axis=1)
        shares = np.zeros((n, self.size))
        shares[:, self.order[:-1]] = parts * np.concatenate([np.ones((n, 1)), left], axis=1)[:, :-1]
        shares[:, self.order[-1]] = left[:, -1] if len(self.a) else 1.0
        return shares


def _among(spread: SignalCovariance, columns: Sequence[int]) -> SignalCovariance:
    """The spread of some signals."""
    return replace(
        spread,
        covariance=spread.covariance[np.ix_(columns, columns)],
        certainty=spread.certainty[columns],
        free=spread.free[columns],
        noise=spread.noise[columns],
    )


def _columns(active: Collection[Signal]) -> list[int]:
    columns = [index for index, signal in enumerate(SIGNALS) if signal in active]
    if not columns:
        raise ValueError("expected at least one active signal, got none")
    return columns


def _log_odds(agreement: Floats) -> Floats:
    return np.asarray(logit(np.clip(agreement, _EDGE, 1.0 - _EDGE)))


def _shares(weights: Floats, stated: Floats) -> Floats:
    """Weights (n, signals) normalised along the last axis; `stated` where all are 0."""
    total = weights.sum(axis=-1, keepdims=True)
    return np.where(total > 0.0, weights / np.where(total > 0.0, total, 1.0), stated)


def discriminant(odds: Floats, spread: Floats) -> Floats:
    """The w >= 0 that minimise ½·w'Σw − ℓ'w, for each row ℓ of `odds` (n, signals).

    By descent along one coordinate after the other, which converges for any positive definite Σ (Tseng, Journal of
    Optimization Theory and Applications 2001).
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


def _stated(prior_log_odds: Floats) -> Floats:
    total = prior_log_odds.sum()
    return prior_log_odds / total if total > 0.0 else np.full_like(prior_log_odds, 1.0 / len(prior_log_odds))


def _exact(shares: Floats) -> list[float]:
    """The shares with their sum, rounded once, not above 1, so that no score exceeds 1 by a rounding."""
    exact = [float(share) for share in shares]
    largest = max(range(len(exact)), key=exact.__getitem__)
    exact[largest] = 1.0 - math.fsum(exact[:largest] + exact[largest + 1 :])
    return exact
