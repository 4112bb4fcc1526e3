"""The hierarchy global → domain → model and agent → both together → session, and its beliefs (LRN-5, LRN-21).

Parameters that nothing was observed of are not carried along at every node: there a node believes what its domain's
priors say, so that one line of such beliefs per domain stands for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from weft.domain.arrays import Floats, Ints
from weft.domain.documents import Domain
from weft.domain.ranking import ANY, Scope
from weft.learning.pooling.gathering import COLUMNS, AgreementTable, Path, numbered, places_of
from weft.learning.pooling.hierarchy import Level, Pooled, expected_kappa, pool_below
from weft.learning.pooling.shrinkage import Correlation, believed_strength, intraclass_correlation, membership
from weft.learning.priors import PoolingPrior
from weft.learning.recency import Discount, capped_share

# Models and agents cross: what each adds to its domain, told apart by what each was seen with (LRN-21).

_NEWTON_STEPS = 50  # a handful are needed where rates are not far from those of their domains
_HALVINGS = 30  # of one step
_STILL = 1e-10  # a step in log-odds that changes nothing
_ROUNDED = 1e-13  # of a sum, relative: what rounding alone makes of it
_STEPS = 200  # of conjugate gradients, which settle within a dozen where models share agents
_SETTLED = 1e-20  # of the squared residual, relative: ten digits of a step


@dataclass(frozen=True)
class Cells:
    """What was observed below the domains, each row of a model, of an agent, or of the two together."""

    domain: Ints  # int64 (cells,)
    model: Ints  # both int64 (cells,), −1 where none was named
    agent: Ints
    domain_of_model: Ints  # both int64, the domain of each; the same name in two domains is two nodes
    domain_of_agent: Ints
    hits: Floats  # both float64 (cells, parameters)
    misses: Floats

    @property
    def n(self) -> Floats:
        """Observations of each cell."""
        return self.hits + self.misses

    @property
    def pairs(self) -> Ints:
        """The cells that name both."""
        return np.flatnonzero((self.model >= 0) & (self.agent >= 0))

    @cached_property
    def by_model(self) -> sparse.csr_array:
        """What takes values of models to cells; transposed, what sums those of cells: (cells, models)."""
        return _incidence(self.model, len(self.domain_of_model))

    @cached_property
    def by_agent(self) -> sparse.csr_array:
        """The same of agents."""
        return _incidence(self.agent, len(self.domain_of_agent))


class CrossedEffects(NamedTuple):
    """What is believed of models whoever the agent is, of agents whatever the model is, and of pairs that were seen."""

    models: Pooled
    agents: Pooled
    pairs: Pooled


def cross(domains: Pooled, cells: Cells, pooling: PoolingPrior, *, effective_cap: float = math.inf) -> CrossedEffects:
    """Beliefs of every model, agent and pair.

    Time is linear in the number of cells.
    """
    # What models have in common is seen within agents, and the other way round.
    apart = math.sqrt(pooling.agents_over_models)
    sides = (
        _Side(cells.by_model, cells.domain_of_model, _differ(cells, domains, cells.model, cells.agent), apart),
        _Side(cells.by_agent, cells.domain_of_agent, _differ(cells, domains, cells.agent, cells.model), 1.0 / apart),
    )
    fitted = _Fit(domains, cells, sides, pooling, effective_cap)
    models, agents = fitted.pooled()
    pairs = cells.pairs
    together = pair_prior(
        domains.rows(cells.domain[pairs]), models.rows(cells.model[pairs]), agents.rows(cells.agent[pairs])
    )
    here = Level(np.arange(len(pairs)), cells.hits[pairs], cells.misses[pairs])
    peculiar = intraclass_correlation(
        cells.agent[pairs], len(cells.domain_of_agent), prior_mean=together.mean, hits=here.hits, misses=here.misses
    )
    above = replace(together, strength=agents.strength)
    return CrossedEffects(
        models, agents, pool_below(above, here, pooling, effective_cap=effective_cap, correlation=peculiar, ratio=apart)
    )


def pair_prior(domain: Pooled, model: Pooled, agent: Pooled) -> Pooled:
    """What is believed of pairs before they are seen: log-odds of the domain with what each of both adds to them."""
    mean = expit(logit(model.mean) + logit(agent.mean) - logit(domain.mean))
    variances = [each.total_variance for each in (model, agent)]
    # Both hold what is not known of the domain, which counts once; and a pair is no surer than either of both.
    variance = np.maximum(variances[0] + variances[1] - domain.total_variance, np.maximum(*variances))
    nothing = np.zeros_like(mean)
    return Pooled(mean, agent.kappa, nothing, nothing, variance)


@dataclass(frozen=True, slots=True)
class _Side:
    """Models, or agents: which cells are theirs, their domains, how much they differ, and κ beside that of domains."""

    of_cell: sparse.csr_array
    domain: Ints
    differ: Correlation
    ratio: float


@dataclass(frozen=True)
class _Fit:
    """The additions u that maximise Σ hits·η − n·ln(1 + e^η) − ½·Σ κ·m(1 − m)·u², η = logit m + u_model + u_agent.

    That is a logistic regression with random effects at its mode (Breslow and Clayton, Approximate inference in
    generalized linear mixed models, JASA 1993), m the mean of the domain: near it κ of a Beta is a precision of
    κ·m(1 − m) in log-odds. The sum is concave, so that a further hit never lowers the rate of its own cell; fitted to
    rates themselves, additions overshoot 1, and what then falls short of that speaks against a model that never failed.
    Newton's steps are halved until they climb. In each, agents are eliminated; models are found by conjugate gradients,
    preconditioned by what agents leave of each model's own evidence.
    """

    domains: Pooled
    cells: Cells
    sides: tuple[_Side, _Side]
    pooling: PoolingPrior
    cap: float

    def pooled(self) -> tuple[Pooled, Pooled]:
        """The beliefs of models and of agents."""
        models, agents = self._additions
        return self._believed(0, models, self._left(0, 1)), self._believed(1, agents, self._left(1, 0))

    @cached_property
    def _n(self) -> tuple[Floats, Floats]:
        """Observations of each model, and of each agent."""
        return self._sum(0, self.cells.n), self._sum(1, self.cells.n)

    @cached_property
    def _share(self) -> tuple[Floats, Floats]:
        """Which share of them may stand against the prior."""
        return capped_share(self._n[0], self.cap), capped_share(self._n[1], self.cap)

    @cached_property
    def _kappa(self) -> tuple[Floats, Floats]:
        """κ of each, raised where more was observed than may stand against it."""
        models, agents = (self._kappa_after(side, self._n[side] * self._share[side]) for side in (0, 1))
        return models / self._share[0], agents / self._share[1]

    def _kappa_after(self, side: int, n: Floats) -> Floats:
        """κ of each after n observations that may stand against it."""
        differ, ratio = self.sides[side].differ, self.sides[side].ratio
        strength = believed_strength(differ, self.domains.strength, self.pooling, ratio=ratio)
        return expected_kappa(list(strength.points(None, weakest=self.pooling.weakest)), n)

    def _sum(self, side: int, values: Floats) -> Floats:
        return np.asarray(self.sides[side].of_cell.T @ values)

    def _spread(self, side: int, values: Floats) -> Floats:
        return np.asarray(self.sides[side].of_cell @ values)

    def _left(self, side: int, other: int) -> Floats:
        """Observations of each that the other side does not account for."""
        n = self.cells.n
        # Of a cell's n observations the share n / (κ + N) goes into what the other side adds; what is left when that is
        # eliminated speaks of this side.
        accounted = n * n * self._spread(other, 1.0 / (self._kappa[other] + self._n[other]))
        return np.maximum(self._n[side] - self._sum(side, accounted), 0.0)

    @cached_property
    def _additions(self) -> tuple[Floats, Floats]:
        """What each model and each agent adds to the log-odds of its domain."""
        added = np.zeros_like(self._n[0]), np.zeros_like(self._n[1])
        reached = self._score(added)
        for _ in range(_NEWTON_STEPS):
            step = self._step(added)
            if max(float(np.abs(each).max(initial=0.0)) for each in step) < _STILL:
                break
            # Parameters are problems of their own: each halves its own step until its sum climbs. A fall within
            # rounding is none, or a parameter that has arrived would halve to the end.
            enough = reached - _ROUNDED * np.abs(reached)
            size = np.ones_like(reached)
            for _ in range(_HALVINGS):
                moved = added[0] + size * step[0], added[1] + size * step[1]
                climbed = self._score(moved)
                if (climbed >= enough).all():
                    break
                size = np.where(climbed >= enough, size, size / 2.0)
            added, reached = moved, climbed
        return added

    @cached_property
    def _precision(self) -> tuple[Floats, Floats]:
        """Of the additions a priori, in log-odds."""
        means = (self.domains.mean[side.domain] for side in self.sides)
        models, agents = (kappa * mean * (1.0 - mean) for kappa, mean in zip(self._kappa, means, strict=True))
        return models, agents

    def _log_odds(self, added: tuple[Floats, Floats]) -> Floats:
        """Of every cell."""
        own = logit(self.domains.mean)[self.cells.domain]
        return own + self._spread(0, added[0]) + self._spread(1, added[1])

    def _score(self, added: tuple[Floats, Floats]) -> Floats:
        """What is maximised, (parameters,)."""
        log_odds = self._log_odds(added)
        likely = (self.cells.hits * log_odds - self.cells.n * np.logaddexp(0.0, log_odds)).sum(axis=0)
        pulled = sum((precision * each**2).sum(axis=0) for precision, each in zip(self._precision, added, strict=True))
        return np.asarray(likely - pulled / 2.0)

    def _step(self, added: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """Newton's step from some additions."""
        rate = expit(self._log_odds(added))
        weight, beyond = self.cells.n * rate * (1.0 - rate), self.cells.hits - self.cells.n * rate
        slope = tuple(self._sum(side, beyond) - self._precision[side] * added[side] for side in (0, 1))
        totals = tuple(self._precision[side] + self._sum(side, weight) for side in (0, 1))

        # The curvature is [[A, B], [Bᵀ, D]] with A and D diagonal, since a cell has one model and one agent. So agents
        # are eliminated by a division: (A − B·D⁻¹·Bᵀ)·models = slope₀ − B·D⁻¹·slope₁. B is applied by cells, not made.
        def through_agents(agents: Floats) -> Floats:
            return self._sum(0, weight * self._spread(1, agents / totals[1]))

        def reduced(models: Floats) -> Floats:
            return totals[0] * models - through_agents(self._sum(1, weight * self._spread(0, models)))

        # The diagonal of what is left. Where agents account for all of a model, rounding may take it below 0; what
        # the prior adds nobody accounts for.
        accounted = self._sum(0, weight**2 * self._spread(1, 1.0 / totals[1]))
        diagonal = self._precision[0] + np.maximum(totals[0] - self._precision[0] - accounted, 0.0)
        models = _conjugate_gradients(reduced, slope[0] - through_agents(slope[1]), diagonal)
        return models, (slope[1] - self._sum(1, weight * self._spread(0, models))) / totals[1]

    def _believed(self, which: int, added: Floats, left: Floats) -> Pooled:
        """Betas about the domain's mean with what was added to it, as sure as the evidence that was left to them.

        Where that is less than it takes to move a Beta so far, they are as sure as that.
        """
        side, n = self.sides[which], left * self._share[which]
        before = self.domains.mean[side.domain]
        mean = expit(logit(before) + added)
        takes = (
            np.maximum(before / mean, (1.0 - before) / (1.0 - mean)) - 1.0
        )  # κ·m + hits = mean·(κ + n), 0 <= hits <= n
        n = np.maximum(n, self._kappa_after(which, n) * takes)
        hits = np.clip(n * before + (mean - before) * (self._kappa_after(which, n) + n), 0.0, n)
        level = Level(side.domain, hits, n - hits)
        return pool_below(self.domains, level, self.pooling, correlation=side.differ, ratio=side.ratio)


def _differ(cells: Cells, domains: Pooled, these: Ints, others: Ints) -> Correlation:
    """How much some differ among those that were seen with the same of the others; with none, in the same domain."""
    rows = np.flatnonzero(these >= 0)
    alone = others.max(initial=-1) + 1 + cells.domain
    family = np.where(others >= 0, others, alone)[rows]
    return intraclass_correlation(
        family,
        int(alone.max(initial=0)) + 1,
        prior_mean=domains.mean[cells.domain[rows]],
        hits=cells.hits[rows],
        misses=cells.misses[rows],
    )


def _conjugate_gradients(apply: Callable[[Floats], Floats], target: Floats, diagonal: Floats) -> Floats:
    """Solve A·x = target, for each column: A symmetric and positive definite, with about that diagonal."""
    x, residual = np.zeros_like(target), target
    scaled = residual / diagonal
    direction, product = scaled, (residual * scaled).sum(axis=0)
    enough = _SETTLED * product
    for _ in range(_STEPS):
        if (product <= enough).all():
            break
        image = apply(direction)
        step = _ratio(product, (direction * image).sum(axis=0))
        x, residual = x + step * direction, residual - step * image
        scaled = residual / diagonal
        before, product = product, (residual * scaled).sum(axis=0)
        direction = scaled + _ratio(product, before) * direction
    return x


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)


def _incidence(places: Ints, size: int) -> sparse.csr_array:
    rows = np.flatnonzero(places >= 0)
    return sparse.csr_array((np.ones(len(rows)), (rows, places[rows])), shape=(len(places), size))


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
