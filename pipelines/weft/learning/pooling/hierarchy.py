"""Partial pooling down a tree of levels, all nodes at once (LRN-5); where two kinds of nodes cross, see `crossing`.

Up, a node's evidence is what was observed at it plus the sum of its children's. Down, a child's prior is
Beta(κ·m, κ·(1 − m)) with m the parent's posterior mean, and κ estimated from how much siblings differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from weft.domain.arrays import Floats, Ints
from weft.learning.pooling.shrinkage import (
    Correlation,
    PoolingStrength,
    believed_strength,
    intraclass_correlation,
    membership,
)
from weft.learning.priors import PoolingPrior
from weft.learning.recency import capped_share

_BLOCK = 16_384  # numbers that are gone over at once: some arrays of them fit a processor's own cache
_VAGUEST = 1.0  # no belief is worth less than one observation: below, a Beta is hardly a belief about a rate


@dataclass(frozen=True, slots=True)
class Level:
    """The nodes of one level and what was observed at them."""

    parent: Ints  # int64 (n,), index of each node's parent in the level above
    hits: Floats  # both float64 (n, parameters) >= 0, observations counted at the node itself, not at its children
    misses: Floats
    # float64 (n, parameters), how far the node's prior log-odds stand from its parent's belief; 0 where a child simply
    # starts at its parent's mean
    offset: Floats | None = None
    strength_factor: Floats | None = None  # float64 (n,) >= 1, by how much the node's prior variance exceeds that of κ


@dataclass(frozen=True, slots=True)
class Pooled:
    """The beliefs of one level: Beta(prior·κ + evidence) per node and parameter, arrays (n, parameters)."""

    prior_mean: Floats  # what the parent says
    kappa: Floats  # pseudo-observations of the prior
    hits: Floats  # Observations at the node and below it
    misses: Floats
    # of the rate, with what is not known of the parent's mean and of κ; None where both are certain
    variance: Floats | None = None
    strength: PoolingStrength | None = None  # what is believed about κ of this level; None at the root

    def at(self, node: int) -> Pooled:
        """One node alone, arrays (1, parameters)."""
        return self._where(slice(node, node + 1))

    def rows(self, places: Ints) -> Pooled:
        """Some of the nodes, in that order."""
        return self._where(places)

    def of(self, columns: Ints) -> Pooled:
        """Some of the parameters."""
        some = self._where((slice(None), columns))
        return some if some.strength is None else replace(some, strength=some.strength.of(columns))

    def _where(self, which: slice | Ints | tuple[slice, Ints]) -> Pooled:
        return Pooled(
            self.prior_mean[which],
            self.kappa[which],
            self.hits[which],
            self.misses[which],
            None if self.variance is None else self.variance[which],
            self.strength,
        )

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
    def total_variance(self) -> Floats:
        """`variance`; where the prior is certain, that of the Beta."""
        if self.variance is not None:
            return self.variance
        return np.asarray(self.mean * (1.0 - self.mean) / (self.kappa + self.n + 1.0))

    @property
    def moment_matched(self) -> tuple[Floats, Floats]:
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
    """
    hits = _summed_up(levels, [level.hits for level in levels])
    misses = _summed_up(levels, [level.misses for level in levels])
    pooled = [root]
    for level, level_hits, level_misses in zip(levels, hits, misses, strict=True):
        with_children = replace(level, hits=level_hits, misses=level_misses)
        pooled.append(pool_below(pooled[-1], with_children, pooling, effective_cap=effective_cap))
    return pooled


def pool_below(
    above: Pooled,  # the level of their parents
    level: Level,
    pooling: PoolingPrior,
    *,
    effective_cap: float = math.inf,  # see `pool`
    correlation: Correlation | None = None,
    ratio: float = 1.0,  # κ of this level beside that of the one above, as it is expected a priori
) -> Pooled:
    """Beliefs of the nodes of one level, whose evidence holds that of their children."""
    prior_mean = _prior_means(level, above.mean)
    if correlation is None:
        correlation = intraclass_correlation(
            level.parent, len(above.hits), prior_mean=prior_mean, hits=level.hits, misses=level.misses
        )
    strength = believed_strength(correlation, above.strength, pooling, ratio=ratio)
    share = capped_share(level.hits + level.misses, effective_cap)
    counted = level.hits * share, level.misses * share
    posterior = np.empty_like(prior_mean), np.empty_like(prior_mean)
    for rows in _blocks(prior_mean):
        hits, misses = (side[rows] for side in counted)
        posterior[0][rows], posterior[1][rows] = _believed(
            level,
            above,
            list(strength.points(_factor(level, rows), weakest=pooling.weakest)),
            rows=rows,
            prior_mean=prior_mean[rows],
            counted=(hits, misses),
        )
    return Pooled(prior_mean, posterior[0], *counted, posterior[1], strength)


def _factor(level: Level, rows: slice) -> Floats | None:
    return None if level.strength_factor is None else level.strength_factor[rows]


def _blocks(values: Floats) -> Iterator[slice]:
    """Runs of rows that a processor's cache holds: each is gone over some two hundred times."""
    rows = max(1, _BLOCK // max(1, values.shape[1]))
    return (slice(begin, begin + rows) for begin in range(0, len(values), rows))


def _believed(
    level: Level,
    above: Pooled,
    strength: Sequence[tuple[Floats, Floats]],
    *,
    rows: slice,
    prior_mean: Floats,
    counted: tuple[Floats, Floats],
) -> tuple[Floats, Floats]:
    """κ and variance of the posterior of some nodes, averaged over what κ may be.

    Every κ leads to a mean between prior and evidence. Their average is that of one κ per node,
    Σ w·κ/(κ + n) / Σ w/(κ + n), which is kept; how far they lie apart is part of the variance.
    """
    hits, misses = counted
    n = hits + misses
    here = Pooled(prior_mean, expected_kappa(strength, n), hits, misses)
    mean, gap = here.mean, np.where(n > 0.0, hits / np.where(n > 0.0, n, 1.0) - prior_mean, 0.0)
    variance, towards = np.zeros_like(n), np.zeros_like(n)
    for kappa, weight in strength:
        towards += weight * (kappa / (kappa + n))
        at_kappa = prior_mean + gap * (n / (kappa + n))
        variance += weight * (at_kappa * (1.0 - at_kappa) / (kappa + n + 1.0) + (at_kappa - mean) ** 2)
    if level.offset is not None:
        # A level with stated priors of its own is as sure of them as they say.
        return here.kappa, variance
    return here.kappa, variance + towards**2 * above.total_variance[level.parent[rows]]


def expected_kappa(strength: Sequence[tuple[Floats, Floats]], n: Floats) -> Floats:
    """The one κ of each node that leads to the mean over what κ may be, after n observations."""
    towards, without = np.zeros_like(n), np.zeros_like(n)
    for kappa, weight in strength:
        part = weight / (kappa + n)
        towards += kappa * part
        without += part
    return towards / without


def _summed_up(levels: Sequence[Level], direct: list[Floats]) -> list[Floats]:
    summed = list(direct)
    for depth in range(len(levels) - 1, 0, -1):
        summed[depth - 1] = summed[depth - 1] + np.asarray(
            membership(levels[depth].parent, len(direct[depth - 1])) @ summed[depth]
        )
    return summed


def _prior_means(level: Level, parent_mean: Floats) -> Floats:
    inherited = parent_mean[level.parent]
    if level.offset is None:
        return inherited
    moved: Floats = expit(logit(inherited) + level.offset)
    return moved
