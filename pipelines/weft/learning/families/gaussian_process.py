"""Model quality over a conversation: a Gaussian process over turns, with no assumed shape (LRN-8)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import ndtri

from weft.domain.arrays import Floats
from weft.learning.evidence import MICRO
from weft.learning.parameters import TURN_BINS, Masses, by_bin
from weft.learning.priors import QualityPrior

_JITTER = 1e-10  # relative; keeps the factor of a kernel matrix of neighbouring turns positive


_STATISTICS = ("n", "sum", "squares")


def quality_masses(turn: int, quality: float, *, weight: float = 1.0) -> Counter[str]:
    """What the quality in [0, 1] of one turn >= 1, counted `weight` >= 0 times, says: n, Σq and Σq², in micro-units.

    Raises:
        ValueError: An argument is out of its range, or not a number.
    """
    if turn < 1 or not 0.0 <= quality <= 1.0 or not 0.0 <= weight < math.inf:
        raise ValueError(f"expected turn >= 1, quality in [0, 1], weight >= 0, got {turn}, {quality}, {weight}")
    place = turn_bin(turn)
    values = zip(_STATISTICS, (weight, weight * quality, weight * quality * quality), strict=True)
    return Counter({f"{place}/{TURN_BINS}.{name}": round(value * MICRO) for name, value in values})


def turn_bin(turn: int) -> int:
    """The bin of a turn: the first `TURN_BINS` have one each, and each later one is an eighth longer than the last."""
    if turn <= TURN_BINS:
        return turn
    return TURN_BINS + 1 + int(math.log((turn - 1) / TURN_BINS) / math.log1p(1.0 / 8.0))


def turn_of(place: int) -> float:
    """The turn in the middle of a bin: bins act as inducing points."""
    if place <= TURN_BINS:
        return float(place)
    return float(TURN_BINS * (1.0 + 1.0 / 8.0) ** (place - TURN_BINS - 0.5))


@dataclass(frozen=True, eq=False)
class Quality:
    """A belief about expected quality by turn: GP(m(t), Matérn 5/2) given means of turns with noise σ²/n."""

    prior: QualityPrior
    # both float64 (n,), what was observed, and how often: `counts` > 0
    turns: Floats = field(default_factory=lambda: np.empty(0))
    means: Floats = field(default_factory=lambda: np.empty(0))
    counts: Floats = field(default_factory=lambda: np.empty(0))
    noise: float | None = None  # Variance of one observation around its turn's expectation
    offset: float = 0.0  # Added everywhere: how an agent differs from its model
    offset_variance: float = 0.0  # Of what is not known of that; 0 for a model, whoever its agents are

    def given(self, masses: Masses) -> Quality:
        """The posterior after the masses of turns.

        The noise is pooled over turns, from as many observations of the prior's as are stated.
        """
        turns, sums = self._statistics(masses)
        n, total, squares = sums / MICRO
        means = total / n
        # Sums in micro-units are rounded, so that a spread of nothing may come out below 0.
        within = np.maximum(squares - n * means**2, 0.0).sum()
        freedom = np.maximum(n - 1.0, 0.0).sum()
        strength = self.prior.noise_strength
        noise = float((strength * self.prior.noise**2 + within) / (strength + freedom))
        return replace(self, turns=turns, means=means, counts=n, noise=noise)

    def with_offset(self, masses: Masses) -> Quality:
        """The belief for an agent with masses of its own: shifted by its mean residual, shrunk.

        How far that is, is known as N(shift, 1 / (1 / `prior.offset`² + n / σ²)); without evidence, as N(0, `offset`²).
        """
        turns, (masses_n, masses_sum, _) = self._statistics(masses)
        n = masses_n / MICRO
        residual = masses_sum / masses_n - self.predict(turns)[0]
        precision = 1.0 / self.prior.offset**2 + float(n.sum()) / self._noise
        shift = float(n @ residual) / self._noise / precision
        return replace(self, offset=self.offset + shift, offset_variance=1.0 / precision)

    def _statistics(self, masses: Masses) -> tuple[Floats, Floats]:
        """Turns in the middle of their bins, and the masses of each (3, bins); those of other widths are left out."""
        rows = [(bin_, sums) for bin_, of, sums in by_bin(masses, _STATISTICS) if of == TURN_BINS and sums[0] > 0]
        sums = np.array([sums for _, sums in rows], dtype=np.float64).reshape(-1, 3).T.copy()
        return np.array([turn_of(bin_) for bin_, _ in rows]), sums

    @property
    def observations(self) -> float:
        """Turns behind the belief."""
        return float(self.counts.sum())

    def predict(self, turns: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of expected quality at each turn (n,)."""
        mean, covariance = self._posterior(turns)
        return mean, np.sqrt(np.maximum(np.diag(covariance), 0.0))

    def interval(self, turns: Floats, level: float) -> tuple[Floats, Floats]:
        """Equal-tailed credible interval of expected quality at each turn (n,)."""
        mean, deviation = self.predict(turns)
        reach = float(ndtri(0.5 + level / 2.0)) * deviation
        return mean - reach, mean + reach

    def sample(self, turns: Floats, rng: np.random.Generator) -> Floats:
        """One draw of the whole curve at turns (n,)."""
        mean, covariance = self._posterior(turns)
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(mean + vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(turns))))

    def hand_off(self, threshold: float, *, horizon: int) -> int | None:
        """The first turn at which quality is expected to fall below `threshold`; None within `horizon` turns."""
        mean, _ = self.predict(np.arange(1.0, horizon + 1.0))
        below = np.flatnonzero(mean < threshold)
        return int(below[0]) + 1 if len(below) else None

    @property
    def _noise(self) -> float:
        return self.prior.noise**2 if self.noise is None else self.noise

    def _mean(self, turns: Floats) -> Floats:
        return self.prior.start + self.prior.per_turn * turns + self.offset

    def _posterior(self, turns: Floats) -> tuple[Floats, Floats]:
        """Mean (n,) and covariance (n, n) (Rasmussen and Williams, Gaussian Processes for ML, 2006, algorithm 2.1)."""
        own = matern52(turns, turns, self.prior) + self.offset_variance
        if not len(self.turns):
            return self._mean(turns), own
        factor, weights = self._solved
        across = matern52(self.turns, turns, self.prior)
        half = solve_triangular(factor, across, lower=True)
        return self._mean(turns) + across.T @ weights, own - half.T @ half

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        kernel = matern52(self.turns, self.turns, self.prior)
        kernel[np.diag_indices_from(kernel)] += self._noise / self.counts + _JITTER * self.prior.amplitude**2
        factor = cholesky(kernel, lower=True)
        # The offset shifts predictions, not what they were learned from.
        return factor, cho_solve((factor, True), self.means - (self._mean(self.turns) - self.offset))


def matern52(left: Floats, right: Floats, prior: QualityPrior) -> Floats:
    """Matérn 5/2 covariance of turns, (n_left, n_right): a²·(1 + √5·d/ℓ + 5d²/3ℓ²)·e^(−√5·d/ℓ)."""
    scaled = math.sqrt(5.0) * np.abs(left[:, None] - right[None, :]) / prior.length
    return np.asarray(prior.amplitude**2 * (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled))
