"""What speaks for a candidate whatever was asked: how fresh, useful, trusted, whole and important it is (RET-13)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pipelines.domain.ids import ChunkId
from pipelines.domain.ranking import ANY, Query, Signal
from pipelines.quality import signals
from pipelines.retrieval.candidates import Candidate
from pipelines.retrieval.channels.run import ScoreRows
from pipelines.retrieval.facts import NO_FACTS, GenerationFacts
from pipelines.retrieval.ports import ReadableBeliefs, Standing
from pipelines.retrieval.settings import QualitySettings

SOURCE_TYPE = "source_type"
"""The name under which a document declares what kind of source it is."""

_SECONDS_PER_HOUR = 3600.0


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
    usage = beliefs.usage([candidate.content_hash for candidate in candidates])
    near = None if moment.nearness is None else moment.nearness([candidate.row for candidate in candidates])
    told = [
        {**_believed(candidate.standing, float(used), beliefs, moment), **_declared(candidate, moment, settings)}
        for candidate, used in zip(candidates, usage, strict=True)
    ]
    if near is not None:
        told = [{**own, Signal.SESSION: signals.session(cosine)} for own, cosine in zip(told, near, strict=True)]
    return [
        replace(candidate, signals={**candidate.signals, **own})
        for candidate, own in zip(candidates, told, strict=True)
    ]


def with_propagated(candidates: Sequence[Candidate], settings: QualitySettings) -> list[Candidate]:
    """Candidates told what their parts say for them: the best score among candidates below each in its document.

    Args:
        candidates: Scored so far; their scores are taken as they are, at most 1.
    """
    places = {place.chunk.chunk_id: place.chunk.parent_id for candidate in candidates for place in candidate.standings}
    below: defaultdict[ChunkId, list[tuple[float, int]]] = defaultdict(list)
    for candidate in candidates:
        score = candidate.score
        for place in candidate.standings:
            for levels, above in enumerate(_above(place.chunk.parent_id, places), start=1):
                below[above].append((score, levels))
    return [
        replace(candidate, signals={**candidate.signals, Signal.PROPAGATED: _propagated(candidate, below, settings)})
        for candidate in candidates
    ]


def source_type(standing: Standing) -> str:
    """What kind of source a document is, as trust in it is learned: declared as `source_type`, or its content type."""
    return standing.metadata.get(SOURCE_TYPE, standing.content_type.value)


def _believed(standing: Standing, used: float, beliefs: ReadableBeliefs, moment: Moment) -> dict[Signal, float]:
    multiplier = beliefs.trust_multiplier(source_type(standing), moment.query.model)
    age_hours = _age_hours(standing, moment.now)
    return {
        Signal.FRESHNESS: signals.freshness(beliefs.freshness(standing.domain, age_hours)),
        Signal.USAGE: signals.usage(signals.dampened(used, moment.usage_kept)),
        Signal.TRUST: signals.trust(standing.trust_level, multiplier),
    }


def _declared(candidate: Candidate, moment: Moment, settings: QualitySettings) -> dict[Signal, float]:
    """What is known of the content alone; what its document does not tell is not there."""
    standing, facts = candidate.standing, moment.facts
    chunk = standing.chunk
    told: dict[Signal, float | None] = {Signal.STRUCTURE: signals.structure(chunk.parse_quality, chunk.completeness)}
    if Signal.AUTHORITY in facts.tells:
        told[Signal.AUTHORITY] = signals.authority(facts.authority(candidate.row, standing.citations))
    if (age_hours := _age_hours(standing, moment.now)) is not None:
        boost, half_life = settings.novelty_boost, settings.novelty_half_life_hours
        told[Signal.NOVELTY] = signals.novelty(age_hours, boost=boost, half_life_hours=half_life)
    if standing.tier is not None:
        told[Signal.TIER] = signals.tier(standing.tier, settings.tiers)
    if standing.validation is not None:
        told[Signal.VALIDATION] = signals.validation(standing.validation, settings.validations)
    if standing.intent is not None and moment.query.intent != ANY:
        told[Signal.CONGRUENCE] = signals.congruence(standing.intent, moment.query.intent)
    return {signal: value for signal, value in told.items() if value is not None}


def _above(parent: ChunkId | None, parents: Mapping[ChunkId, ChunkId | None]) -> Iterator[ChunkId]:
    passed: set[ChunkId] = set()
    while parent is not None and parent not in passed:
        passed.add(parent)
        yield parent
        parent = parents.get(parent)


def _propagated(
    candidate: Candidate, below: Mapping[ChunkId, Sequence[tuple[float, int]]], settings: QualitySettings
) -> float:
    own = [found for place in candidate.standings for found in below.get(place.chunk.chunk_id, ())]
    return signals.propagated(own, settings.propagation)


def _age_hours(standing: Standing, now: float) -> float | None:
    if standing.modified_at is None:
        return None
    return max(0.0, now - standing.modified_at) / _SECONDS_PER_HOUR
