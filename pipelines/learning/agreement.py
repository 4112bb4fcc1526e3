"""How often each signal agrees with outcomes, believed at every node of the hierarchy (LRN-4, LRN-5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import ANY, Scope
from pipelines.learning.evidence import Evidence
from pipelines.learning.gathering import SIGNALS, Path, gathered, numbered, observations, summed
from pipelines.learning.hierarchy import Level, Pooled, pool
from pipelines.learning.intents import Intents, read_intents
from pipelines.learning.priors import AgreementPrior, Priors, Weighing
from pipelines.learning.recency import Discount
from pipelines.learning.robustness import capped_share
from pipelines.learning.spread import Spread, read_spread

Floats = NDArray[np.float64]

DOMAINS: tuple[Domain, ...] = tuple(Domain)
LEVELS = ("global", "domain", "model", "agent")


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
        spread: How they vary within outcomes of one kind; None weighs by log-odds alone.
    """

    a: Floats
    b: Floats
    n_effective: Floats
    level: tuple[str, ...]
    prior_log_odds: Floats
    spread: Spread | None = None


class Agreement:
    """The pooled beliefs and where each scope stands among them."""

    def __init__(
        self,
        prior: AgreementPrior,
        pooled: Sequence[Pooled],
        parents: Sequence[NDArray[np.int64]],
        *,
        models: Mapping[Path, int],
        agents: Mapping[Path, int],
        intents: Intents,
        spread: Mapping[Domain, Spread],
    ) -> None:
        self._spread = spread
        self._prior = prior
        self._pooled = pooled
        self._honest = [level.honest for level in pooled]
        self._parents = parents
        self._models = models
        self._agents = agents
        self._intents = intents

    def node(self, scope: Scope) -> Node:
        """The deepest observed node on the scope's path; an unspecified model or agent stops at its parent."""
        domain = scope.domain.value
        if scope.agent != ANY and (agent := self._agents.get((domain, scope.model, scope.agent))) is not None:
            return Node(3, agent)
        if scope.model != ANY and (model := self._models.get((domain, scope.model))) is not None:
            return Node(2, model)
        return Node(1, DOMAINS.index(scope.domain))

    def scopes(self) -> list[Scope]:
        """Every domain, and every model, agent and intent that was observed in one."""
        domains = [Scope(domain) for domain in DOMAINS]
        observed = [Scope(Domain(path[0]), *path[1:]) for path in sorted([*self._models, *self._agents])]
        intents = [Scope(Domain(domain), intent=intent) for domain, intent in sorted(self._intents.places)]
        return [*domains, *observed, *intents]

    def intent(self, scope: Scope) -> str:
        """The scope's intent where it was ever observed in its domain; an unspecified one otherwise."""
        return scope.intent if self._intents.knows(scope.domain, scope.intent) else ANY

    def posterior(self, node: Node, intent: str = ANY) -> AgreementPosterior:
        """What is believed at a node under an intent, and which level it mostly comes from.

        An intent multiplies the odds of agreement, and leaves the strength of the belief as it is.
        """
        path = self._path(node)
        pairs = (len(SIGNALS), 2)
        domain = DOMAINS[path[1]]
        a, b = self._honest[node.depth][0][node.place], self._honest[node.depth][1][node.place]
        if intent != ANY:
            mean = expit(logit(a / (a + b)) + self._intents.shift(domain, intent))
            a, b = (a + b) * mean, (a + b) * (1.0 - mean)
        return AgreementPosterior(
            a=a.reshape(pairs),
            b=b.reshape(pairs),
            n_effective=self._n_effective(path),
            level=self._levels(path),
            prior_log_odds=np.array([logit(self._prior.mean(domain, signal)) for signal in SIGNALS]),
            spread=self._spread.get(domain),
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
    found, by_intent = gathered(evidence, priors.robustness)
    project = found.masses(_project(priors, today))
    everywhere = found.masses(Discount(today, priors.recency.global_half_life_days))
    domains: dict[Path, int] = {(domain.value,): index for index, domain in enumerate(DOMAINS)}
    models = numbered(path[:2] for path in found.paths if len(path) >= 2)
    agents = numbered(path for path in found.paths if len(path) == 3)
    parents = [
        np.zeros(len(domains), dtype=np.int64),
        np.array([domains[path[:1]] for path in models], dtype=np.int64),
        np.array([models[path[:2]] for path in agents], dtype=np.int64),
    ]
    cap = priors.robustness.effective_cap
    by_domain = summed(everywhere, [domains[path[:1]] for path in found.paths], len(domains))
    root, offset = _root(priors.signals, *observations(by_domain), cap=cap)
    factor = np.array([priors.signals.variance_factor[domain] for domain in DOMAINS])
    direct = [
        observations(summed(project, [level.get(path, -1) for path in found.paths], len(level)))
        for level in (domains, models, agents)
    ]
    top = Level(parents[0], *direct[0], offset, factor)
    levels = [top, *map(_plain_level, parents[1:], direct[1:])]
    pooled = pool(root, levels, priors.pooling, effective_cap=cap)
    intents = read_intents(priors, by_intent, today, root, top)
    discriminant = priors.signals.weighing is Weighing.DISCRIMINANT
    spread = (
        read_spread(priors.signals.spread, evidence, _project(priors, today), daily_cap=priors.robustness.daily_cap)
        if discriminant
        else {}
    )
    return Agreement(priors.signals, pooled, parents, models=models, agents=agents, intents=intents, spread=spread)


def _project(priors: Priors, today: int) -> Discount:
    return Discount(today, priors.recency.project_half_life_days)


def _plain_level(parent: NDArray[np.int64], observed: tuple[Floats, Floats]) -> Level:
    return Level(parent, *observed)


def _root(prior: AgreementPrior, hits: Floats, misses: Floats, *, cap: float) -> tuple[Pooled, Floats]:
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
    counts = capped_share(total, cap)
    sides = ((counts * side.sum(axis=0))[None, :] for side in (hits, misses))
    root = Pooled(mix, kappa, *sides)
    return root, logit(means) - logit(mix)
