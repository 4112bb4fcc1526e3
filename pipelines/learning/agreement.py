"""How often each signal agrees with outcomes, believed at every node of the hierarchy (LRN-4, LRN-5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logit

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import ANY, Scope, Signal
from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.hierarchy import Level, Pooled, pool
from pipelines.learning.observations import FOR, signal_parameter
from pipelines.learning.priors import AgreementPrior, Priors
from pipelines.learning.recency import Discount

Floats = NDArray[np.float64]

SIGNALS: tuple[Signal, ...] = tuple(Signal)
DOMAINS: tuple[Domain, ...] = tuple(Domain)
# Per signal two rates, after good and after bad outcomes: bad ones are far more frequent and would drown the others.
_COLUMNS = {
    signal_parameter(signal, good=good): 2 * index + (not good)
    for index, signal in enumerate(SIGNALS)
    for good in (True, False)
}
_INT64_SAFE = 2.0**62
_DOMAIN_NAMES = frozenset(domain.value for domain in DOMAINS)
LEVELS = ("global", "domain", "model", "agent")

Path = tuple[str, ...]
"""Names from the domain down: (domain,), (domain, model) or (domain, model, agent)."""


class Node(NamedTuple):
    """A node of the hierarchy: `depth` 1 for a domain to 3 for an agent, `place` within its level."""

    depth: int
    place: int


@dataclass(frozen=True, slots=True)
class AgreementPosterior:
    """What is believed at one node, arrays in the order of `SIGNALS`.

    Attributes:
        a, b: float64 (signals, 2), the Betas of agreement after good and after bad outcomes.
        n_effective: float64 (signals,), observations behind the belief beyond the priors of `conf/`.
        level: Level that informs each signal's belief most, "prior" among them.
        prior_log_odds: float64 (signals,), what the priors alone say.
    """

    a: Floats
    b: Floats
    n_effective: Floats
    level: tuple[str, ...]
    prior_log_odds: Floats


class Agreement:
    """The pooled beliefs and where each scope stands among them."""

    def __init__(
        self,
        prior: AgreementPrior,
        pooled: Sequence[Pooled],
        parents: Sequence[NDArray[np.int64]],
        models: Mapping[Path, int],
        agents: Mapping[Path, int],
    ) -> None:
        self._prior = prior
        self._pooled = pooled
        self._parents = parents
        self._models = models
        self._agents = agents

    def node(self, scope: Scope) -> Node:
        """The deepest observed node on the scope's path; an unspecified model or agent stops at its parent."""
        domain = scope.domain.value
        if scope.agent != ANY and (agent := self._agents.get((domain, scope.model, scope.agent))) is not None:
            return Node(3, agent)
        if scope.model != ANY and (model := self._models.get((domain, scope.model))) is not None:
            return Node(2, model)
        return Node(1, DOMAINS.index(scope.domain))

    def posterior(self, node: Node) -> AgreementPosterior:
        """What is believed at a node, and which level it mostly comes from."""
        path = self._path(node)
        here = self._pooled[node.depth]
        pairs = (len(SIGNALS), 2)
        domain = DOMAINS[path[1]]
        return AgreementPosterior(
            a=here.a[node.place].reshape(pairs),
            b=here.b[node.place].reshape(pairs),
            n_effective=self._n_effective(path),
            level=self._levels(path),
            prior_log_odds=np.array([logit(self._prior.mean(domain, signal)) for signal in SIGNALS]),
        )

    def _path(self, node: Node) -> list[int]:
        """Index at each level from the root (depth 0) down to the node."""
        path = [node.place]
        for depth in range(node.depth, 0, -1):
            path.insert(0, int(self._parents[depth - 1][path[0]]))
        return path

    def _masses(self, path: Sequence[int]) -> list[tuple[Floats, Floats]]:
        """Observations and κ per signal along a path, both kinds of outcome together."""
        pairs = (len(SIGNALS), 2)
        return [
            (level.n[index].reshape(pairs).sum(axis=1), level.kappa[index].reshape(pairs).sum(axis=1))
            for level, index in zip(self._pooled, path, strict=False)
        ]

    def _n_effective(self, path: Sequence[int]) -> Floats:
        """A node's own observations, and that part of its prior which is its ancestors' observations."""
        learned_share = np.zeros(len(SIGNALS))
        n_effective = np.zeros(len(SIGNALS))
        for n, kappa in self._masses(path):
            n_effective = n + kappa * learned_share
            learned_share = n_effective / (n + kappa)
        return n_effective

    def _levels(self, path: Sequence[int]) -> tuple[str, ...]:
        masses = self._masses(path)
        remaining = np.ones(len(SIGNALS))
        shares: list[Floats] = []
        for n, kappa in reversed(masses):
            shares.insert(0, remaining * n / (n + kappa))
            remaining = remaining * kappa / (n + kappa)
        names = ("prior", *LEVELS[: len(path)])
        strongest = np.argmax(np.stack([remaining, *shares]), axis=0)
        return tuple(names[index] for index in strongest)


def read_agreement(priors: Priors, evidence: Evidence, today: int) -> Agreement:
    """Pool the evidence about agreement as it counts on the day `today`."""
    gathered = _gathered(evidence)
    project = gathered.masses(Discount(today, priors.recency.project_half_life_days))
    everywhere = gathered.masses(Discount(today, priors.recency.global_half_life_days))
    domains: dict[Path, int] = {(domain.value,): index for index, domain in enumerate(DOMAINS)}
    models = _numbered(path[:2] for path in gathered.paths if len(path) >= 2)
    agents = _numbered(path for path in gathered.paths if len(path) == 3)
    parents = [
        np.zeros(len(domains), dtype=np.int64),
        np.array([domains[path[:1]] for path in models], dtype=np.int64),
        np.array([models[path[:2]] for path in agents], dtype=np.int64),
    ]
    by_domain = _summed(everywhere, [domains[path[:1]] for path in gathered.paths], len(domains))
    root, offset = _root(priors.signals, *_observations(by_domain))
    factor = np.array([priors.signals.variance_factor[domain] for domain in DOMAINS])
    direct = [
        _observations(_summed(project, [level.get(path, -1) for path in gathered.paths], len(level)))
        for level in (domains, models, agents)
    ]
    levels = [Level(parents[0], *direct[0], offset, factor), *map(_plain_level, parents[1:], direct[1:])]
    return Agreement(priors.signals, pool(root, levels, priors.pooling), parents, models, agents)


@dataclass(frozen=True, slots=True)
class _Gathered:
    """The masses about agreement, one entry per key, and the nodes they were observed at.

    Attributes:
        paths: The nodes, in the order of their first mass.
        row, column: int64 (n,), node and place of each mass: against in the second half of the columns.
        day: int64 (n,).
        micro: float64 (n,), the masses; a float holds a micro-unit exactly up to 9·10⁹ observations.
    """

    paths: list[Path]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    day: NDArray[np.int64]
    micro: Floats

    def masses(self, discount: Discount) -> NDArray[np.int64]:
        """Discounted sums in whole micro-units, int64 (paths, 2 · columns): exact, in whatever order they came."""
        counted = discount.of_days(self.micro, self.day)
        if np.abs(counted).sum() > _INT64_SAFE:
            raise OverflowError("evidence: expected the sum of all masses within int64")
        width = 2 * len(_COLUMNS)
        summed = np.zeros(len(self.paths) * width, dtype=np.int64)
        np.add.at(summed, self.row * width + self.column, counted.astype(np.int64))
        return summed.reshape(-1, width)


def _gathered(evidence: Evidence) -> _Gathered:
    paths: dict[Path, int] = {}
    entries: list[tuple[int, int, int, int]] = []
    for (day, domain, model, agent, _, parameter, bin_), micro in evidence.counts.items():
        column = _COLUMNS.get(parameter)
        if column is not None and domain in _DOMAIN_NAMES:
            row = paths.setdefault(_path(domain, model, agent), len(paths))
            entries.append((row, column if bin_ == FOR else column + len(_COLUMNS), day, micro))
    table = np.array(entries, dtype=np.int64).reshape(-1, 4)
    return _Gathered(list(paths), table[:, 0], table[:, 1], table[:, 2], table[:, 3].astype(np.float64))


def _path(domain: str, model: str, agent: str) -> Path:
    """The node an observation was made at: without agent at the model, without either at the domain."""
    if agent != ANY:
        return (domain, model, agent)
    return (domain, model) if model != ANY else (domain,)


def _numbered(paths: Iterable[Path]) -> dict[Path, int]:
    # Sorted, so that sums over siblings run in the same order however the evidence was gathered; as one string each,
    # which compares several times faster than a tuple.
    return {path: index for index, path in enumerate(sorted(set(paths), key="\0".join))}


def _summed(masses: NDArray[np.int64], nodes: Sequence[int], size: int) -> NDArray[np.int64]:
    """The masses of each of `size` nodes; rows whose node is −1 stand at another level."""
    places = np.array(nodes, dtype=np.int64)
    rows = np.flatnonzero(places >= 0)
    membership = sparse.csr_array((np.ones_like(rows), (places[rows], rows)), shape=(size, len(places)))
    return np.asarray(membership @ masses)


def _observations(masses: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Observations for and against, float64 (nodes, columns) each; a negative balance counts as none."""
    hits, misses = np.hsplit(np.maximum(masses, 0) / MICRO, 2)
    return hits, misses


def _plain_level(parent: NDArray[np.int64], observed: tuple[Floats, Floats]) -> Level:
    return Level(parent, *observed)


def _root(prior: AgreementPrior, hits: Floats, misses: Floats) -> tuple[Pooled, Floats]:
    """The belief of all domains together, and how far each domain's prior stands from it in log-odds.

    Domains have stated priors of their own. What they have in common is how far reality departs from them: the root
    starts at the mix of priors that its evidence comes from, and each domain at its own prior moved as the root moved.
    """
    means = np.array([[prior.mean(domain, signal) for signal in SIGNALS for _ in range(2)] for domain in DOMAINS])
    n = hits + misses
    total = n.sum(axis=0)
    share = np.where(total > 0.0, n / np.where(total > 0.0, total, 1.0), 1.0 / len(DOMAINS))
    mix = (share * means).sum(axis=0, keepdims=True)
    kappa = np.full_like(mix, prior.global_strength)
    root = Pooled(mix, kappa, hits.sum(axis=0, keepdims=True), misses.sum(axis=0, keepdims=True))
    return root, logit(means) - logit(mix)
