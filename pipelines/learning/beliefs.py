"""Every belief a search needs, computed at once from priors, evidence and the time (ARC-1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.documents import Domain
from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import ANY, Scope, Signal, WeightBelief
from pipelines.learning.evidence import Evidence, day_of
from pipelines.learning.observe.examination import Examination, read_examination
from pipelines.learning.observe.sizes import SizingBeliefs, read_sizing
from pipelines.learning.observe.triggers import LearnedTriggers, read_triggers
from pipelines.learning.observe.usage import ContentSignals, Usage, read_usage
from pipelines.learning.pooling.agreement import Agreement, IntentFactor, read_agreement
from pipelines.learning.pooling.fitted import FittedWeights
from pipelines.learning.pooling.sessions import SessionEvidence
from pipelines.learning.pooling.tree import Node
from pipelines.learning.pooling.weights import SEED, believed_weights, mean_shares, sampled_shares, share_draws
from pipelines.learning.priors import Priors
from pipelines.learning.recency import Discount
from pipelines.learning.reported import Reported
from pipelines.learning.uses import Uses

Floats = NDArray[np.float64]


class Beliefs:
    """All posteriors at one time. Immutable but for a memory of what weights it was asked for, bounded by its nodes.

    Attributes:
        reported: Beliefs about decay, thresholds, model quality and trust, from what is reported outright.
        examination: Beliefs about how often ranks are looked at, by domain (FBK-10).
        sizing: Beliefs about sizes of chunks and context, by domain (LRN-9).
        triggers: Terms that contents are found by because they were once picked from far down (RET-17).

    Examples:
        >>> from pipelines.settings import load_settings
        >>> beliefs = read_beliefs(load_settings(environment={}).priors, Evidence(), now=0.0)
        >>> weights = beliefs.weights(Scope(Domain.CODE), [Signal.VECTOR, Signal.USAGE])
        >>> round(weights[Signal.VECTOR].mean, 3), weights[Signal.VECTOR].level  # .35 / (.35 + .15)
        (0.7, 'prior')
    """

    def __init__(
        self,
        priors: Priors,
        agreement: Agreement,
        usage: Usage,
        *,
        reported: Reported,
        examination: Mapping[Domain, Examination],
        sizing: SizingBeliefs,
        triggers: LearnedTriggers,
        fitted: FittedWeights | None = None,
    ) -> None:
        self._priors = priors
        self._agreement = agreement
        self._usage = usage
        self._fitted = {} if fitted is None else fitted.by_domain
        self.reported = reported
        self.examination = examination
        self.sizing = sizing
        self.triggers = triggers
        self._weights: dict[tuple[Node, str, frozenset[Signal]], Mapping[Signal, WeightBelief]] = {}
        self._drawn: dict[tuple[Node, str, frozenset[Signal], int], Mapping[Signal, Floats]] = {}

    def trust_multiplier(self, source: str, model: str = ANY) -> float:
        """Factor on the trust level of a source of that type, as that model uses it (LRN-10)."""
        return self.reported.trust_multiplier(source, model)

    def scopes(self) -> list[Scope]:
        """Where weights were learned: every domain, and every model, agent and intent that was observed in one."""
        return self._agreement.scopes()

    def intents(self) -> list[tuple[Domain, str]]:
        """Every intent with the domain that it was observed in."""
        return self._agreement.intents()

    def intent_factor(self, domain: Domain, intent: str, signal: Signal) -> IntentFactor | None:
        """By what an intent multiplies a signal's odds of agreement; None where it told nothing of that signal."""
        return self._agreement.intent_factor(domain, intent, signal)

    def weights(self, scope: Scope, active: Collection[Signal]) -> Mapping[Signal, WeightBelief]:
        """Belief about the weight of each active signal: shares >= 0 that sum to 1.

        A scope that was never observed reads the belief of the nearest level that was; an intent never observed in
        its domain changes nothing.

        Raises:
            ValueError: No signal is active.
        """
        key = (self._agreement.node(scope), self._agreement.intent(scope), frozenset(active))
        beliefs = self._weights.get(key)
        if beliefs is None:
            posterior = self._agreement.posterior(*key[:2])
            level = self._priors.interval.level
            counted, fit = believed_weights(posterior, key[2], level), self._fitted.get(scope.domain)
            beliefs = MappingProxyType(counted if fit is None else fit.beliefs(counted, level))
            self._weights[key] = beliefs
        return beliefs

    def sampled_weights(
        self, scope: Scope, active: Collection[Signal], rng: np.random.Generator
    ) -> Mapping[Signal, float]:
        """One draw of the weights from their posterior (Thompson): shares >= 0 that sum to 1."""
        posterior = self._agreement.posterior(self._agreement.node(scope), self._agreement.intent(scope))
        if (fit := self._fitted.get(scope.domain)) is None:
            return sampled_shares(posterior, frozenset(active), rng)
        return {signal: float(one[0]) for signal, one in fit.draws(self._means(scope, active), rng, 1).items()}

    def weight_draws(self, scope: Scope, active: Collection[Signal], n: int) -> Mapping[Signal, Floats]:
        """The first `n` of a fixed sequence of draws of the weights: float64 (n,) by signal, each draw sums to 1."""
        key = (self._agreement.node(scope), self._agreement.intent(scope), frozenset(active), n)
        draws = self._drawn.get(key)
        if draws is None:
            posterior, fit = self._agreement.posterior(*key[:2]), self._fitted.get(scope.domain)
            seed = [SEED, list(Domain).index(scope.domain)]  # domains are drawn independently
            rng = np.random.default_rng(seed)
            drawn = (
                share_draws(posterior, key[2], rng, n) if fit is None else fit.draws(self._means(scope, active), rng, n)
            )
            draws = self._drawn[key] = MappingProxyType(drawn)
        return draws

    def _means(self, scope: Scope, active: Collection[Signal]) -> Mapping[Signal, float]:
        """What counting alone says of the active signals, in their order."""
        posterior = self._agreement.posterior(self._agreement.node(scope), self._agreement.intent(scope))
        return mean_shares(posterior, active)

    def usage(self, hashes: Sequence[ContentHash], question: str = "") -> Floats:
        """Belief that each content's next outcome is good, float64 (n,) in (0, 1); the prior's mean if never used.

        Args:
            question: Fingerprint of what is asked: what came of that very question is left out, as `precedents` tells
                it. So evidence about the worth of usage never comes from the question that made it.
        """
        return self._usage.means(hashes, question)

    def asked_before(self, question: str) -> bool:
        """Whether anybody said what came of a question, by its fingerprint."""
        return self._usage.knows(question)

    def precedents(self, hashes: Sequence[ContentHash], question: str) -> Floats:
        """The same belief by what came of that very question, float64 (n,) in (0, 1)."""
        return self._usage.precedents(hashes, question)

    def examined(self, domain: Domain, rank: int) -> float:
        """Probability that a result of that domain at that rank is looked at, relative to the first; in (0, 1]."""
        return self.examination[domain].probability(rank)

    def threshold_moved(self, domain: Domain, agent: str = ANY) -> float:
        """By how much the learned threshold of decisions stands above its prior's mean, in (-1, 1); 0 unreviewed."""
        if not self.reported.threshold(domain).observations:
            return 0.0
        prior = self._priors.thresholds
        return self.reported.acting_threshold(Scope(domain, agent=agent)) - prior.a / (prior.a + prior.b)

    def content_signals(self, hashes: Sequence[ContentHash]) -> ContentSignals:
        """Everything that is known of contents by what became of them, a row each (FBK-6)."""
        return self._usage.signals(hashes)

    def freshness(self, domain: Domain, age_hours: float | None) -> float:
        """Belief that an item of that age still holds, in (0, 1]; `unknown_age` of the priors where age is None."""
        if age_hours is None:
            return self._priors.decay.unknown_age
        return self.reported.decay(domain).freshness(age_hours)

    def freshness_many(self, domain: Domain, ages_hours: Floats) -> Floats:
        """`freshness` of ages (n,), where NaN stands for an unknown age."""
        believed = self.reported.decay(domain).freshness_of_ages(ages_hours)
        return np.where(np.isnan(ages_hours), self._priors.decay.unknown_age, believed)


def read_beliefs(
    priors: Priors,
    evidence: Evidence,
    *,
    now: float,
    session: SessionEvidence | None = None,
    fitted: FittedWeights | None = None,
) -> Beliefs:
    """Compute every belief from `evidence` as it counts at `now`, seconds since the epoch.

    Beliefs change with the day of `now`, not within it; equal evidence gives the same bits, in whatever order it was
    gathered. Time is linear in the number of counts.

    Args:
        session: Whose beliefs they are: weights then have one level more. Its overlay is a part of `evidence`.
        fitted: Weights that the live version holds: what is counted moves them on.
    """
    today = day_of(now)
    evidence = replace(evidence, usage=Uses.of(evidence.usage))  # once, for all who read it
    return Beliefs(
        priors,
        read_agreement(priors, evidence, today, session),
        read_usage(priors.usage, evidence, today),
        reported=Reported(priors, evidence, today),
        examination=read_examination(
            priors.examination, evidence, Discount(today, priors.recency.project_half_life_days)
        ),
        sizing=read_sizing(priors, evidence, today),
        triggers=read_triggers(priors.triggers, evidence, today),
        fitted=fitted,
    )
