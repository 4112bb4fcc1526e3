"""How often each signal agrees with outcomes, believed at every node of the hierarchy (LRN-4, LRN-5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit, ndtri, polygamma, psi

from weft.domain.arrays import Floats, Ints
from weft.domain.documents import Domain
from weft.domain.ranking import ANY, Scope, Signal
from weft.learning.evidence import Evidence
from weft.learning.pooling.covariance import SignalCovariance, read_signal_covariance
from weft.learning.pooling.gathering import COLUMNS, SIGNALS, AgreementTable, Path, gathered, numbered, places_of
from weft.learning.pooling.hierarchy import Level, Pooled, pool
from weft.learning.pooling.sessions import SessionEvidence
from weft.learning.pooling.tree import DOMAINS, BeliefTree, Node, Nodes, Step, widened
from weft.learning.priors import AgreementPrior, Priors
from weft.learning.recency import Discount, capped_share

_EDGE = float(np.finfo(np.float64).epsneg)  # a draw may round to 0 or 1, whose log-odds are infinite


@dataclass(frozen=True, slots=True)
class IntentFactor:
    """By what an intent multiplies the odds that a signal agrees with outcomes: a belief about a number > 0.

    It is the geometric mean of the factors after good and after bad outcomes. The logarithm of a Beta's odds has mean
    ψ(a) − ψ(b) and variance ψ₁(a) + ψ₁(b), and is nearly normal (Aitchison and Shen, Biometrika 1980).
    """

    a: Floats  # both float64 (2,), the Betas of agreement under the intent, after good and after bad outcomes
    b: Floats
    expected: Floats  # float64 (2,), log-odds of agreement in its domain
    observations: float = 0.0  # Behind it, beyond the priors

    @property
    def mean(self) -> float:
        """The factor at the means of agreement: 1 changes nothing."""
        return float(np.exp(np.mean(logit(self.a / (self.a + self.b)) - self.expected)))

    def interval(self, level: float) -> tuple[float, float]:
        """Equal-tailed credible interval that holds the factor with probability `level` in (0, 1)."""
        centre = float(np.mean(psi(self.a) - psi(self.b) - self.expected))
        deviation = math.sqrt(float(np.sum(polygamma(1, self.a) + polygamma(1, self.b)))) / len(self.a)
        reach = float(ndtri((1.0 + level) / 2.0)) * deviation
        return math.exp(centre - reach), math.exp(centre + reach)

    def sample(self, rng: np.random.Generator) -> float:
        """One draw of the factor (Thompson sampling)."""
        return float(np.exp(np.mean(logit(np.clip(rng.beta(self.a, self.b), _EDGE, 1.0 - _EDGE)) - self.expected)))


@dataclass(frozen=True, slots=True)
class Intents:
    """By how much the log-odds of agreement under an intent stand above those of its domain."""

    places: Mapping[Path, int]
    columns: Ints  # int64, which of `COLUMNS` anything was observed of
    belief: Pooled  # What is believed under each intent, arrays (intents, columns)
    expected: Floats  # float64 (intents, columns), log-odds of agreement in its domain

    def knows(self, domain: Domain, intent: str) -> bool:
        """Whether anything was observed under that intent in that domain."""
        return (domain.value, intent) in self.places

    def shift(self, domain: Domain, intent: str) -> Floats:
        """Natural logarithms of the factors, float64 (all columns,); 0 for what was never observed."""
        shifts = np.zeros(len(COLUMNS))
        place = self.places.get((domain.value, intent))
        if place is not None:
            shifts[self.columns] = logit(self.belief.mean[place]) - self.expected[place]
        return shifts

    def factor(self, domain: Domain, intent: str, signal: Signal) -> IntentFactor | None:
        """The belief about the factor on one signal's odds; None where the intent told nothing of that signal."""
        place = self.places.get((domain.value, intent))
        kinds = 2 * SIGNALS.index(signal) + np.arange(2)
        at = np.flatnonzero(np.isin(self.columns, kinds))
        if place is None or not self.belief.n[place, at].any():
            return None
        a, b = (side[place, at] for side in self.belief.moment_matched)
        return IntentFactor(a, b, self.expected[place, at], float(self.belief.n[place, at].sum()))


def read_intents(priors: Priors, gathered: AgreementTable, today: int, root: Pooled, domain: Level) -> Intents:
    """Pool intents under their domains, in the way that models are: a rare one hardly departs from its domain."""
    domains: dict[Path, int] = {(each.value, ANY): place for place, each in enumerate(Domain)}
    places = numbered(path for path in gathered.paths if path[1] != ANY)
    parent = np.array([domains[path[0], ANY] for path in places], dtype=np.int64)
    discount = Discount(today, priors.recency.project_half_life_days)
    direct, below = (
        gathered.observed(places_of(gathered.paths, level), len(level), discount) for level in (domains, places)
    )
    offset = None if domain.offset is None else domain.offset[:, gathered.columns]
    levels = [Level(domain.parent, *direct, offset, domain.strength_factor), Level(parent, *below)]
    cap = priors.robustness.effective_cap
    _, of_domain, of_intent = pool(root.of(gathered.columns), levels, priors.pooling, effective_cap=cap)
    return Intents(places, gathered.columns, of_intent, logit(of_domain.mean[parent]))


@dataclass(frozen=True, slots=True)
class AgreementPosterior:
    """What is believed at one node, arrays in the order of `SIGNALS`."""

    a: Floats  # both float64 (signals, 2), the Betas of agreement after good and after bad outcomes
    b: Floats
    n_effective: Floats  # float64 (signals,), observations behind the belief beyond the priors of `conf/`
    level: tuple[str, ...]  # Level that informs each signal's belief most, "prior" among them
    prior_log_odds: Floats  # float64 (signals,), what the priors alone say
    spread: SignalCovariance  # How they vary within outcomes of one kind


class Agreement:
    """The pooled beliefs and where each scope stands among them."""

    def __init__(
        self, prior: AgreementPrior, tree: BeliefTree, *, intents: Intents, spread: Mapping[Domain, SignalCovariance]
    ) -> None:
        self._spread = spread
        self._prior = prior
        self._tree = tree
        self._intents = intents

    def node(self, scope: Scope) -> Node:
        """Where a scope stands: what was observed of its domain, model and agent, and of the two together."""
        return self._tree.nodes.node(scope)

    def scopes(self) -> list[Scope]:
        """Every domain, and every model, agent and intent that was observed in one."""
        domains = [Scope(domain) for domain in DOMAINS]
        _, *levels = self._tree.nodes.by_path
        paths = sorted(path for level in levels for path in level)
        observed = [Scope(Domain(path[0]), *path[1:]) for path in paths]
        return [*domains, *observed, *(Scope(domain, intent=intent) for domain, intent in self.intents())]

    def intents(self) -> list[tuple[Domain, str]]:
        """Every intent with the domain that it was observed in."""
        return [(Domain(domain), intent) for domain, intent in sorted(self._intents.places)]

    def intent_factor(self, domain: Domain, intent: str, signal: Signal) -> IntentFactor | None:
        """By what an intent multiplies a signal's odds of agreement; None where it told nothing of that signal."""
        return self._intents.factor(domain, intent, signal)

    def intent(self, scope: Scope) -> str:
        """The scope's intent where it was ever observed in its domain; an unspecified one otherwise."""
        return scope.intent if self._intents.knows(scope.domain, scope.intent) else ANY

    def posterior(self, node: Node, intent: str = ANY) -> AgreementPosterior:
        """What is believed at a node under an intent, and which level it mostly comes from.

        An intent multiplies the odds of agreement, and leaves the strength of the belief as it is.
        """
        line, pairs = self._tree.lineage(node), (len(SIGNALS), 2)
        domain = DOMAINS[node.domain]
        a, b = (side[0] for side in self._tree.belief(node).moment_matched)
        if intent != ANY:
            mean = expit(logit(a / (a + b)) + self._intents.shift(domain, intent))
            a, b = (a + b) * mean, (a + b) * (1.0 - mean)
        return AgreementPosterior(
            a=a.reshape(pairs),
            b=b.reshape(pairs),
            n_effective=_n_effective(line),
            level=_strongest(line),
            prior_log_odds=np.array([logit(self._prior.mean(domain, signal)) for signal in SIGNALS]),
            spread=self._spread[domain],
        )


def _masses(line: Sequence[Step]) -> list[tuple[Floats, Floats]]:
    """Observations and κ per signal along a line, both kinds of outcome together."""
    pairs = (len(SIGNALS), 2)
    return [(step.belief.n.reshape(pairs).sum(axis=1), step.belief.kappa.reshape(pairs).sum(axis=1)) for step in line]


def _n_effective(line: Sequence[Step]) -> Floats:
    """A node's own observations, and that part of its prior which is its ancestors' observations."""
    learned_share = np.zeros(len(SIGNALS))
    n_effective = np.zeros(len(SIGNALS))
    for n, kappa in _masses(line):
        n_effective = n + kappa * learned_share
        learned_share = n_effective / (n + kappa)
    return n_effective


def _strongest(line: Sequence[Step]) -> tuple[str, ...]:
    """The level that informs each signal's belief most."""
    remaining = np.ones(len(SIGNALS))
    shares: list[Floats] = []
    for n, kappa in reversed(_masses(line)):
        shares.insert(0, remaining * n / (n + kappa))
        remaining = remaining * kappa / (n + kappa)
    names = ("prior", *(step.level for step in line))
    strongest = np.argmax(np.stack([remaining, *shares]), axis=0)
    return tuple(names[index] for index in strongest)


def read_agreement(priors: Priors, evidence: Evidence, today: int, session: SessionEvidence | None = None) -> Agreement:
    """Pool the evidence about agreement as it counts on the day `today`."""
    by_node, by_intent = gathered(evidence, priors.robustness)
    project = Discount(today, priors.recency.project_half_life_days)
    nodes = Nodes.of(by_node.paths)
    cap = priors.robustness.effective_cap
    everywhere = Discount(today, priors.recency.global_half_life_days)
    domain = places_of((path[:1] for path in by_node.paths), nodes.by_path[0])
    by_domain = (widened(side, by_node.columns) for side in by_node.observed(domain, len(DOMAINS), everywhere))
    root, offset = _root(priors.signals, *by_domain, cap=cap)
    factor = np.array([priors.signals.variance_factor[domain] for domain in DOMAINS])
    cells, top = nodes.cells(by_node, project)
    top = replace(top, offset=offset, strength_factor=factor)
    tree = BeliefTree.fit(nodes, root, top, cells, columns=by_node.columns, pooling=priors.pooling, cap=cap)
    if session is not None:
        own, _ = gathered(session.overlay, priors.robustness)
        tree = tree.of_session(own, session.moments.correlation(), priors.pooling, cap=cap)
    intents = read_intents(priors, by_intent, today, root, top)
    caps = {"daily_cap": priors.robustness.daily_cap, "principal_cap": priors.usage.principal_cap}
    spread = read_signal_covariance(priors.signals.spread, evidence, project, **caps)
    return Agreement(priors.signals, tree, intents=intents, spread=spread)


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
