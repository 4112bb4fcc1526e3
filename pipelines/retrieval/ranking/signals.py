"""Signals of candidates: similarity, pseudo-relevance and quality (RET-13)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from pipelines.domain.ids import ContentHash
from pipelines.domain.questions import question_of
from pipelines.domain.ranking import ANY, Channel, Query, Signal
from pipelines.quality import signals
from pipelines.quality.groups import Groups
from pipelines.retrieval.channels.run import DENSE, Ranked, ScoreRows, VectorsOf, scores_of
from pipelines.retrieval.ranking.table import CHANNEL_AT, CHANNELS, Candidates, Floats, Ints
from pipelines.retrieval.settings import PseudoRelevanceSettings, QualitySettings
from pipelines.retrieval.snapshot.documents import DOMAINS, NO_FACTS, Documents, GenerationFacts
from pipelines.retrieval.snapshot.ports import ReadableBeliefs

_DENSE_AT = [CHANNEL_AT[channel] for channel in sorted(DENSE)]

SIMILARITY: Mapping[Channel, Signal] = MappingProxyType(
    {
        Channel.DENSE: Signal.VECTOR,
        Channel.DENSE_2: Signal.VECTOR_2,
        Channel.DENSE_3: Signal.VECTOR_3,
        Channel.LEXICAL: Signal.LEXICAL,
        Channel.GRAPH: Signal.GRAPH,
        Channel.DEGREE: Signal.DEGREE,
        Channel.TRIGGERS: Signal.TRIGGER,
    }
)
"""The signal that a channel's score becomes."""

_SCALES: Mapping[Channel, Callable[[Floats, Groups], Floats]] = MappingProxyType(
    {channel: getattr(signals, signal.value) for channel, signal in SIMILARITY.items()}
)

SOMETIMES = frozenset(
    {
        Signal.LATE_INTERACTION,
        Signal.CROSS_ENCODER,
        Signal.PSEUDO_RELEVANCE,
        Signal.ISOLATION,
        Signal.AUTHORITY,
        Signal.STRUCTURE,
        Signal.PROPAGATED,
        Signal.NOVELTY,
        Signal.TIER,
        Signal.VALIDATION,
        Signal.CONGRUENCE,
        Signal.SESSION,
        Signal.PRECEDENT,
    }
)
"""Signals that only some generations, queries and rerankers can tell."""
_ALL = frozenset(Signal)


def answering(found: Mapping[Channel, Ranked]) -> frozenset[Channel]:
    """Channels that have something to say about one query: words and meaning where they answered at all.

    That neither found anything says something; that a query names no entity does not.
    """
    return frozenset(
        channel
        for channel, ranked in found.items()
        if len(ranked.ranking) or channel is Channel.LEXICAL or channel in DENSE
    )


def active_signals(
    channels: Collection[Channel], without: Collection[Signal] = (), *, telling: Collection[Signal] = ()
) -> frozenset[Signal]:
    """Signals that are weighed when these channels answered: without a channel its similarity has no weight.

    Args:
        without: Signals that are switched off: told, and not weighed.
        telling: Signals that only some generations, queries and rerankers can tell, and these do.
    """
    silent = {signal for channel, signal in SIMILARITY.items() if channel not in channels}
    if Channel.LEXICAL not in channels or DENSE.isdisjoint(channels):
        silent.add(Signal.CROSS_VALIDATION)
    if DENSE.isdisjoint(channels):  # what it makes up for is a fault of finding by meaning
        silent.add(Signal.ISOLATION)
    silent |= SOMETIMES.difference(telling)
    return _ALL - silent.union(without)


def with_similarity(candidates: Candidates, answered: Sequence[Collection[Channel]]) -> Candidates:
    """Candidates with their similarity to their query, measured among its own, and whether channels agree.

    Args:
        answered: The channels that answered each query.
    """
    told = {Signal.CROSS_VALIDATION: signals.cross_validation(_ways(candidates))}
    for channel in CHANNELS:
        says = [channel in channels for channels in answered]
        if any(says):
            values = _SCALES[channel](candidates.scores_of(channel), candidates.queries)
            told[SIMILARITY[channel]] = (
                values if all(says) else np.where(np.array(says)[candidates.query], values, np.nan)
            )
    return candidates.with_signals(told)


def _ways(candidates: Candidates) -> Ints:
    """In how many ways, by words and by meaning, each candidate was found."""
    found = candidates.merged.ranks[candidates.number] > 0
    meaning = np.logical_or.reduce(found[:, _DENSE_AT], axis=1)
    return np.asarray(found[:, CHANNEL_AT[Channel.LEXICAL]].astype(np.int64) + meaning)


def own_scores(candidates: Candidates, channel: Channel, found: Mapping[Channel, Ranked]) -> list[float]:
    """A channel's scores of the candidates of one query by the query's own words; 0 where it knows none.

    What they match is the query: other words help to find it, and say nothing about how well it is answered (RET-3).
    """
    alone = found[channel].alone if channel in found else None
    if alone is None:
        scores: list[float] = np.nan_to_num(candidates.scores_of(channel), nan=0.0).tolist()
        return scores
    own, rows = dict(alone.ranking), candidates.rows
    return [own.get(row, score) for row, score in zip(rows.tolist(), scores_of(alone)(rows).tolist(), strict=True)]


def pseudo_relevance_signals(vectors: VectorsOf | None, settings: PseudoRelevanceSettings) -> frozenset[Signal]:
    """The signal, where it is on and the vectors of a query's candidates can be had."""
    return frozenset({Signal.PSEUDO_RELEVANCE} if settings.first and vectors is not None else ())


def with_pseudo_relevance(
    candidates: Candidates, vectors: Sequence[VectorsOf | None], settings: PseudoRelevanceSettings
) -> Candidates:
    """Candidates told how like the first ones of their query they are, scaled among its own.

    First are those that words and meaning together put there, each as `vector` and `lexical` tell it and both alike:
    the signal knows nothing of weights, so that it is the same whatever was learned.

    Args:
        candidates: With their similarity to the query.
        vectors: Of each query; None where there are none: then nothing is told.
    """
    able = [of_query is not None for of_query in vectors]
    if not settings.first or not any(able):
        return candidates
    agreed = _agreed(candidates)
    likeness = np.full(len(candidates), np.nan)
    for query, lines in candidates.queries:
        of_query = vectors[query]
        if of_query is not None:
            likeness[lines] = likeness_to_first(of_query(candidates.rows[lines]), agreed[lines], settings)
    values = signals.pseudo_relevance(likeness, candidates.queries)
    return candidates.with_signals(
        {Signal.PSEUDO_RELEVANCE: np.where(np.array(able)[candidates.query], values, np.nan)}
    )


def likeness_to_first(vectors: np.ndarray, scores: Floats, settings: PseudoRelevanceSettings) -> Floats:
    """Mean of each vector's cosine to the power of `sharpness` to the `first` ones by score, itself left out.

    The first ones weigh exp((score − best) / temperature). What is nobody's like, and what has no company, is NaN or 0.

    Args:
        vectors: Unit rows, (n, dimension).
        scores: In [0, 1], (n,); of equals the first.

    Returns:
        In [0, 1], (n,); NaN where there are no others.
    """
    first = np.argsort(-scores, kind="stable")[: settings.first]
    chances = np.exp((scores[first] - scores[first[0]]) / settings.temperature)
    cosines = np.maximum(vectors @ vectors[first].T, 0.0).astype(np.float64)
    shares = np.tile(chances, (len(scores), 1))
    shares[first, np.arange(len(first))] = 0.0
    total = shares.sum(axis=1)
    met = (cosines**settings.sharpness * shares).sum(axis=1)
    return np.where(total > 0.0, met / np.where(total > 0.0, total, 1.0), np.nan)


def _agreed(candidates: Candidates) -> Floats:
    """Mean of what words and meaning say of each candidate; what one of them says where the other is silent."""
    meaning, words = candidates.signal(Signal.VECTOR), candidates.signal(Signal.LEXICAL)
    return np.where(np.isnan(words), meaning, (meaning + words) / 2.0)


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
    return (facts.available_signals - silent) | {signal for signal, tells in asked.items() if tells}


def with_quality(
    candidates: Candidates, beliefs: Sequence[ReadableBeliefs], moments: Sequence[Moment], settings: QualitySettings
) -> Candidates:
    """Candidates with the quality of the best document that each speaks for.

    Args:
        beliefs, moments: Of each query.
    """
    alike = _alike(beliefs, moments)
    if not alike.any():
        told = _quality(candidates, beliefs[0], moments[0], settings) if len(alike) else {}
    else:
        told = {}
        for at in np.unique(alike[candidates.query]).tolist():
            lines = np.flatnonzero(alike[candidates.query] == at)
            for signal, values in _quality(candidates.take(lines), beliefs[at], moments[at], settings).items():
                told.setdefault(signal, np.full(len(candidates), np.nan))[lines] = values
    hashes = candidates.hashes
    for query, own in candidates.queries:
        of_query = _of_question(hashes[own], candidates.rows[own], beliefs[query], moments[query])
        for signal, values in of_query.items():
            told.setdefault(signal, np.full(len(candidates), np.nan))[own] = values
    return candidates.with_signals(told)


def _alike(beliefs: Sequence[ReadableBeliefs], moments: Sequence[Moment]) -> Ints:
    """For each query the first one that is asked by the like of it: what quality depends on is the same for both."""
    seen: dict[Hashable, int] = {}
    asked = zip(beliefs, moments, strict=True)
    keys = ((id(one), each.query.model, each.query.intent, each.now) for one, each in asked)
    return np.array([seen.setdefault(key, at) for at, key in enumerate(keys)], dtype=np.int64)


def _of_question(
    hashes: Sequence[ContentHash], rows: Ints, beliefs: ReadableBeliefs, moment: Moment
) -> Mapping[Signal, Floats]:
    """What came of contents when this and other questions were asked, and how near they are to their session's."""
    question, kept = question_of(moment.query.text), moment.usage_kept
    told = {Signal.USAGE: signals.usage(signals.dampened(beliefs.usage(hashes, question), kept))}
    if beliefs.asked_before(question):
        before = beliefs.precedents(hashes, question)
        told[Signal.PRECEDENT] = signals.precedent(signals.dampened(before, kept))
    if moment.nearness is not None:
        told[Signal.SESSION] = signals.session(moment.nearness(rows))
    return told


def _quality(candidates: Candidates, beliefs: ReadableBeliefs, moment: Moment, settings: QualitySettings) -> Columns:
    """Signals of candidates that hold whatever was asked, each (n,)."""
    documents, facts = candidates.document, candidates.occurrences.documents
    told = _declared(documents, facts, moment, settings) | _believed(documents, facts, beliefs, moment)
    if Signal.AUTHORITY in moment.facts.available_signals:
        cited = moment.facts.authority(candidates.rows, facts.citations[documents])
        told[Signal.AUTHORITY] = signals.authority(cited)
    if Signal.ISOLATION in moment.facts.available_signals:
        told[Signal.ISOLATION] = signals.isolation(moment.facts.isolation[candidates.rows])
    if Signal.STRUCTURE in moment.facts.available_signals:
        told[Signal.STRUCTURE] = signals.structure(moment.facts.structure[candidates.place])
    return told


def with_propagated(candidates: Candidates, facts: GenerationFacts, settings: QualitySettings) -> Candidates:
    """Candidates told what their parts say for them: the best score among candidates below each in its document.

    Args:
        candidates: Scored so far; their scores are taken as they are, at most 1.
    """
    if Signal.PROPAGATED not in facts.available_signals:
        return candidates
    occurrences, parents = candidates.occurrences, facts.parents
    score = np.full(len(candidates.merged.query), -np.inf)
    score[candidates.number] = candidates.total
    scores = score[occurrences.owner]
    query = candidates.merged.query[occurrences.owner] * len(parents)  # places of each query are numbered apart
    order = np.argsort(query + occurrences.place)
    own = (query + occurrences.place)[order]
    best = np.full(len(own), -np.inf)  # by place, in the order of places
    above, level = np.where(np.isfinite(scores), parents[occurrences.place], -1), 1
    while len(some := np.flatnonzero(above >= 0)):
        wanted = query[some] + above[some]
        at = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
        met = own[at] == wanted
        np.maximum.at(best, at[met], scores[some[met]] * settings.propagation**level)
        above[some] = parents[above[some]]
        level += 1
    told = np.zeros(len(score))
    np.maximum.at(told, occurrences.owner[order], best)
    return candidates.with_signals({Signal.PROPAGATED: signals.propagated(told[candidates.number])})


def _believed(documents: Ints, facts: Documents, beliefs: ReadableBeliefs, moment: Moment) -> Columns:
    """What is believed of documents by their age and their source."""
    domains, ages = facts.domain[documents], _ages_hours(facts.modified_at[documents], moment.now)
    fresh = np.zeros(len(documents))
    for at, domain in enumerate(DOMAINS):
        own = (domains == at).nonzero()[0]
        if len(own):
            fresh[own] = beliefs.freshness_many(domain, ages[own])
    model = moment.query.model
    multipliers = facts.source.numbers(documents, lambda source: beliefs.trust_multiplier(source, model))
    return {
        Signal.FRESHNESS: signals.freshness(fresh),
        Signal.TRUST: signals.trust(facts.trust_level[documents], multipliers),
    }


def _declared(documents: Ints, facts: Documents, moment: Moment, settings: QualitySettings) -> Columns:
    """What documents say of themselves, by the signals that this generation and this query know anything of."""
    intent, boost, half_life = moment.query.intent, settings.novelty_boost, settings.novelty_half_life_hours
    ages = _ages_hours(facts.modified_at[documents], moment.now)

    def congruence(stored_for: str | None) -> float | None:
        return None if stored_for is None else signals.congruence(stored_for, intent)

    every: Mapping[Signal, Callable[[], Floats]] = {
        Signal.NOVELTY: lambda: signals.novelty(ages, boost=boost, half_life_hours=half_life),
        Signal.TIER: lambda: facts.tier.numbers(documents, lambda word: signals.tier(word, settings.tiers)),
        Signal.VALIDATION: lambda: facts.validation.numbers(
            documents, lambda word: signals.validation(word, settings.validations)
        ),
        Signal.CONGRUENCE: lambda: facts.intent.numbers(documents, congruence),
    }
    available = telling(moment.query, moment.facts, nearness=None, asked_before=False)
    return {signal: tell() for signal, tell in every.items() if signal in available}


def _ages_hours(modified_at: Floats, now: float) -> Floats:
    """NaN where it is not known when a document was modified."""
    return np.maximum(0.0, now - modified_at) / _SECONDS_PER_HOUR
