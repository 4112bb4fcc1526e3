"""How often each signal agrees with outcomes, believed at every node of the hierarchy (LRN-4, LRN-5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import ANY, Scope, Signal
from pipelines.learning.evidence import MICRO, Evidence, EvidenceKey
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
    project = _Masses(Discount(today, priors.recency.project_half_life_days))
    everywhere = _Masses(Discount(today, priors.recency.global_half_life_days))
    for key, micro in evidence.counts.items():
        column = _COLUMNS.get(key.parameter)
        if column is not None and key.domain in _DOMAIN_NAMES:
            project.add(_path_of(key), column, key, micro)
            everywhere.add((key.domain,), column, key, micro)
    domains: list[Path] = [(domain.value,) for domain in DOMAINS]
    models = _numbered(path[:2] for path in project.paths if len(path) >= 2)
    agents = _numbered(path for path in project.paths if len(path) == 3)
    parents = [
        np.zeros(len(DOMAINS), dtype=np.int64),
        np.array([domains.index(path[:1]) for path in models], dtype=np.int64),
        np.array([models[path[:2]] for path in agents], dtype=np.int64),
    ]
    root, offset = _root(priors.signals, *everywhere.table(domains))
    factor = np.array([priors.signals.variance_factor[domain] for domain in DOMAINS])
    levels = [
        Level(parents[0], *project.table(domains), offset, factor),
        Level(parents[1], *project.table(models)),
        Level(parents[2], *project.table(agents)),
    ]
    return Agreement(priors.signals, pool(root, levels, priors.pooling), parents, models, agents)


class _Masses:
    """Discounted integer masses per path: 2 · columns numbers, for in the first half, against in the second."""

    def __init__(self, discount: Discount) -> None:
        self._discount = discount
        self._rows: dict[Path, list[int]] = {}

    @property
    def paths(self) -> Iterable[Path]:
        return self._rows.keys()

    def add(self, path: Path, column: int, key: EvidenceKey, micro: int) -> None:
        row = self._rows.get(path)
        if row is None:
            row = self._rows[path] = [0] * (2 * len(_COLUMNS))
        row[column + len(_COLUMNS) * (key.bin != FOR)] += self._discount(micro, key.day)

    def table(self, paths: Iterable[Path]) -> tuple[Floats, Floats]:
        """Observations for and against, float64 (paths, columns) each; a negative balance counts as none."""
        nothing = [0] * (2 * len(_COLUMNS))
        rows = [self._rows.get(path, nothing) for path in paths]
        masses = np.array(rows, dtype=np.float64).reshape(-1, 2 * len(_COLUMNS))
        hits, misses = np.hsplit(np.maximum(masses, 0.0) / MICRO, 2)
        return hits, misses


def _path_of(key: EvidenceKey) -> Path:
    """The node an observation was made at: without agent at the model, without either at the domain."""
    if key.agent != ANY:
        return (key.domain, key.model, key.agent)
    return (key.domain, key.model) if key.model != ANY else (key.domain,)


def _numbered(paths: Iterable[Path]) -> dict[Path, int]:
    # Sorted, so that sums over siblings run in the same order however the evidence was gathered.
    return {path: index for index, path in enumerate(sorted(set(paths)))}


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
