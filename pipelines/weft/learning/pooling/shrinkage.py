"""How alike siblings are: κ, what a child takes from its parent in pseudo-observations, by empirical Bayes (LRN-5)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from weft.domain.arrays import Floats, Ints
from weft.learning.priors import PoolingPrior

POINTS = 9
"""Of κ between its bounds, a factor of 1.8 apart as they are: shrinkage between neighbours differs by a seventh."""


class Correlation(NamedTuple):
    """How much siblings differ beyond chance, arrays (parameters,)."""

    rho: Floats  # ρ = 1 / (κ + 1), not bounded, and 0 where undefined
    freedom: Floats  # siblings with evidence less one, summed over families; 0 where undefined
    # what chance alone makes of it: siblings that are alike differ as if ρ were that, before it is taken off
    chance: Floats


class PoolingStrength(NamedTuple):
    """What is believed about κ."""

    kappas: Floats  # float64 (points,), ascending
    weights: Floats  # float64 (points, parameters), probabilities that sum to 1 over the points

    def of(self, columns: Ints) -> PoolingStrength:
        """What is believed of some of the parameters."""
        return PoolingStrength(self.kappas, self.weights[:, columns])

    def points(self, factor: Floats | None, *, weakest: float) -> Iterator[tuple[Floats, Floats]]:
        """κ as it holds at some nodes, (nodes, 1) or (1, 1), with its weight (parameters,).

        Args:
            factor: float64 (nodes,) >= 1, by how much each node's prior variance exceeds that of κ; None for 1.
            weakest: Least κ that a factor leaves.
        """
        for kappa, weight in zip(self.kappas, self.weights, strict=True):
            if factor is None:
                yield np.full((1, 1), kappa), weight
            else:
                # A Beta's variance is m(1 − m)/(κ + 1): a factor on it divides κ + 1.
                yield np.maximum((kappa + 1.0) / factor[:, None] - 1.0, weakest), weight


def believed_strength(
    correlation: Correlation, above: PoolingStrength | None, pooling: PoolingPrior, *, ratio: float = 1.0
) -> PoolingStrength:
    """The posterior of κ at one level, on points that lie evenly in ln κ.

    At the top the prior is that of a uniform shrinkage κ₀/(κ + κ₀): p(κ) ∝ κ₀/(κ + κ₀)² with median κ₀ = `initial`,
    within its bounds. See Christiansen and Morris, Hierarchical Poisson regression modeling, JASA 1997, and Daniels, A
    prior for the variance in hierarchical models, Canadian Journal of Statistics 1999. Below, levels differ about as
    much as the one above: ln κ moves from it by N(0, ln² `ratio`), drawn back by the same prior. The spread of siblings
    is as that of normal ones, ν·(c + ρ̂)/(c + ρ) ~ χ²(ν). So an estimate counts for as much as its evidence can tell:
    many siblings of which next to nothing is known leave κ as open as none.
    """
    logs = np.linspace(math.log(pooling.minimum), math.log(pooling.maximum), POINTS)
    kappas = np.exp(logs)
    # Per step of ln κ, since the points are even in it: the density of κ times κ.
    stated = kappas * pooling.initial / (kappas + pooling.initial) ** 2
    prior = stated[:, None] if above is None else _moved(logs, stated, pooling.ratio, math.log(ratio)) @ above.weights
    defined = correlation.freedom > 0.0
    expected = np.where(defined, correlation.chance + 1.0 / (kappas[:, None] + 1.0), 1.0)
    spread = np.where(defined, np.maximum(correlation.chance + correlation.rho, 0.0), 0.0)
    log = np.log(prior) - correlation.freedom / 2.0 * (np.log(expected) + spread / expected)
    mass = np.exp(log - log.max(axis=0))
    return PoolingStrength(kappas, mass / mass.sum(axis=0))


def _moved(logs: Floats, stated: Floats, ratio: float, expected: float) -> Floats:
    """P(κ of a level | κ of the level above), float64 (points, points); columns sum to 1. ln κ is `expected` more."""
    apart = (logs[:, None] - logs[None, :] - expected) / math.log(ratio)
    reached = stated[:, None] * np.exp(-0.5 * apart**2)
    return np.asarray(reached / reached.sum(axis=0))


def intraclass_correlation(
    parent: Ints, parents: int, *, prior_mean: Floats, hits: Floats, misses: Floats
) -> Correlation:
    """How much siblings differ beyond chance, ρ = 1 / (κ + 1), by the method of moments per parameter."""
    return moments_of(parent, parents, prior_mean=prior_mean, hits=hits, misses=misses).correlation()


@dataclass(frozen=True, slots=True)
class Moments:
    """What ρ is estimated from, arrays (parameters,); moments of other families add up.

    With p_i the rate of child i, n_i its observations, w_i its share of the N its parent has, and m their joint rate,
    E Σ n_i·(p_i − m)² = m(1 − m)·[(1 − ρ)·Σ(1 − w_i) + ρ·Σ n_i·(1 − w_i)] (Kleinman, JASA 1973, for beta-binomial
    counts); the ratio is taken over the sums of all families. Fractional observations vary less than counts do, so that
    ρ errs towards pooling.
    """

    beyond: Floats  # spread of the siblings beyond what chance makes of it at ρ = 0
    at_most: Floats  # what it is beyond that at ρ = 1
    freedom: Floats  # siblings with evidence less one
    weight: Floats  # Σ n_i·(1 − w_i) less `freedom`

    @classmethod
    def none(cls, parameters: int) -> Moments:
        """Those of no family."""
        return cls(*np.zeros((4, parameters)))

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.beyond + other.beyond,
            self.at_most + other.at_most,
            self.freedom + other.freedom,
            self.weight + other.weight,
        )

    def correlation(self) -> Correlation:
        """ρ, and how well it is known."""
        defined = self.at_most > 0.0
        rho = np.where(defined, self.beyond / np.where(defined, self.at_most, 1.0), 0.0)
        freedom = np.where(defined, self.freedom, 0.0)
        weighty = self.weight > 0.0
        return Correlation(rho, freedom, np.where(weighty, freedom / np.where(weighty, self.weight, 1.0), 0.0))


def moments_of(parent: Ints, parents: int, *, prior_mean: Floats, hits: Floats, misses: Floats) -> Moments:
    """The moments of families of siblings.

    Args:
        parent: int64 (n,), the family that each child belongs to.
        parents: How many families there are.
        prior_mean: float64 (n, parameters), what is expected of each child; differences between children that this
            announces are taken out first.
        hits, misses: float64 (n, parameters), observations of each child.
    """
    n, families = hits + misses, membership(parent, parents)
    seen = n > 0.0
    total = families @ n
    safe_n, safe_total = np.where(seen, n, 1.0), np.where(total > 0.0, total, 1.0)
    # Families are compared by what is left of their rates once what was announced of each child is taken out.
    residual = np.where(seen, hits / safe_n - prior_mean, 0.0)
    centre = families @ (n * residual) / safe_total
    spread = families @ (n * (residual - centre[parent]) ** 2)
    joint = families @ hits / safe_total
    freedom = np.maximum(families @ seen.astype(np.float64) - 1.0, 0.0)
    size = total - families @ (n * n) / safe_total
    chance = joint * (1.0 - joint)
    sums = spread - chance * freedom, chance * (size - freedom), freedom, size - freedom
    return Moments(*(np.sum(each, axis=0) for each in sums))


def membership(parent: Ints, parents: int) -> sparse.csr_array:
    """What sums values of children by parent: (parents, children) @ (children, parameters)."""
    children = len(parent)
    return sparse.csr_array((np.ones(children), (parent, np.arange(children))), shape=(parents, children))
