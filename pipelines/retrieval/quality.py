"""What speaks for a candidate whatever was asked: how fresh, useful, trusted, whole and important it is (RET-13)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from msgspec.structs import replace

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import ANY, Query, Signal
from pipelines.quality import signals
from pipelines.retrieval.candidates import Candidate
from pipelines.retrieval.channels.run import ScoreRows
from pipelines.retrieval.facts import NO_FACTS, GenerationFacts
from pipelines.retrieval.ports import DocumentFacts, ReadableBeliefs, Standing
from pipelines.retrieval.settings import QualitySettings

SOURCE_TYPE = "source_type"
"""The name under which a document declares what kind of source it is."""

_SECONDS_PER_HOUR = 3600.0

Signals = dict[Signal, float]


@dataclass(frozen=True, slots=True)
class Moment:
    """Who asks, when and after what: what quality depends on beside the content itself.

    Attributes:
        query: Who is going to use the results, and what for: sources are trusted as far as they held for it (LRN-10).
        now: Seconds since the epoch, what ages are measured to.
        facts: What the generation tells.
        usage_kept: Share of what sets a content's usage apart that counts, in [0, 1]: less after a change of topic.
        nearness: Cosine of contents, by row, to what the session asked before; None without such a session.
    """

    query: Query
    now: float
    facts: GenerationFacts = NO_FACTS
    usage_kept: float = 1.0
    nearness: ScoreRows | None = None


def telling(query: Query, facts: GenerationFacts, *, nearness: ScoreRows | None) -> frozenset[Signal]:
    """The signals that not every generation and query can tell, and these can."""
    silent = {Signal.CONGRUENCE} if query.intent == ANY else set()
    return (facts.tells - silent) | ({Signal.SESSION} if nearness is not None else set())


def with_quality(
    candidates: Sequence[Candidate], beliefs: ReadableBeliefs, moment: Moment, settings: QualitySettings
) -> list[Candidate]:
    """Candidates with the quality of the best document that each speaks for."""
    usage = beliefs.usage([candidate.content_hash for candidate in candidates]).tolist()
    rows = [candidate.row for candidate in candidates]
    near = [None] * len(rows) if moment.nearness is None else moment.nearness(rows)
    # Beliefs are the same for all contents of one age, or of one kind of source.
    fresh, trusted = cache(beliefs.freshness), cache(beliefs.trust_multiplier)
    tells = _tellers(moment, settings)
    told: list[Signals] = []
    for candidate, used, cosine in zip(candidates, usage, near, strict=True):
        standing = candidate.standing
        own = _believed(standing, used, fresh, trusted, moment)
        for signal, tell in tells.items():
            if (value := tell(candidate, standing)) is not None:
                own[signal] = value
        if cosine is not None:
            own[Signal.SESSION] = signals.session(cosine)
        told.append(own)
    return [replace(each, signals={**each.signals, **own}) for each, own in zip(candidates, told, strict=True)]


def with_propagated(
    candidates: Sequence[Candidate], facts: GenerationFacts, settings: QualitySettings
) -> list[Candidate]:
    """Candidates told what their parts say for them: the best score among candidates below each in its document.

    Args:
        candidates: Scored so far; their scores are taken as they are, at most 1.
    """
    if Signal.PROPAGATED not in facts.tells:
        return list(candidates)
    below: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
    for candidate in candidates:
        for standing in candidate.standings:
            for levels, above in enumerate(_above(standing.place, facts.parents), start=1):
                below[above].append((candidate.score, levels))

    def of(candidate: Candidate) -> float:
        parts = [part for standing in candidate.standings for part in below.get(standing.place, ())]
        return signals.propagated(parts, settings.propagation)

    return [replace(each, signals={**each.signals, Signal.PROPAGATED: of(each)}) for each in candidates]


def source_type(facts: DocumentFacts) -> str:
    """What kind of source a document is, as trust in it is learned: declared as `source_type`, or its content type."""
    return facts.metadata.get(SOURCE_TYPE, facts.content_type.value)


def _believed(
    standing: Standing,
    used: float,
    fresh: Callable[[Domain, float | None], float],
    trusted: Callable[[str, str], float],
    moment: Moment,
) -> Signals:
    multiplier = trusted(source_type(standing), moment.query.model)
    return {
        Signal.FRESHNESS: signals.freshness(fresh(standing.domain, _age_hours(standing, moment.now))),
        Signal.USAGE: signals.usage(signals.dampened(used, moment.usage_kept)),
        Signal.TRUST: signals.trust(standing.trust_level, multiplier),
    }


Tell = Callable[[Candidate, Standing], float | None]
"""One signal of a candidate at the place it is shown at; None where nothing is known of it."""


def _tellers(moment: Moment, settings: QualitySettings) -> Mapping[Signal, Tell]:
    """How to tell each signal that this generation and this query know anything of; mostly there are few."""
    facts, intent = moment.facts, moment.query.intent
    boost, half_life = settings.novelty_boost, settings.novelty_half_life_hours

    def novelty(_: Candidate, standing: Standing) -> float | None:
        age = _age_hours(standing, moment.now)
        return None if age is None else signals.novelty(age, boost=boost, half_life_hours=half_life)

    def congruence(_: Candidate, standing: Standing) -> float | None:
        stored_for = standing.facts.intent
        return None if stored_for is None else signals.congruence(stored_for, intent)

    every: Mapping[Signal, Tell] = {
        Signal.AUTHORITY: lambda each, at: signals.authority(facts.authority(each.row, at.facts.citations)),
        Signal.STRUCTURE: lambda _, at: signals.structure(float(facts.structure[at.place])),
        Signal.NOVELTY: novelty,
        Signal.TIER: lambda _, at: signals.tier(at.facts.tier, settings.tiers),
        Signal.VALIDATION: lambda _, at: signals.validation(at.facts.validation, settings.validations),
        Signal.CONGRUENCE: congruence,
    }
    known = telling(moment.query, facts, nearness=None)
    return {signal: tell for signal, tell in every.items() if signal in known}


def _above(place: int, parents: np.ndarray) -> Iterator[int]:
    passed = {place}
    above = int(parents[place])
    while above >= 0 and above not in passed:
        passed.add(above)
        yield above
        above = int(parents[above])


def _age_hours(facts: DocumentFacts, now: float) -> float | None:
    if facts.modified_at is None:
        return None
    return max(0.0, now - facts.modified_at) / _SECONDS_PER_HOUR
