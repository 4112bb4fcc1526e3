"""Partial pooling over global → domain → model → agent, all nodes at once (LRN-5).

Up, a node's evidence is what was observed at it plus the sum of its children's. Down, a child's prior is
Beta(κ·m, κ·(1 − m)) with m the parent's posterior mean, and κ estimated from how much siblings differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logit

from pipelines.learning.priors import PoolingPrior
from pipelines.learning.robustness import capped_share

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


_WEAKEST = 0.1  # pseudo-observations of a prior whose variance was multiplied: it stays one
_VAGUEST = 1.0  # no belief is worth less than one observation: below, a Beta is hardly a belief about a rate


@dataclass(frozen=True, slots=True)
class Level:
    """The nodes of one level and what was observed at them.

    Attributes:
        parent: int64 (n,), index of each node's parent in the level above.
        hits, misses: float64 (n, parameters) >= 0, observations counted at the node itself, not at its children.
        offset: float64 (n, parameters), how far the node's prior log-odds stand from its parent's belief; 0 where a
            child simply starts at its parent's mean.
        strength_factor: float64 (n,) >= 1, by how much the node's prior variance exceeds that of κ.
    """

    parent: Ints
    hits: Floats
    misses: Floats
    offset: Floats | None = None
    strength_factor: Floats | None = None


@dataclass(frozen=True, slots=True)
class Pooled:
    """The beliefs of one level: Beta(prior·κ + evidence) per node and parameter, arrays (n, parameters).

    Attributes:
        prior_mean: What the parent says.
        kappa: Pseudo-observations of the prior.
        hits, misses: Observations at the node and below it.
        variance: Of the rate, with what is not known of the parent's mean and of κ; None where both are certain.
    """

    prior_mean: Floats
    kappa: Floats
    hits: Floats
    misses: Floats
    variance: Floats | None = None

    @property
    def a(self) -> Floats:
        """First parameter of each posterior Beta."""
        return self.kappa * self.prior_mean + self.hits

    @property
    def b(self) -> Floats:
        """Second parameter of each posterior Beta."""
        return self.kappa * (1.0 - self.prior_mean) + self.misses

    @property
    def n(self) -> Floats:
        """Observations at the node and below it."""
        return self.hits + self.misses

    @property
    def mean(self) -> Floats:
        """Posterior means."""
        return self.a / (self.kappa + self.n)

    @property
    def honest(self) -> tuple[Floats, Floats]:
        """Parameters of Betas of the same means and of `variance`: for intervals and draws.

        Plugging in estimates of the parent's mean and of κ as if they were certain makes intervals too short (Kass and
        Steffey, Approximate Bayesian inference in conditionally independent hierarchical models, JASA 1989).
        """
        if self.variance is None:
            return self.a, self.b
        mean = self.mean
        strength = np.maximum(mean * (1.0 - mean) / self.variance - 1.0, _VAGUEST)
        return strength * mean, strength * (1.0 - mean)


def pool(
    root: Pooled, levels: Sequence[Level], pooling: PoolingPrior, *, effective_cap: float = math.inf
) -> list[Pooled]:
    """Beliefs of every node of every level, `root` (one node) first.

    Time is linear in the number of nodes.

    Args:
        effective_cap: At most so many observations of a node stand against its prior (LRN-3).
    """
    hits = _summed_up(levels, [level.hits for level in levels])
    misses = _summed_up(levels, [level.misses for level in levels])
    pooled = [root]
    strength = None
    for level, level_hits, level_misses in zip(levels, hits, misses, strict=True):
        prior_mean = _prior_means(level, pooled[-1].mean)
        found = intraclass_correlation(
            level.parent, len(pooled[-1].hits), prior_mean=prior_mean, hits=level_hits, misses=level_misses
        )
        share = capped_share(level_hits + level_misses, effective_cap)
        counted = level_hits * share, level_misses * share
        strength = believed_strength(found, strength, pooling)
        believed = list(strength.points(level))
        pooled.append(_believed(level, pooled[-1], believed, prior_mean=prior_mean, counted=counted))
    return pooled


def _believed(
    level: Level,
    above: Pooled,
    strength: Sequence[tuple[Floats, Floats]],
    *,
    prior_mean: Floats,
    counted: tuple[Floats, Floats],
) -> Pooled:
    """The posterior of each node, averaged over what κ may be.

    Every κ leads to a mean between prior and evidence. Their average is that of one κ per node,
    Σ w·κ/(κ + n) / Σ w/(κ + n), which is kept; how far they lie apart is part of the variance.
    """
    hits, misses = counted
    n = hits + misses
    towards, without = np.zeros_like(n), np.zeros_like(n)
    for kappa, weight in strength:
        towards += weight * kappa / (kappa + n)
        without += weight / (kappa + n)
    here = Pooled(prior_mean, towards / without, hits, misses)
    mean, gap = here.mean, np.where(n > 0.0, hits / np.where(n > 0.0, n, 1.0) - prior_mean, 0.0)
    variance = np.zeros_like(n)
    for kappa, weight in strength:
        at_kappa = prior_mean + gap * (n / (kappa + n))
        variance += weight * (at_kappa * (1.0 - at_kappa) / (kappa + n + 1.0) + (at_kappa - mean) ** 2)
    if level.offset is not None:
        # A level with stated priors of its own is as sure of them as they say.
        return replace(here, variance=variance)
    above_variance = _conditional_variance(above) if above.variance is None else above.variance
    return replace(here, variance=variance + towards**2 * above_variance[level.parent])


def _conditional_variance(level: Pooled) -> Floats:
    return np.asarray(level.mean * (1.0 - level.mean) / (level.kappa + level.n + 1.0))


class Correlation(NamedTuple):
    """How much siblings differ beyond chance, arrays (parameters,).

    Attributes:
        rho: ρ = 1 / (κ + 1), not bounded, and 0 where undefined.
        freedom: Siblings with evidence less one, summed over families; 0 where undefined.
        chance: What chance alone makes of it: siblings that are alike differ as if ρ were that, before it is taken off.
    """

    rho: Floats
    freedom: Floats
    chance: Floats


class Strength(NamedTuple):
    """What is believed about κ.

    Attributes:
        kappas: float64 (points,), ascending.
        weights: float64 (points, parameters), probabilities that sum to 1 over the points.
    """

    kappas: Floats
    weights: Floats

    def points(self, level: Level) -> Iterator[tuple[Floats, Floats]]:
        """κ as it holds at each node of a level, (nodes, 1) or (1, 1), with its weight (parameters,)."""
        for kappa, weight in zip(self.kappas, self.weights, strict=True):
            if level.strength_factor is None:
                yield np.full((1, 1), kappa), weight
            else:
                # A Beta's variance is m(1 − m)/(κ + 1): a factor on it divides κ + 1.
                yield np.maximum((kappa + 1.0) / level.strength_factor[:, None] - 1.0, _WEAKEST), weight


def believed_strength(found: Correlation, above: Strength | None, pooling: PoolingPrior) -> Strength:
    """The posterior of κ at one level, on points that lie evenly in ln κ.

    At the top the prior is that of a uniform shrinkage κ₀/(κ + κ₀), p(κ) ∝ κ₀/(κ + κ₀)² with median κ₀ = `initial`
    (Christiansen and Morris, Hierarchical Poisson regression modeling, JASA 1997; Daniels, A prior for the variance in
    hierarchical models, Canadian Journal of Statistics 1999), within its bounds. Below, levels differ about as much as
    the one above: ln κ moves from it by N(0, ln² `ratio`), drawn back by the same prior. The spread of siblings is as
    that of normal ones, ν·(c + ρ̂)/(c + ρ) ~ χ²(ν). So an estimate counts for as much as its evidence can tell: many
    siblings of which next to nothing is known leave κ as open as none.

    Args:
        found: How much siblings differ.
        above: The posterior of the level above; None at the top.
        pooling: Bounds, median, and points.
    """
    logs = np.linspace(math.log(pooling.minimum), math.log(pooling.maximum), pooling.points)
    kappas = np.exp(logs)
    stated = kappas * pooling.initial / (kappas + pooling.initial) ** 2
    prior = stated[:, None] if above is None else _moved(logs, stated, pooling.ratio) @ above.weights
    known = found.freedom > 0.0
    expected = np.where(known, found.chance + 1.0 / (kappas[:, None] + 1.0), 1.0)
    spread = np.where(known, np.maximum(found.chance + found.rho, 0.0), 0.0)
    log = np.log(prior) - found.freedom / 2.0 * (np.log(expected) + spread / expected)
    mass = np.exp(log - log.max(axis=0))
    return Strength(kappas, mass / mass.sum(axis=0))


def _moved(logs: Floats, stated: Floats, ratio: float) -> Floats:
    """P(κ of a level | κ of the level above), float64 (points, points); columns sum to 1."""
    apart = (logs[:, None] - logs[None, :]) / math.log(ratio)
    reached = stated[:, None] * np.exp(-0.5 * apart**2)
    return np.asarray(reached / reached.sum(axis=0))


def intraclass_correlation(
    parent: Ints, parents: int, *, prior_mean: Floats, hits: Floats, misses: Floats
) -> Correlation:
    """How much siblings differ beyond chance, ρ = 1 / (κ + 1), by the method of moments per parameter.

    With p_i the rate of child i, n_i its observations, w_i its share of the N its parent has, and m their joint rate,
    E Σ n_i·(p_i − m)² = m(1 − m)·[(1 − ρ)·Σ(1 − w_i) + ρ·Σ n_i·(1 − w_i)] (Kleinman, JASA 1973, for beta-binomial
    counts); the ratio is taken over the sums of all families. Differences that the children's own priors announce
    are taken out first. Fractional observations vary less than counts do, so that ρ errs towards pooling.
    """
    n = hits + misses
    seen = n > 0.0
    total = _by_parent(parent, parents, n)
    safe_n, safe_total = np.where(seen, n, 1.0), np.where(total > 0.0, total, 1.0)
    residual = np.where(seen, hits / safe_n - prior_mean, 0.0)
    centre = _by_parent(parent, parents, n * residual) / safe_total
    spread = _by_parent(parent, parents, n * (residual - centre[parent]) ** 2)
    joint = _by_parent(parent, parents, hits) / safe_total
    freedom = np.maximum(_by_parent(parent, parents, seen.astype(np.float64)) - 1.0, 0.0)
    size = total - _by_parent(parent, parents, n * n) / safe_total
    chance = joint * (1.0 - joint)
    denominator = np.sum(chance * (size - freedom), axis=0)
    defined = denominator > 0.0
    numerator = np.sum(spread - chance * freedom, axis=0)
    rho = np.where(defined, numerator / np.where(defined, denominator, 1.0), 0.0)
    degrees = np.where(defined, np.sum(freedom, axis=0), 0.0)
    surplus = np.sum(size - freedom, axis=0)
    chance_share = np.where(surplus > 0.0, degrees / np.where(surplus > 0.0, surplus, 1.0), 0.0)
    return Correlation(rho, degrees, chance_share)


def _summed_up(levels: Sequence[Level], direct: list[Floats]) -> list[Floats]:
    summed = list(direct)
    for depth in range(len(levels) - 1, 0, -1):
        summed[depth - 1] = summed[depth - 1] + _by_parent(levels[depth].parent, len(direct[depth - 1]), summed[depth])
    return summed


def _prior_means(level: Level, parent_mean: Floats) -> Floats:
    inherited = parent_mean[level.parent]
    if level.offset is None:
        return inherited
    moved: Floats = expit(logit(inherited) + level.offset)
    return moved


def _by_parent(parent: Ints, parents: int, values: Floats) -> Floats:
    membership = sparse.csr_array(
        (np.ones(len(parent)), (parent, np.arange(len(parent)))), shape=(parents, len(parent))
    )
    return np.asarray(membership @ values)
