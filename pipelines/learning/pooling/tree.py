"""The hierarchy global → domain → model → agent → session as evidence has it, and the beliefs at its nodes (LRN-5).

Parameters that nothing was observed of are not carried along at every node: there a node believes what its domain's
priors say, so that one line of such beliefs per domain stands for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.documents import Domain
from pipelines.learning.pooling.gathering import COLUMNS, Gathered, Path, numbered, places_of
from pipelines.learning.pooling.hierarchy import Level, Pooled, pool, pool_below
from pipelines.learning.pooling.shrinkage import Correlation
from pipelines.learning.priors import PoolingPrior
from pipelines.learning.recency import Discount

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DOMAINS: tuple[Domain, ...] = tuple(Domain)
LEVELS = ("global", "domain", "model", "agent")
SESSION = "session"


class Node(NamedTuple):
    """A node of the hierarchy: `depth` 1 for a domain to 3 for an agent, `place` within its level."""

    depth: int
    place: int


class Step(NamedTuple):
    """One level on the way down to a node: its name, and what is believed there, arrays (1, columns)."""

    level: str
    belief: Pooled


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of each level below the top, by path, and the place of each node's parent in the level above."""

    by_path: Sequence[Mapping[Path, int]]
    parents: Sequence[Ints]

    @classmethod
    def of(cls, paths: Sequence[Path]) -> Nodes:
        """All domains, and the models and agents of sorted paths."""
        domains: dict[Path, int] = {(domain.value,): place for place, domain in enumerate(DOMAINS)}
        models = numbered(path[:2] for path in paths if len(path) >= 2)
        agents = numbered(path for path in paths if len(path) == 3)
        above = [domains[path[:1]] for path in models], [models[path[:2]] for path in agents]
        parents = [np.zeros(len(domains), dtype=np.int64), *(np.array(each, dtype=np.int64) for each in above)]
        return cls((domains, models, agents), parents)

    def levels(self, gathered: Gathered, discount: Discount) -> list[Level]:
        """What was observed at each node itself."""
        direct = (gathered.observed(places_of(gathered.paths, level), len(level), discount) for level in self.by_path)
        return [Level(parent, *sides) for parent, sides in zip(self.parents, direct, strict=True)]


@dataclass(frozen=True, slots=True)
class _Own:
    """What one session believes at the nodes of one level that it observed anything at or below."""

    places: Mapping[int, int]
    belief: Pooled


@dataclass(frozen=True, slots=True)
class BeliefTree:
    """Every node's belief.

    Attributes:
        nodes: Where each scope stands.
        columns: int64, which of `COLUMNS` were observed at all.
        levels: From the top down, arrays (nodes, columns).
        untold: The same of all of `COLUMNS` as if nothing had been observed; one node per domain below the top.
        own: By level below the top, what a session believes instead; empty where none is read.
    """

    nodes: Nodes
    columns: Ints
    levels: Sequence[Pooled]
    untold: Sequence[Pooled]
    own: Sequence[_Own] = ()

    @classmethod
    def grown(
        cls,
        nodes: Nodes,
        gathered: Gathered,
        root: Pooled,
        levels: Sequence[Level],
        pooling: PoolingPrior,
        *,
        cap: float,
    ) -> BeliefTree:
        """Pool everything observed.

        Args:
            root: Of all of `COLUMNS`.
            levels: As `nodes` has them; priors of their own are of all of `COLUMNS`.
            cap: At most so many observations of a node stand against its prior (LRN-3).
        """
        observed_levels = [_of(level, gathered.columns) for level in levels]
        pooled = pool(root.of(gathered.columns), observed_levels, pooling, effective_cap=cap)
        return cls(nodes, gathered.columns, pooled, pool(root, [_untold(level) for level in levels], pooling))

    def of_session(
        self, gathered: Gathered, correlation: Correlation, pooling: PoolingPrior, *, cap: float
    ) -> BeliefTree:
        """The same with a level more: what one session observed, on top of what its domain, model or agent believes.

        Nothing in a session fades (LRN-2). Where it observed nothing it believes what its agent does.

        Args:
            gathered: What the session alone observed; the nodes' own evidence holds it, too.
            correlation: How much sessions differ, by all of `COLUMNS`.
            cap: See `grown`.
        """
        differ = Correlation(*(each[self.columns] for each in correlation))
        own = []
        for depth, level in enumerate(self.nodes.by_path, start=1):
            at = places_of((path[:depth] for path in gathered.paths), level)
            places, row = np.unique(at[at >= 0], return_inverse=True)
            group = np.full(len(at), -1, dtype=np.int64)
            group[at >= 0] = row
            sides = (wide(side, gathered.columns) for side in gathered.observed(group, len(places), None))
            here = Level(places, *(side[:, self.columns] for side in sides))
            belief = pool_below(self.levels[depth], here, pooling, effective_cap=cap, correlation=differ)
            own.append(_Own({place: row for row, place in enumerate(places.tolist())}, belief))
        return replace(self, own=own)

    def domain(self, node: Node) -> Domain:
        """The domain that a node belongs to."""
        return DOMAINS[self._path(node)[1]]

    def line(self, node: Node) -> list[Step]:
        """What is believed on the way down to a node, the top first; a session's own belief last, where it has one."""
        path = self._path(node)
        domain = path[1]
        steps = [
            Step(name, self._with(untold.at(domain if depth else 0), level.at(place)))
            for depth, (name, place, level, untold) in enumerate(
                zip(LEVELS, path, self.levels, self.untold, strict=False)
            )
        ]
        own = self.own[node.depth - 1] if self.own else None
        if own is not None and (row := own.places.get(node.place)) is not None:
            steps.append(Step(SESSION, self._with(self.untold[node.depth].at(domain), own.belief.at(row))))
        return steps

    def _path(self, node: Node) -> list[int]:
        """Place at each level from the top (depth 0) down to the node."""
        path = [node.place]
        for depth in range(node.depth, 0, -1):
            path.insert(0, int(self.nodes.parents[depth - 1][path[0]]))
        return path

    def _with(self, unobserved: Pooled, observed: Pooled) -> Pooled:
        def row(before: Floats, after: Floats) -> Floats:
            whole = before.copy()
            whole[:, self.columns] = after
            return whole

        return Pooled(
            row(unobserved.prior_mean, observed.prior_mean),
            row(unobserved.kappa, observed.kappa),
            row(unobserved.hits, observed.hits),
            row(unobserved.misses, observed.misses),
            None
            if unobserved.variance is None or observed.variance is None
            else row(unobserved.variance, observed.variance),
        )


def _of(level: Level, columns: Ints) -> Level:
    return level if level.offset is None else replace(level, offset=level.offset[:, columns])


def _untold(level: Level) -> Level:
    """One node per domain, without evidence."""
    nothing = np.zeros((len(DOMAINS), len(COLUMNS)))
    if level.offset is not None:
        return replace(level, hits=nothing, misses=nothing)
    return Level(np.arange(len(DOMAINS)), nothing, nothing)


def wide(observed: Floats, columns: Ints) -> Floats:
    """Observations of some columns as those of all."""
    wide = np.zeros((len(observed), len(COLUMNS)))
    wide[:, columns] = observed
    return wide
