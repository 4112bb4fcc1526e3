"""The hierarchy global → domain → model and agent → both together → session, and its beliefs (LRN-5, LRN-21).

Parameters that nothing was observed of are not carried along at every node: there a node believes what its domain's
priors say, so that one line of such beliefs per domain stands for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.domain.documents import Domain
from weft.domain.ranking import ANY, Scope
from weft.learning.pooling.crossing import Cells, cross, pair_prior
from weft.learning.pooling.gathering import COLUMNS, AgreementTable, Path, numbered, places_of
from weft.learning.pooling.hierarchy import Level, Pooled, pool_below
from weft.learning.pooling.shrinkage import Correlation, membership
from weft.learning.priors import PoolingPrior
from weft.learning.recency import Discount

DOMAINS: tuple[Domain, ...] = tuple(Domain)
LEVELS = ("global", "domain", "model", "agent", "model and agent")
SESSION = "session"
_NOWHERE = -1


class Node(NamedTuple):
    """Where a scope stands: places within the levels below the top, −1 where it names none or it was never observed."""

    domain: int
    model: int = _NOWHERE
    agent: int = _NOWHERE
    pair: int = _NOWHERE


class Step(NamedTuple):
    """One level on the way down to a node: its name, and what is believed there, arrays (1, columns)."""

    level: str
    belief: Pooled


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of each level below the top, by path, in the order of `LEVELS`: "*" stands for any model."""

    by_path: Sequence[Mapping[Path, int]]

    @classmethod
    def of(cls, paths: Sequence[Path]) -> Nodes:
        """All domains, and the models, agents and pairs of sorted paths."""
        domains: dict[Path, int] = {(domain.value,): place for place, domain in enumerate(DOMAINS)}
        levels = ([cls._at(path)[depth] for path in paths] for depth in (1, 2, 3))
        return cls((domains, *(numbered(sorted({path for path in level if path})) for level in levels)))

    @staticmethod
    def _at(path: Path) -> tuple[Path, Path, Path, Path]:
        """The paths of the domain, model, agent and pair that an observation is of; () for those that it is not of."""
        domain, model, agent = (*path, ANY, ANY)[:3]
        return (
            (domain,),
            (domain, model) if model != ANY else (),
            (domain, ANY, agent) if agent != ANY else (),
            (domain, model, agent) if ANY not in (model, agent) else (),
        )

    def places(self, paths: Sequence[Path]) -> Sequence[Ints]:
        """Where each path stands within each level; −1 where it does not."""
        at = zip(*(self._at(path) for path in paths), strict=True) if paths else ((),) * len(self.by_path)
        return [places_of(each, level) for each, level in zip(at, self.by_path, strict=True)]

    def node(self, scope: Scope) -> Node:
        """What was observed of a scope."""
        path = (scope.domain.value, scope.model, scope.agent)
        return Node(*(level.get(at, _NOWHERE) for at, level in zip(self._at(path), self.by_path, strict=True)))

    def cells(self, gathered: AgreementTable, discount: Discount) -> tuple[Cells, Level]:
        """What was observed below the domains, and at and below each."""
        domain, model, agent, _ = self.places(gathered.paths)
        hits, misses = gathered.observed(np.arange(len(gathered.paths)), len(gathered.paths), discount)
        below = (model >= 0) | (agent >= 0)
        of_model, of_agent = (
            np.array([self.by_path[0][path[:1]] for path in level], dtype=np.int64) for level in self.by_path[1:3]
        )
        cells = Cells(domain[below], model[below], agent[below], of_model, of_agent, hits[below], misses[below])
        sums = membership(domain, len(DOMAINS))
        top = Level(np.zeros(len(DOMAINS), dtype=np.int64), *(np.asarray(sums @ side) for side in (hits, misses)))
        return cells, top


@dataclass(frozen=True, slots=True)
class _Own:
    """What one session believes at the nodes of one level that it observed anything at or below."""

    places: Mapping[int, int]
    belief: Pooled


@dataclass(frozen=True, slots=True)
class BeliefTree:
    """Every node's belief."""

    nodes: Nodes  # where each scope stands
    columns: Ints  # int64, which of `COLUMNS` were observed at all
    levels: Sequence[Pooled]  # in the order of `LEVELS`, arrays (nodes, columns)
    unobserved: Sequence[Pooled]
    own: Sequence[_Own] = ()  # by level below the top, what a session believes instead; empty where none is read

    @classmethod
    def fit(
        cls,
        nodes: Nodes,
        root: Pooled,  # of all of `COLUMNS`
        domains: Level,  # at and below each; priors of their own are of all of `COLUMNS`
        cells: Cells,  # what was observed below them, of `columns`
        *,
        columns: Ints,
        pooling: PoolingPrior,
        cap: float,  # at most so many observations of a node stand against its prior (LRN-3)
    ) -> BeliefTree:
        """Pool everything observed."""
        nothing = np.zeros((len(DOMAINS), len(COLUMNS)))
        unobserved = root, pool_below(root, replace(domains, hits=nothing, misses=nothing), pooling)
        offset = None if domains.offset is None else domains.offset[:, columns]
        top = root.of(columns)
        pooled = pool_below(top, replace(domains, offset=offset), pooling, effective_cap=cap)
        return cls(nodes, columns, (top, pooled, *cross(pooled, cells, pooling, effective_cap=cap)), unobserved)

    def of_session(
        self, gathered: AgreementTable, correlation: Correlation, pooling: PoolingPrior, *, cap: float
    ) -> BeliefTree:
        """The same with a level more: what one session observed, on top of what its domain, model or agent believes.

        Nothing in a session fades (LRN-2). Where it observed nothing it believes what its agent does.
        """
        differ = Correlation(*(each[self.columns] for each in correlation))
        own = []
        for depth, at in enumerate(self.nodes.places(gathered.paths), start=1):
            places, row = np.unique(at[at >= 0], return_inverse=True)
            group = np.full(len(at), _NOWHERE, dtype=np.int64)
            group[at >= 0] = row
            sides = (widened(side, gathered.columns) for side in gathered.observed(group, len(places), None))
            here = Level(places, *(side[:, self.columns] for side in sides))
            belief = pool_below(self.levels[depth], here, pooling, effective_cap=cap, correlation=differ)
            own.append(_Own({place: row for row, place in enumerate(places.tolist())}, belief))
        return replace(self, own=own)

    def lineage(self, node: Node) -> list[Step]:
        """What is believed on the way down to a node, the top first; a session's own belief last, where it has one."""
        at = [(0, 0), *((depth, place) for depth, place in enumerate(node, start=1) if place != _NOWHERE)]
        steps = [Step(LEVELS[depth], self._with(node, depth, self.levels[depth].at(place))) for depth, place in at]
        deepest, place = at[-1]
        if self.own and (row := self.own[deepest - 1].places.get(place)) is not None:
            steps.append(Step(SESSION, self._with(node, deepest, self.own[deepest - 1].belief.at(row))))
        return steps

    def belief(self, node: Node) -> Pooled:
        """What is believed at a node, (1, columns): of a pair never seen, what its model and its agent make of it."""
        step = self.lineage(node)[-1]
        if node.pair != _NOWHERE or _NOWHERE in (node.model, node.agent):
            return step.belief
        domain, model, agent = (self.levels[depth].at(place) for depth, place in enumerate(node[:3], start=1))
        if step.level == SESSION:
            agent = step.belief.of(self.columns)
        return self._with(node, 1, pair_prior(domain, model, agent))

    def _with(self, node: Node, depth: int, observed: Pooled) -> Pooled:
        """Of all columns: those that nothing was observed of believe what the domain's priors say."""
        unobserved = self.unobserved[min(depth, 1)].at(node.domain if depth else 0)

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


def widened(observed: Floats, columns: Ints) -> Floats:
    """Observations of some columns as those of all."""
    widened = np.zeros((len(observed), len(COLUMNS)))
    widened[:, columns] = observed
    return widened
