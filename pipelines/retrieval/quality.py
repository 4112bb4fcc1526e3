"""What speaks for a candidate whatever was asked: how fresh, useful, trusted, whole and important it is (RET-13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from pipelines.domain.questions import question_of
from pipelines.domain.ranking import ANY, Query, Signal
from pipelines.quality import signals
from pipelines.retrieval.candidates import Candidates, Floats
from pipelines.retrieval.channels.run import ScoreRows
from pipelines.retrieval.facts import NO_FACTS, GenerationFacts
from pipelines.retrieval.ports import DeclaredFacts, DocumentFacts, ReadableBeliefs
from pipelines.retrieval.settings import QualitySettings

SOURCE_TYPE = "source_type"
"""The name under which a document declares what kind of source it is."""

_SECONDS_PER_HOUR = 3600.0

Columns = dict[Signal, Floats]


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


def telling(
    query: Query, facts: GenerationFacts, *, nearness: ScoreRows | None, asked_before: bool
) -> frozenset[Signal]:
    """The signals that not every generation and query can tell, and these can."""
    silent = {Signal.CONGRUENCE} if query.intent == ANY else set()
    asked = {Signal.SESSION: nearness is not None, Signal.PRECEDENT: asked_before}
    return (facts.tells - silent) | {signal for signal, tells in asked.items() if tells}


def with_quality(
    candidates: Candidates, beliefs: ReadableBeliefs, moment: Moment, settings: QualitySettings
) -> Candidates:
    """Candidates with the quality of the best document that each speaks for."""
    numbers, of_candidate = np.unique(candidates.document, return_inverse=True)
    documents = [candidates.standings.documents[number] for number in numbers.tolist()]
    by_document = _declared(documents, moment, settings) | _believed(documents, beliefs, moment)
    told = {signal: values[of_candidate] for signal, values in by_document.items()}
    question = question_of(moment.query.text)
    used = beliefs.usage(candidates.hashes, question)
    told[Signal.USAGE] = signals.usage(signals.dampened(used, moment.usage_kept))
    if beliefs.asked_before(question):
        before = beliefs.precedents(candidates.hashes, question)
        told[Signal.PRECEDENT] = signals.precedent(signals.dampened(before, moment.usage_kept))
    if Signal.AUTHORITY in moment.facts.tells:
        cited = np.array([each.citations or 0 for each in documents], dtype=np.int64)[of_candidate]
        told[Signal.AUTHORITY] = signals.authority(moment.facts.authority(candidates.rows, cited))
    if Signal.STRUCTURE in moment.facts.tells:
        told[Signal.STRUCTURE] = signals.structure(moment.facts.structure[candidates.place])
    if moment.nearness is not None:
        told[Signal.SESSION] = signals.session(moment.nearness(candidates.rows.tolist()))
    return candidates.told(told)


def with_propagated(candidates: Candidates, facts: GenerationFacts, settings: QualitySettings) -> Candidates:
    """Candidates told what their parts say for them: the best score among candidates below each in its document.

    Args:
        candidates: Scored so far; their scores are taken as they are, at most 1.
    """
    if Signal.PROPAGATED not in facts.tells:
        return candidates
    standings = candidates.standings
    score = np.full(len(standings.hashes), -np.inf)
    score[candidates.number] = candidates.total
    scores = score[standings.owner]
    order = np.argsort(standings.place)
    own = standings.place[order]
    best = np.full(len(own), -np.inf)  # by place, in the order of places
    above, level = np.where(np.isfinite(scores), facts.parents[standings.place], -1), 1
    while len(some := np.flatnonzero(above >= 0)):
        at = np.minimum(np.searchsorted(own, above[some]), len(own) - 1)
        met = own[at] == above[some]
        np.maximum.at(best, at[met], scores[some[met]] * settings.propagation**level)
        above[some] = facts.parents[above[some]]
        level += 1
    told = np.full(len(standings.hashes), 0.0)
    np.maximum.at(told, standings.owner[order], best)
    return candidates.told({Signal.PROPAGATED: signals.propagated(told[candidates.number])})


def source_type(facts: DocumentFacts) -> str:
    """What kind of source a document is, as trust in it is learned: declared as `source_type`, or its content type."""
    return facts.metadata.get(SOURCE_TYPE, facts.content_type.value)


def _believed(documents: Sequence[DeclaredFacts], beliefs: ReadableBeliefs, moment: Moment) -> Columns:
    """What is believed of documents by their age and their source."""
    fresh = [beliefs.freshness(each.domain, _age_hours(each, moment.now)) for each in documents]
    trusted = cache(beliefs.trust_multiplier)  # the same for all documents of one kind
    model = moment.query.model
    return {
        Signal.FRESHNESS: signals.freshness(fresh),
        Signal.TRUST: np.array(
            [signals.trust(each.trust_level, trusted(source_type(each), model)) for each in documents]
        ),
    }


def _declared(documents: Sequence[DeclaredFacts], moment: Moment, settings: QualitySettings) -> Columns:
    """What documents say of themselves, by the signals that this generation and this query know anything of."""
    intent, boost, half_life = moment.query.intent, settings.novelty_boost, settings.novelty_half_life_hours

    def novelty(each: DeclaredFacts) -> float | None:
        age = _age_hours(each, moment.now)
        return None if age is None else signals.novelty(age, boost=boost, half_life_hours=half_life)

    every: Mapping[Signal, Callable[[DeclaredFacts], float | None]] = {
        Signal.NOVELTY: novelty,
        Signal.TIER: lambda each: signals.tier(each.tier, settings.tiers),
        Signal.VALIDATION: lambda each: signals.validation(each.validation, settings.validations),
        Signal.CONGRUENCE: lambda each: None if each.intent is None else signals.congruence(each.intent, intent),
    }
    known = telling(moment.query, moment.facts, nearness=None, asked_before=False)
    return {
        signal: np.array([tell(each) for each in documents], dtype=np.float64)  # None is NaN
        for signal, tell in every.items()
        if signal in known
    }


def _age_hours(facts: DocumentFacts, now: float) -> float | None:
    if facts.modified_at is None:
        return None
    return max(0.0, now - facts.modified_at) / _SECONDS_PER_HOUR
