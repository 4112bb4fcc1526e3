"""Every belief a search needs, computed at once from priors, evidence and the time (ARC-1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from weft.domain.arrays import Floats
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import ANY, Scope, Signal, WeightBelief
from weft.domain.understanding import HandOff
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.document_priors import AuthorityPrior, DeclaredPrior
from weft.learning.evidence import Evidence, day_of
from weft.learning.lessons.beliefs import LessonBeliefs, read_lessons
from weft.learning.observe.accuracy import CheckedContents, Checks, read_checks
from weft.learning.observe.allowances import within_allowances
from weft.learning.observe.citations import CitationsByUse
from weft.learning.observe.examination import Examination, read_examination
from weft.learning.observe.precedents import Precedents, read_precedents
from weft.learning.observe.sizes import SizingBeliefs, read_sizing
from weft.learning.observe.triggers import LearnedTriggers, read_triggers
from weft.learning.observe.usage import ContentSignals, Usage, read_usage
from weft.learning.parts import LearnedVersion
from weft.learning.pooling.agreement import Agreement, IntentFactor, read_agreement
from weft.learning.pooling.fitted import FittedWeights
from weft.learning.pooling.sessions import SessionEvidence
from weft.learning.pooling.tree import Node
from weft.learning.pooling.weights import SEED, SharePosterior
from weft.learning.priors import NearPrior, Priors
from weft.learning.recency import Discount
from weft.learning.reported import Reported
from weft.learning.uses import Uses

HORIZON = 200
"""Turns ahead of which it is told when to hand off: few conversations are longer."""


class Beliefs:
    """All posteriors at one time. Immutable but for a memory of what weights it was asked for, bounded by its nodes."""

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
        precedents: Precedents,
        checks: CheckedContents,
        citations: CitationsByUse,
        lessons: LessonBeliefs,
        fitted: FittedWeights | None = None,
        aliases: ContentAliases = NO_ALIASES,
    ) -> None:
        self._priors = priors
        self._agreement = agreement
        self._usage = usage
        self._fitted = {} if fitted is None else fitted.by_domain
        self.reported = reported
        self.examination = examination
        self.sizing = sizing
        self.triggers = triggers
        self.precedents = precedents
        self._posteriors: dict[tuple[Node, str, frozenset[Signal]], SharePosterior] = {}
        self.checks = checks
        self.citations = citations
        self.aliases = aliases
        self.lessons = lessons
        self._acting: dict[tuple[Domain, str], float | None] = {}
        self._weights: dict[tuple[Node, str, frozenset[Signal]], Mapping[Signal, WeightBelief]] = {}
        self._drawn: dict[tuple[Node, str, frozenset[Signal], int], Mapping[Signal, Floats]] = {}

    @property
    def interval(self) -> float:
        """Probability that an interval covers."""
        return self._priors.interval.level

    @property
    def near(self) -> NearPrior:
        """How far outcomes under one question count for another (LRN-19)."""
        return self._priors.near

    @property
    def declared(self) -> DeclaredPrior:
        """What a person's word on a document says of it (RET-13)."""
        return self._priors.declared

    @property
    def authority(self) -> AuthorityPrior:
        """How far a document is relied on, by what is counted of it (CIT-3)."""
        return self._priors.authority

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
        key = self._key(scope, active)
        beliefs = self._weights.get(key)
        if beliefs is None:
            level = self._priors.interval.level
            counted, fit = self._shares(key).believed(level), self._fitted.get(scope.domain)
            beliefs = MappingProxyType(counted if fit is None else fit.beliefs(counted, level))
            self._weights[key] = beliefs
        return beliefs

    def sampled_weights(
        self, scope: Scope, active: Collection[Signal], rng: np.random.Generator
    ) -> Mapping[Signal, float]:
        """One draw of the weights from their posterior (Thompson): shares >= 0 that sum to 1.

        Draws are unbiased: on average over many, every signal takes what `weights` says, and one of weight 0 nothing.
        """
        shares, fit = self._shares(self._key(scope, active)), self._fitted.get(scope.domain)
        if fit is None:
            return shares.sample(rng)
        return {signal: float(one[0]) for signal, one in fit.draws(shares.means(), rng, 1).items()}

    def weight_draws(self, scope: Scope, active: Collection[Signal], n: int) -> Mapping[Signal, Floats]:
        """The first `n` of a fixed sequence of draws of the weights: float64 (n,) by signal, each draw sums to 1."""
        key = (*self._key(scope, active), n)
        draws = self._drawn.get(key)
        if draws is None:
            shares, fit = self._shares(key[:3]), self._fitted.get(scope.domain)
            rng = np.random.default_rng([SEED, list(Domain).index(scope.domain)])  # domains are drawn independently
            drawn = shares.draws(rng, n) if fit is None else fit.draws(shares.means(), rng, n)
            draws = self._drawn[key] = MappingProxyType(drawn)
        return draws

    def _key(self, scope: Scope, active: Collection[Signal]) -> tuple[Node, str, frozenset[Signal]]:
        return self._agreement.node(scope), self._agreement.intent(scope), frozenset(active)

    def _shares(self, key: tuple[Node, str, frozenset[Signal]]) -> SharePosterior:
        """What weights and draws of them follow from; the same one each time that it is asked for."""
        shares = self._posteriors.get(key)
        if shares is None:
            node, intent, active = key
            shares = self._posteriors[key] = SharePosterior(self._agreement.posterior(node, intent), active)
        return shares

    def examined(self, domain: Domain, rank: int) -> float:
        """Probability that a result of that domain at that rank is looked at, relative to the first; in (0, 1]."""
        return self.examination[domain].probability(rank)

    def threshold_moved(self, domain: Domain, agent: str = ANY) -> float:
        """By how much the learned threshold of decisions stands above its prior's mean, in (-1, 1); 0 unreviewed."""
        if not self.reported.reviewed:
            return 0.0
        prior = self._priors.thresholds
        return self.reported.acting_threshold(Scope(domain, agent=agent)) - prior.a / (prior.a + prior.b)

    def acting_threshold(self, domain: Domain, agent: str = ANY) -> float | None:
        """Confidence from which on to act on a result of that domain (LRN-7); None while no decision was reviewed."""
        if (domain, agent) not in self._acting:
            reviewed = any(self.reported.threshold(each).observations for each in Domain)
            acting = self.reported.acting_threshold(Scope(domain, agent=agent)) if reviewed else None
            self._acting[domain, agent] = acting
        return self._acting[domain, agent]

    def hand_off(self, model: str, agent: str, turn: int) -> HandOff | None:
        """When a conversation with a model should go on with another (LRN-8); None where nobody judged that model."""
        if (model, ANY) not in self.reported.judged_models():
            return None
        prior, level = self._priors.quality, self._priors.interval.level
        turns = np.arange(1.0, max(HORIZON, turn) + 1.0)
        belief = self.reported.quality(model, agent)
        curves = (belief.predict(turns)[0], *belief.interval(turns, level))
        at, earliest, latest = (_first_below(curve, prior.hand_off) for curve in curves)
        quality, low, high = (float(np.clip(curve[turn - 1], 0.0, 1.0)) for curve in curves)
        return HandOff(
            model=model,
            turn=turn,
            quality=quality,
            low=low,
            high=high,
            threshold=prior.hand_off,
            at=at,
            earliest=earliest,
            latest=latest,
        )

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

    def checked(self, believed: Floats, checks: Checks) -> Floats:
        """Freshness (n,) of contents after what those who looked at them said.

        (s · f + a) / (s + a + i), with a and i who called them accurate and not, and s what age says, in such words.
        """
        strength = self._priors.decay.check_strength
        held, against = checks.accurate, checks.inaccurate
        return np.asarray((strength * believed + held) / (strength + held + against))


def _first_below(curve: Floats, threshold: float) -> int | None:
    below = np.flatnonzero(curve < threshold)
    return int(below[0]) + 1 if len(below) else None


def believed(priors: Priors, learned: LearnedVersion, *, now: float, session: SessionEvidence | None = None) -> Beliefs:
    """What a learned version makes be believed at `now`; see `read_beliefs`."""
    fitted, aliases = learned.part(FittedWeights), learned.part(ContentAliases) or NO_ALIASES
    return read_beliefs(priors, learned.evidence, now=now, session=session, fitted=fitted, aliases=aliases)


def read_beliefs(
    priors: Priors,
    evidence: Evidence,
    *,
    now: float,
    session: SessionEvidence | None = None,
    fitted: FittedWeights | None = None,  # weights that the live version holds: what is counted moves them on
    aliases: ContentAliases = NO_ALIASES,
) -> Beliefs:
    """Compute every belief from `evidence` as it counts at `now`, seconds since the epoch.

    Beliefs change with the day of `now`, not within it; equal evidence gives the same bits, in whatever order it was
    gathered. Time is linear in the number of counts.
    """
    today = day_of(now)
    evidence = replace(evidence, usage=Uses.of(evidence.usage))  # once, for all who read it
    evidence = aliases.merged(evidence)
    evidence = within_allowances(evidence, alone=priors.robustness.alone)
    return Beliefs(
        priors,
        read_agreement(priors, evidence, today, session),
        read_usage(priors.usage, evidence, today, aliases),
        reported=Reported(priors, evidence, today),
        examination=read_examination(
            priors.examination, evidence, Discount(today, priors.recency.project_half_life_days)
        ),
        sizing=read_sizing(priors, evidence, today),
        triggers=read_triggers(priors.triggers, evidence, today),
        precedents=read_precedents(
            priors.outcomes, evidence, today, half_life_days=priors.recency.project_half_life_days
        ),
        checks=read_checks(evidence, today, priors.recency.project_half_life_days, aliases),
        citations=CitationsByUse(priors.authority.internal, evidence, aliases),
        lessons=read_lessons(
            priors.lessons, evidence, today, effective_cap=priors.robustness.effective_cap, level=priors.interval.level
        ),
        fitted=fitted,
        aliases=aliases,
    )
