"""Model quality over a conversation: a Gaussian process over turns, with no assumed shape (LRN-8)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import ndtri

from pipelines.learning.evidence import MICRO
from pipelines.learning.families.beta import confidence
from pipelines.learning.priors import QualityPrior

Floats = NDArray[np.float64]

_JITTER = 1e-10  # relative; keeps the factor of a kernel matrix of neighbouring turns positive


@dataclass(frozen=True, slots=True)
class QualityEvidence:
    """Statistics of quality by bin of turns, in micro-units: n, Σq and Σq². Adding is merging.

    Examples:
        >>> QualityEvidence.of(7, 0.5, turns=64) + QualityEvidence.of(7, 1.0, turns=64)
        QualityEvidence(masses={7: (2000000, 1500000, 1250000)})
    """

    masses: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, turn: int, quality: float, *, turns: int, weight: float = 1.0) -> QualityEvidence:
        """Evidence of the quality in [0, 1] of one turn >= 1, counted `weight` >= 0 times.

        Raises:
            ValueError: One of them is out of its range, or not a number.
        """
        if turn < 1 or not 0.0 <= quality <= 1.0 or not 0.0 <= weight < math.inf:
            raise ValueError(f"expected turn >= 1, quality in [0, 1], weight >= 0, got {turn}, {quality}, {weight}")
        statistics = (weight, weight * quality, weight * quality * quality)
        n, total, squares = (round(value * MICRO) for value in statistics)
        return cls({turn_bin(turn, turns): (n, total, squares)})

    def __add__(self, other: QualityEvidence) -> QualityEvidence:
        merged = dict(self.masses)
        for place, (n, total, squares) in other.masses.items():
            before = merged.get(place, (0, 0, 0))
            merged[place] = (before[0] + n, before[1] + total, before[2] + squares)
        return QualityEvidence(merged)


def turn_bin(turn: int, turns: int) -> int:
    """The bin of a turn: the first `turns` have one each; after them, each bin is an eighth longer than the last.

    Examples:
        >>> turn_bin(64, 64), turn_bin(65, 64), turn_bin(72, 64), turn_bin(10_000, 64)
        (64, 65, 65, 107)
    """
    if turn <= turns:
        return turn
    return turns + 1 + int(math.log((turn - 1) / turns) / math.log1p(1.0 / 8.0))


def turn_of(place: int, turns: int) -> float:
    """The turn in the middle of a bin: bins act as inducing points."""
    if place <= turns:
        return float(place)
    return float(turns * (1.0 + 1.0 / 8.0) ** (place - turns - 0.5))


@dataclass(frozen=True, eq=False)
class Quality:
    """A belief about expected quality by turn: GP(m(t), Matérn 5/2) given means of turns with noise σ²/n.

    Attributes:
        turns, means: float64 (n,), what was observed, and how often: `counts` > 0.
        noise: Variance of one observation around its turn's expectation.
        offset: Added everywhere: how an agent differs from its model.
        offset_variance: Of what is not known of that; 0 for a model, whoever its agents are.
    """

    prior: QualityPrior
    turns: Floats = field(default_factory=lambda: np.empty(0))
    means: Floats = field(default_factory=lambda: np.empty(0))
    counts: Floats = field(default_factory=lambda: np.empty(0))
    noise: float | None = None
    offset: float = 0.0
    offset_variance: float = 0.0

    def given(self, evidence: QualityEvidence, *, recency: float = 1.0) -> Quality:
        """The posterior after `evidence`, each unit of which counts `recency` in [0, 1]; it replaces earlier one.

        The noise is pooled over turns, from as many observations of the prior's as are stated.
        """
        rows = sorted((place, masses) for place, masses in evidence.masses.items() if masses[0] > 0)
        places = np.array([turn_of(place, self.prior.turns) for place, _ in rows])
        n, total, squares = (np.array([masses[i] for _, masses in rows], dtype=np.float64) / MICRO for i in range(3))
        means = total / n
        within = np.maximum(squares - n * means**2, 0.0).sum()
        freedom = np.maximum(n - 1.0, 0.0).sum()
        strength = self.prior.noise_strength
        noise = (strength * self.prior.noise**2 + recency * within) / (strength + recency * freedom)
        known = {"offset": self.offset, "offset_variance": self.offset_variance}
        return Quality(self.prior, places, means, recency * n, float(noise), **known)

    def with_offset(self, evidence: QualityEvidence) -> Quality:
        """The belief for an agent of which there is `evidence` of its own: shifted by its mean residual, shrunk.

        How far that is, is known as N(shift, 1 / (1 / `prior.offset`² + n / σ²)); without evidence, as N(0, `offset`²).
        """
        rows = sorted((turn_of(p, self.prior.turns), masses) for p, masses in evidence.masses.items() if masses[0] > 0)
        n = np.array([masses[0] / MICRO for _, masses in rows])
        seen = np.array([masses[1] / masses[0] for _, masses in rows])
        residual = seen - self.predict(np.array([turn for turn, _ in rows]))[0]
        precision = 1.0 / self.prior.offset**2 + float(n.sum()) / self._noise
        shift = float(n @ residual) / self._noise / precision
        return replace(self, offset=self.offset + shift, offset_variance=1.0 / precision)

    @property
    def observations(self) -> float:
        """Turns behind the belief."""
        return float(self.counts.sum())

    def confidence(self, halfway: float) -> float:
        """How settled the belief is, in [0, 1)."""
        return confidence(self.observations, halfway=halfway)

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
