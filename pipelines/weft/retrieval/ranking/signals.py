"""Signals of candidates: similarity, pseudo-relevance and quality (RET-13).

The first results of a search speak for what is like them (van Rijsbergen's cluster hypothesis; Rocchio 1971).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.domain.documents import Domain
from weft.domain.links import Authority
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import ANY, Channel, Query, Signal
from weft.learning.beliefs import Beliefs
from weft.learning.calibration.matching import Answering
from weft.quality import signals
from weft.quality.authority import FusedAuthority, external, fused, log_scaled
from weft.quality.groups import Groups
from weft.retrieval.channels.run import DENSE, Ranked, matcher, scores_of
from weft.retrieval.ranking.batch import CHANNEL_AT, RankingBatch, best_first
from weft.retrieval.ranking.context import RankingContext
from weft.retrieval.settings import FusionMode, PseudoRelevanceSettings, QualitySettings, RetrievalSettings
from weft.retrieval.snapshot.asides import Aside, LinkLists, asks_for
from weft.retrieval.snapshot.documents import DOMAINS, Categorical, Documents, GenerationFacts

_DENSE_AT = [CHANNEL_AT[channel] for channel in sorted(DENSE)]
_SECONDS_PER_HOUR = 3600.0

SIMILARITY: Mapping[Channel, Signal] = MappingProxyType(
    {
        Channel.DENSE: Signal.VECTOR,
        Channel.DENSE_2: Signal.VECTOR_2,
        Channel.DENSE_3: Signal.VECTOR_3,
        Channel.LEXICAL: Signal.LEXICAL,
        Channel.SPARSE: Signal.SPARSE,
        Channel.GRAPH: Signal.GRAPH,
        Channel.DEGREE: Signal.DEGREE,
        Channel.TRIGGERS: Signal.TRIGGER,
        Channel.NAMES: Signal.NAMED,
    }
)
"""The signal that a channel's score becomes."""

_SCALES: Mapping[Channel, Callable[[Floats, Groups], Floats]] = MappingProxyType(
    {
        channel: getattr(signals, signal.value)
        for channel, signal in SIMILARITY.items()
        if channel is not Channel.DEGREE  # whose scale is configured
    }
)

ALWAYS = frozenset({Signal.CROSS_VALIDATION, Signal.FRESHNESS, Signal.TRUST, *SIMILARITY.values()})
"""Signals that every generation and query has; others only some generations, queries and rerankers."""


def answering(by_channel: Mapping[Channel, Ranked]) -> frozenset[Channel]:
    """Channels that have something to say about one query: words and meaning where they answered at all."""
    return frozenset(
        channel
        for channel, ranked in by_channel.items()
        if len(ranked.ranking) or channel is Channel.LEXICAL or channel in DENSE
    )


def active_signals(
    channels: Collection[Channel], without: Collection[Signal] = (), *, available: Collection[Signal] = ()
) -> frozenset[Signal]:
    """Signals that are weighed when these channels answered: without a channel its similarity has no weight."""
    silent = {signal for channel, signal in SIMILARITY.items() if channel not in channels}
    if Channel.LEXICAL not in channels or DENSE.isdisjoint(channels):
        silent.add(Signal.CROSS_VALIDATION)
    if DENSE.isdisjoint(channels):  # what it makes up for is a fault of search by vectors
        silent.add(Signal.ISOLATION)
    return ALWAYS.union(available).difference(silent, without)


def with_similarity(candidates: RankingBatch, settings: RetrievalSettings) -> RankingBatch:
    """Candidates with their similarity to their query, measured among its own, and whether channels agree."""

    def degree(scores: Floats, _queries: Groups) -> Floats:
        return signals.degree(scores, settings.degree.cap)

    scales = {**_SCALES, Channel.DEGREE: degree}
    ranked = candidates.merged.ranks[candidates.number] > 0
    by_meaning = np.logical_or.reduce(ranked[:, _DENSE_AT], axis=1)
    ways = np.asarray(ranked[:, CHANNEL_AT[Channel.LEXICAL]].astype(np.int64) + by_meaning)
    columns = {Signal.CROSS_VALIDATION: signals.cross_validation(ways)}
    for channel, signal in SIMILARITY.items():
        answers = np.array([channel in each.answered for each in candidates.contexts])
        if answers.any():
            values = scales[channel](candidates.scores_of(channel), candidates.queries)
            columns[signal] = np.where(answers[candidates.query], values, np.nan)
    return candidates.with_signals(columns)


def with_pseudo_relevance(candidates: RankingBatch, settings: PseudoRelevanceSettings) -> RankingBatch:
    """Candidates with their likeness to the first ones of their query, scaled among its own."""
    vectors = [each.vectors for each in candidates.contexts]
    able = np.array([of_query is not None for of_query in vectors])
    if not settings.first or not able.any():
        return candidates
    meaning, words = candidates.signal(Signal.VECTOR), candidates.signal(Signal.LEXICAL)
    agreed = np.where(np.isnan(words), meaning, (meaning + words) / 2.0)
    likeness = np.full(len(candidates), np.nan)
    for query, lines in candidates.queries:
        of_query = vectors[query]
        if of_query is not None:
            likeness[lines] = similarity_to_top(of_query(candidates.rows[lines]), agreed[lines], settings)
    values = signals.pseudo_relevance(likeness, candidates.queries)
    return candidates.with_signals({Signal.PSEUDO_RELEVANCE: np.where(able[candidates.query], values, np.nan)})


def similarity_to_top(vectors: np.ndarray, scores: Floats, settings: PseudoRelevanceSettings) -> Floats:
    """Mean of each vector's cosine to the power of `sharpness` to the `first` ones by score, itself left out.

    The first ones weigh exp((score − best) / temperature); NaN where there are no others.
    """
    first = np.argsort(-scores, kind="stable")[: settings.first]
    chances = np.exp((scores[first] - scores[first[0]]) / settings.temperature)
    cosines = np.maximum(vectors @ vectors[first].T, 0.0).astype(np.float64)
    shares = np.tile(chances, (len(scores), 1))
    shares[first, np.arange(len(first))] = 0.0
    total = shares.sum(axis=1)
    met = (cosines**settings.sharpness * shares).sum(axis=1)
    return np.where(total > 0.0, met / np.where(total > 0.0, total, 1.0), np.nan)


def available_signals(facts: GenerationFacts, query: Query, *, in_session: bool) -> frozenset[Signal]:
    """The signals that not every generation and query has, and these have."""
    silent = {Signal.CONGRUENCE} if query.intent == ANY else set()
    return (facts.available_signals - silent).union({Signal.SESSION} if in_session else ())


def with_quality(candidates: RankingBatch, settings: QualitySettings) -> RankingBatch:
    """Candidates with the quality of the best document that each speaks for."""
    contexts, columns = candidates.contexts, dict[Signal, Floats]()

    def fill(lines: Ints | slice, values_of: Mapping[Signal, Floats]) -> None:
        for signal, values in values_of.items():
            columns.setdefault(signal, np.full(len(candidates), np.nan))[lines] = values

    group = _equally_judged(contexts)[candidates.query]
    for at in np.unique(group).tolist():
        lines = np.flatnonzero(group == at)
        fill(lines, _of_documents(candidates.take(lines), contexts[at], settings))
    for query, own in candidates.queries:
        nearness = contexts[query].nearness
        if nearness is not None:
            fill(own, {Signal.SESSION: signals.session(nearness(candidates.rows[own]))})
    return candidates.with_signals(columns)


def _equally_judged(contexts: Sequence[RankingContext]) -> Ints:
    """For each query the first one for which documents have the same quality."""
    seen: dict[Hashable, int] = {}
    keys = [(id(each.reading.beliefs), each.plan.query.model, each.plan.query.intent, each.now) for each in contexts]
    return np.array([seen.setdefault(key, at) for at, key in enumerate(keys)], dtype=np.int64)


def _of_documents(candidates: RankingBatch, context: RankingContext, settings: QualitySettings) -> dict[Signal, Floats]:
    """Signals of candidates that hold whatever was asked, each (n,)."""
    beliefs, query = context.reading.beliefs, context.plan.query
    numbers, documents, facts = candidates.document, candidates.occurrences.documents, context.facts
    new_for = np.maximum(0.0, context.now - documents.indexed_at[numbers]) / _SECONDS_PER_HOUR
    intent, half_life, prior = query.intent, settings.novelty_half_life_hours, beliefs.declared

    def congruence(stored_for: str | None) -> float | None:
        return None if stored_for is None else signals.congruence(stored_for, intent)

    optional: Mapping[Signal, Callable[[], Floats]] = {
        Signal.NOVELTY: lambda: signals.novelty(new_for, half_life_hours=half_life),
        Signal.TIER: lambda: _declared(
            documents.tier, numbers, lambda word: signals.tier(word, prior.tiers), prior.undeclared
        ),
        Signal.VALIDATION: lambda: _declared(
            documents.validation, numbers, lambda word: signals.validation(word, prior.validations), prior.undeclared
        ),
        Signal.CONGRUENCE: lambda: documents.intent.map(numbers, congruence),
        Signal.AUTHORITY: lambda: signals.authority(authority_of(candidates, beliefs, facts).value),
        Signal.ISOLATION: lambda: signals.isolation(facts.isolation[candidates.rows]),
        Signal.STRUCTURE: lambda: signals.structure(facts.structure[candidates.place]),
        Signal.MOMENTUM: lambda: signals.momentum(facts.momentum[candidates.rows], half=settings.momentum_half),
    }
    available = available_signals(facts, query, in_session=False)
    return {
        Signal.FRESHNESS: signals.freshness(_fresh(candidates, context, settings)),
        Signal.TRUST: _trusted(numbers, documents, beliefs, query.model),
        **{signal: values_of() for signal, values_of in optional.items() if signal in available},
    }


def _declared(
    column: Categorical[str | None], numbers: Ints, value_of: Callable[[str | None], float | None], undeclared: float
) -> Floats:
    """Values of what documents declare; NaN where no document of the generation declares anything of the kind."""
    if all(value_of(word) is None for word in column.distinct):
        return np.full(len(numbers), np.nan)
    values = column.map(numbers, value_of)
    return np.where(np.isnan(values), undeclared, values)


def _fresh(candidates: RankingBatch, context: RankingContext, settings: QualitySettings) -> Floats:
    """Probability that contents are still accurate: by domain and age, by what overrides age, and by who looked."""
    numbers, documents, beliefs = candidates.document, candidates.occurrences.documents, context.reading.beliefs
    domains, checks = documents.domain[numbers], beliefs.checks.of(candidates.hashes)
    since = np.maximum(documents.dated_at[numbers], checks.validated_at)  # NaN where nothing is dated
    ages = np.maximum(0.0, context.now - since) / _SECONDS_PER_HOUR
    fresh = np.zeros(len(numbers))
    for at in np.unique(domains).tolist():
        own = (domains == at).nonzero()[0]
        fresh[own] = beliefs.freshness_many(DOMAINS[at], ages[own])
    cited = signals.cited_freshness(fresh, context.facts.citations.counts(numbers), settings.citations_half)
    lasts = documents.intent.map(numbers, lambda intent: float((intent or "").casefold() in settings.lasting)) > 0.0
    overtaken = documents.committed_at[numbers] > checks.validated_at
    fresh = np.where((domains == _ACADEMIC) & ~np.isnan(since), cited, fresh)
    fresh = np.where((domains == _HISTORY) & lasts, 1.0, fresh)
    fresh = np.where((domains == _CODE) & overtaken, 0.0, fresh)
    return beliefs.checked(fresh, checks)


_ACADEMIC, _HISTORY, _CODE = (DOMAINS.index(domain) for domain in (Domain.ACADEMIC, Domain.HISTORY, Domain.CODE))


def _trusted(numbers: Ints, documents: Documents, beliefs: Beliefs, model: str) -> Floats:
    multipliers = documents.source.map(numbers, lambda source: beliefs.trust_multiplier(source, model))
    return signals.trust(documents.trust_level[numbers], multipliers)


def with_asides_lowered(
    candidates: RankingBatch, facts: GenerationFacts, links: LinkLists, settings: RetrievalSettings
) -> RankingBatch:
    """Candidates; what stands aside loses a share of its score, where a query does not ask for its kind.

    The contribution is called as the kind is.
    """
    loses = settings.quality.aside_loses
    if settings.fusion is not FusionMode.LEARNED or loses == 0.0:
        return candidates
    before, flags = candidates.total, {kind: of_kind[candidates.document] for kind, of_kind in facts.asides.items()}
    for kind, own in {**flags, Aside.CONTENTS: links.among(candidates.rows, facts.pages[candidates.document])}.items():
        others = np.array([not asks_for(each.plan.text, kind) for each in candidates.contexts])
        lowered = own & others[candidates.query]
        if lowered.any():
            candidates = candidates.add_term(kind.value, np.where(lowered, before, np.nan), -loses)
    return best_first(candidates)


def with_propagated(candidates: RankingBatch, facts: GenerationFacts, settings: QualitySettings) -> RankingBatch:
    """Candidates with what their parts say for them: the best score among candidates below each in its document."""
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
    propagated = np.zeros(len(score))
    np.maximum.at(propagated, occurrences.owner[order], best)
    return candidates.with_signals({Signal.PROPAGATED: signals.propagated(propagated[candidates.number])})


def authority_of(candidates: RankingBatch, beliefs: Beliefs, facts: GenerationFacts) -> FusedAuthority:
    """Authority of candidates, a row each, of the document that each is shown in."""
    prior, citations = beliefs.authority, facts.citations
    citing = citations.citing[candidates.document].astype(np.float64)
    mass = prior.internal.document * citing + beliefs.citations.of(candidates.hashes)
    elsewhere = external(citations.measures[candidates.document], prior)
    return fused(elsewhere, log_scaled(mass, prior.internal.full), prior)


def authorities_of(candidates: RankingBatch, beliefs: Beliefs, facts: GenerationFacts) -> list[Authority | None]:
    """Authority of candidates as an answer tells it; None where the generation knows of no citations."""
    if Signal.AUTHORITY not in facts.available_signals:
        return [None] * len(candidates)
    authority = authority_of(candidates, beliefs, facts)
    return [authority.of(at, beliefs.authority) for at in range(len(candidates))]


def features_of(cosine: float | None, bm25: float | None, terms: int, tokens: float | None = None) -> MatchFeatures:
    """How well a candidate matches, on scales that no other candidate moves."""
    dense, met = (None if share is None else min(1.0, max(0.0, share)) for share in (cosine, tokens))
    near = None if dense is None or met is None else (dense + met) / 2.0
    score = None if bm25 is None else max(0.0, bm25)
    return MatchFeatures(dense=dense, lexical=None if score is None else score / (score + terms), late_interaction=near)


def is_doubtful(match: MatchFeatures | None, answering: Answering | None) -> bool:
    """Whether a match is no better than those of queries without an answer; False also where that is not known."""
    compared = None if answering is None else answering.compared(match)
    return compared is not None and compared[0] <= compared[1]


def match_features(candidates: RankingBatch, context: RankingContext) -> list[MatchFeatures]:
    """How well each candidate of one query matches it by itself."""
    compare = matcher(context.ranked) if Signal.LATE_INTERACTION in context.reranking.used else None
    unknown: list[float | None] = [None] * len(candidates)
    cosines, bm25 = (
        _own_scores(candidates, channel, context.ranked) if channel in context.answered else unknown
        for channel in (Channel.DENSE, Channel.LEXICAL)
    )
    tokens = unknown if compare is None else compare(candidates.rows).tolist()
    terms = max(1, len(context.plan.text.split()))
    measured = zip(cosines, bm25, tokens, strict=True)
    return [features_of(cosine, score, terms, match) for cosine, score, match in measured]


def may_answer(candidate: RankingBatch) -> bool:
    """Whether a candidate, a batch of one, is likely enough to be an answer, as far as that is known."""
    context = candidate.contexts[int(candidate.query[0])]
    answering = context.reading.answering
    return answering is None or not is_doubtful(match_features(candidate, context)[0], answering)


def _own_scores(candidates: RankingBatch, channel: Channel, by_channel: Mapping[Channel, Ranked]) -> list[float]:
    """A channel's scores of the candidates of one query by the query's own words; 0 where there is none."""
    alone = by_channel[channel].alone if channel in by_channel else None
    if alone is None:
        scores: list[float] = np.nan_to_num(candidates.scores_of(channel), nan=0.0).tolist()
        return scores
    own, rows = dict(alone.ranking), candidates.rows
    return [own.get(row, score) for row, score in zip(rows.tolist(), scores_of(alone)(rows).tolist(), strict=True)]
