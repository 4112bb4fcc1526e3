"""Beliefs from what is reported outright: decay, thresholds, model quality, trust, lessons (LRN-4, LRN-6 to LRN-10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import ANY, Scope
from pipelines.learning.evidence import MICRO, Evidence, EvidenceKey
from pipelines.learning.families.beta import Beta
from pipelines.learning.families.gaussian_process import Quality
from pipelines.learning.families.survival import Survival
from pipelines.learning.families.threshold import Threshold
from pipelines.learning.parameters import (
    CONFIRMATION,
    CONTRADICTION,
    DECAY,
    FAILURE,
    LESSON,
    QUALITY,
    REFUTED,
    SUCCESS,
    THRESHOLD,
    TRUST,
    VERIFIED,
    Masses,
)
from pipelines.learning.pooling.hierarchy import Level, Pooled, pool
from pipelines.learning.priors import Priors
from pipelines.learning.recency import Discount

Floats = NDArray[np.float64]

Gathered = Mapping[tuple[str, ...], Masses]
"""Discounted masses by bin, by what they were gathered under."""


class Reported:
    """All of these beliefs, each computed when it is first asked for."""

    def __init__(self, priors: Priors, evidence: Evidence, today: int) -> None:
        self._priors = priors
        gathered = _gathered(evidence, Discount(today, priors.recency.project_half_life_days))
        self._decay, self._decisions, self._turns, self._trust, self._lessons = (gathered[name] for name in _PLACES)
        self._survival: dict[Domain, Survival] = {}
        self._pooled_trust: _PooledTrust | None = None

    def decay(self, domain: Domain) -> Survival:
        """The decay rate of a domain."""
        belief = self._survival.get(domain)
        if belief is None:
            prior = self._priors.decay.domains[domain]
            masses = self._decay.get((domain.value,), {})
            belief = self._survival[domain] = Survival(prior.shape, prior.rate_hours).given(masses)
        return belief

    def threshold(self, domain: Domain, agent: str = ANY) -> Threshold:
        """The threshold of a domain from all of its decisions, or of one agent from its own alone."""
        prior = Threshold(self._priors.thresholds)
        if agent != ANY:
            return prior.given(self._decisions.get((domain.value, agent), {}))
        return prior.given(_summed(masses for (of, _), masses in self._decisions.items() if of == domain.value))

    def acting_threshold(self, scope: Scope) -> float:
        """The confidence from which on an agent should act: its domain's, and part of its own offset."""
        domain = self.threshold(scope.domain)
        return domain.of_agent(domain if scope.agent == ANY else self.threshold(scope.domain, scope.agent))

    def quality(self, model: str, agent: str = ANY) -> Quality:
        """Quality of a model by turn, as all its agents showed it; shifted for one of them."""
        by_agent = {who: masses for (of, who), masses in self._turns.items() if of == model}
        belief = Quality(self._priors.quality).given(_summed(by_agent.values()))
        return belief if agent == ANY else belief.with_offset(by_agent.get(agent, {}))

    def agents_of(self, domain: Domain) -> list[str]:
        """Agents whose decisions in that domain were reviewed."""
        return sorted({agent for of, agent in self._decisions if of == domain.value and agent != ANY})

    def judged_models(self) -> list[tuple[str, str]]:
        """Models whose quality was judged, with each agent that it was judged with; `ANY` for all of them together."""
        return sorted({(model, ANY) for model, _ in self._turns} | {(model, agent) for model, agent in self._turns})

    def verified_sources(self) -> list[tuple[str, str]]:
        """Types of source that were verified, with each model that used them; `ANY` for all of them together."""
        return sorted({(source, ANY) for source, _ in self._trust} | {(source, model) for source, model in self._trust})

    def tried_lessons(self) -> list[str]:
        """Lessons with outcomes."""
        return sorted(lesson for (lesson,) in self._lessons)

    def lesson(self, lesson: str) -> Beta:
        """The share of a lesson's outcomes that are good."""
        prior, masses = self._priors.lessons, self._lessons.get((lesson,), {})
        sides = (_balance(masses, *side) for side in ((SUCCESS, CONFIRMATION), (FAILURE, CONTRADICTION)))
        return Beta(prior.success, prior.failure).given(*sides)

    def trust(self, source: str, model: str = ANY) -> Beta:
        """The share of verifications that a type of source passes, where one model uses it, or wherever."""
        if self._pooled_trust is None:
            self._pooled_trust = _pooled_trust(self._priors, self._trust)
        return self._pooled_trust.belief(source, model)

    def trust_multiplier(self, source: str, model: str = ANY) -> float:
        """Factor on the trust level of such a source: as far above the stated one as its share above the prior's."""
        prior = self._priors.trust
        if not self._trust:
            return prior.multiplier
        stated = prior.verified / (prior.verified + prior.refuted)
        return min(prior.multiplier * self.trust(source, model).mean / stated, prior.multiplier * prior.highest)


@dataclass(frozen=True, slots=True)
class _PooledTrust:
    """Pooled beliefs: of all sources, by source, and by source and model (LRN-5)."""

    levels: tuple[Pooled, Pooled, Pooled]
    sources: Mapping[str, int]
    models: Mapping[tuple[str, ...], int]

    def belief(self, source: str, model: str) -> Beta:
        """The deepest belief there is; of a source never verified, what all sources make of its prior."""
        if (place := self.models.get((source, model))) is not None:
            return _beta(self.levels[2], place)
        if (place := self.sources.get(source)) is not None:
            return _beta(self.levels[1], place)
        return _beta(self.levels[0], 0)


def _beta(level: Pooled, place: int) -> Beta:
    a, b = level.honest
    return Beta(float(a[place, 0]), float(b[place, 0]), float(level.n[place, 0]))


def _pooled_trust(priors: Priors, gathered: Gathered) -> _PooledTrust:
    sources = {name: place for place, name in enumerate(sorted({source for source, _ in gathered}))}
    leaves = sorted(gathered)
    named = [leaf for leaf in leaves if leaf[1] != ANY]
    at_source = [(leaf[0], ANY) for leaf in leaves if leaf[1] == ANY]
    direct = [_column(gathered, [(source, ANY) for source in sources]), _column(gathered, named)]
    parents = [np.zeros(len(sources), dtype=np.int64), np.array([sources[leaf[0]] for leaf in named], dtype=np.int64)]
    levels = [Level(parent, hits, misses) for parent, (hits, misses) in zip(parents, direct, strict=True)]
    everything = _column(gathered, [*at_source, *named])
    prior = priors.trust
    strength = prior.verified + prior.refuted
    root = Pooled(
        np.array([[prior.verified / strength]]),
        np.array([[strength]]),
        everything[0].sum(axis=0, keepdims=True),
        everything[1].sum(axis=0, keepdims=True),
    )
    top, by_source, by_model = pool(root, levels, priors.pooling)
    return _PooledTrust((top, by_source, by_model), sources, {leaf: place for place, leaf in enumerate(named)})


def _column(gathered: Gathered, leaves: list[tuple[str, ...]]) -> tuple[Floats, Floats]:
    """Observations for and against at each leaf, float64 (n, 1) each."""
    masses = [gathered.get(leaf, {}) for leaf in leaves]
    sides = [(_balance(each, VERIFIED), _balance(each, REFUTED)) for each in masses]
    pairs = np.array(sides, dtype=np.float64).reshape(-1, 2) / MICRO
    return pairs[:, :1], pairs[:, 1:]


def _balance(masses: Masses, *bins: str) -> int:
    """What some bins hold together; a negative balance of one counts as none."""
    return sum(max(masses.get(bin_, 0), 0) for bin_ in bins)


def _summed(parts: Iterable[Masses]) -> Masses:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total


_PLACES: Mapping[str, Callable[[EvidenceKey], tuple[str, ...]]] = {
    DECAY: lambda key: (key.domain,),
    THRESHOLD: lambda key: (key.domain, key.agent),
    QUALITY: lambda key: (key.model, key.agent),
    TRUST: lambda key: (key.parameter.removeprefix(f"{TRUST}."), key.model),
    LESSON: lambda key: (key.parameter.removeprefix(f"{LESSON}."),),
}
"""What evidence of each family is gathered under."""


def _gathered(evidence: Evidence, discount: Discount) -> dict[str, dict[tuple[str, ...], dict[str, int]]]:
    gathered: dict[str, dict[tuple[str, ...], dict[str, int]]] = {family: {} for family in _PLACES}
    for key, micro in evidence.counts.items():
        family = key.parameter.partition(".")[0]
        if family in gathered:
            masses = gathered[family].setdefault(_PLACES[family](key), {})
            masses[key.bin] = masses.get(key.bin, 0) + discount(micro, key.day)
    return gathered
