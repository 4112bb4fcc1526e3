"""Partial pooling written from its formulas, one node and one κ after the other, with none of weft's arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.learning.pooling.hierarchy import Level, Pooled
from weft.learning.pooling.shrinkage import POINTS
from weft.learning.priors import PoolingPrior


def node_by_node(root: Pooled, levels: Sequence[Level], parameter: int, pooling: PoolingPrior) -> list[list[float]]:
    """The posterior mean of every node of every level below the root, by loops over nodes and children."""

    def below(depth: int, node: int) -> tuple[float, float]:
        hits, misses = levels[depth].hits[node, parameter], levels[depth].misses[node, parameter]
        if depth + 1 < len(levels):
            for child, parent in enumerate(levels[depth + 1].parent):
                if parent == node:
                    more = below(depth + 1, child)
                    hits, misses = hits + more[0], misses + more[1]
        return hits, misses

    means = [root.a[0, parameter] / (root.a[0, parameter] + root.b[0, parameter])]
    posteriors = []
    above = None
    for depth, level in enumerate(levels):
        evidence = [below(depth, node) for node in range(len(level.parent))]
        priors = []
        for node, parent in enumerate(level.parent):
            mean = means[parent]
            if level.offset is not None:
                mean = 1 / (1 + math.exp(-(math.log(mean / (1 - mean)) + level.offset[node, parameter])))
            priors.append(mean)
        above = _kappas_of_families(level, evidence, priors, above, pooling)
        posteriors.append([])
        for node, (hits, misses) in enumerate(evidence):
            factor = 1.0 if level.strength_factor is None else level.strength_factor[node]
            expected = []
            for kappa, probability in above.items():
                strength = (kappa + 1) / factor - 1
                mean = (strength * priors[node] + hits) / (strength + hits + misses)
                expected.append(probability * mean)
            posteriors[-1].append(sum(expected))
        means = posteriors[-1]
    return posteriors


def _kappas_of_families(
    level: Level,
    evidence: list[tuple[float, float]],
    priors: list[float],
    above: dict[float, float] | None,
    pooling: PoolingPrior,
) -> dict[float, float]:
    """Probability of each κ: prior, or what the level above makes of it, times a scaled χ² of the spread."""
    numerator = size_of_all = freedom = surplus_of_all = 0.0
    for family in sorted(set(level.parent.tolist())):
        children = [i for i, p in enumerate(level.parent) if p == family and sum(evidence[i]) > 0]
        if not children:
            continue
        n = {i: sum(evidence[i]) for i in children}
        total = sum(n.values())
        joint = sum(evidence[i][0] for i in children) / total
        surplus = {i: evidence[i][0] / n[i] - priors[i] for i in children}
        centre = sum(n[i] * surplus[i] for i in children) / total
        degrees = len(n) - 1
        size = sum(n[i] * (1 - n[i] / total) for i in children)
        numerator += sum(n[i] * (surplus[i] - centre) ** 2 for i in children) - joint * (1 - joint) * degrees
        size_of_all += joint * (1 - joint) * (size - degrees)
        freedom, surplus_of_all = freedom + degrees, surplus_of_all + size - degrees
    rho, chance = numerator / size_of_all, freedom / surplus_of_all
    step = (pooling.maximum / pooling.minimum) ** (1 / (POINTS - 1))
    kappas = [pooling.minimum * step**i for i in range(POINTS)]
    stated = {kappa: kappa * pooling.initial / (kappa + pooling.initial) ** 2 for kappa in kappas}
    prior = stated
    if above is not None:
        prior = dict.fromkeys(kappas, 0.0)
        for start, probability in above.items():
            moves = {
                k: stated[k] * math.exp(-((math.log(k / start) / math.log(pooling.ratio)) ** 2) / 2) for k in kappas
            }
            for kappa, move in moves.items():
                prior[kappa] += probability * move / sum(moves.values())
    spread = max(chance + rho, 0.0)
    weight = {}
    for kappa in kappas:
        expected = chance + 1 / (kappa + 1)
        weight[kappa] = prior[kappa] * expected ** (-freedom / 2) * math.exp(-freedom / 2 * spread / expected)
    return {kappa: each / sum(weight.values()) for kappa, each in weight.items()}
