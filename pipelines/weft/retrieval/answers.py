"""From ranked candidates to answers, with all that explains them (RET-18)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import structs

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.chunks import made_by
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.matching import NO_MATCH, EvidenceGap, MatchFeatures, best_match
from weft.domain.ranking import (
    Answer,
    Channel,
    ChannelHit,
    Contribution,
    RankedResult,
    ScoredResult,
    ScoredResults,
    Signal,
    WeightBelief,
)
from weft.domain.reasons import CONTENT, OWN, QUESTION, PastVerdicts
from weft.indexes.chunk_store import Content, Occurrence
from weft.learning.beliefs import Beliefs
from weft.learning.calibration.matching import Answering
from weft.learning.calibration.scores import ScoreCalibration
from weft.quality.groups import exact_sums
from weft.retrieval.channels.second_pass import query_vector
from weft.retrieval.context import MOST, neighbours_in, with_contexts
from weft.retrieval.query.understanding import remembered
from weft.retrieval.ranking.batch import CHANNELS, SIGNALS, RankingBatch, ScoreTerm, head
from weft.retrieval.ranking.context import RankingContext, SignalWeight, WeightDraws
from weft.retrieval.ranking.diversity import Choice, contending
from weft.retrieval.ranking.signals import authorities_of, is_doubtful, match_features
from weft.retrieval.search import Resources, Stopwatch
from weft.retrieval.snapshot.documents import DOMAINS
from weft.retrieval.snapshot.relations import ResolvedRelations

# Candidates as results, with all that explains their scores (RET-18).


class Candidate(msgspec.Struct, frozen=True):
    """One candidate with all that is known of it."""

    content: Content
    occurrence: Occurrence  # the place it is shown at
    channels: Mapping[Channel, ChannelHit]  # where each channel that ranked it put it
    # the channels' scores of it, also of channels that did not rank it but could score it nevertheless
    scores: Mapping[Channel, float]
    signals: Mapping[Signal, float]  # values in [0, 1]
    contributions: tuple[Contribution, ...]  # what its score is made of
    uris: tuple[str, ...]  # the documents it speaks for, the best one first
    duplicates: tuple[str, ...]  # documents of near-duplicates that it stands for
    relevance: float  # Σ expected weight · signal, in [0, 1]
    past: PastVerdicts | None = None  # what people called it before; None where nobody said anything

    @property
    def content_hash(self) -> ContentHash:
        """Its identity."""
        return self.content.content_hash

    @property
    def text(self) -> str:
        """What was indexed."""
        return self.content.text

    @property
    def score(self) -> float:
        """Sum of the contributions."""
        return math.fsum(contribution.amount for contribution in self.contributions)


def explain_candidates(candidates: RankingBatch) -> list[Candidate]:
    """Each candidate with all that is known of it, in their order."""
    merged, numbers, sums = candidates.merged, candidates.number, candidates.scores
    believed = [candidates.contexts[query].weights(domain) for query, domain in merged.scopes]
    beliefs = [[_belief(part, of_scope) for part in sums.parts] for of_scope in believed]
    values, shares = sums.values[numbers], sums.weights[numbers]
    lines = zip(
        numbers.tolist(),
        candidates.contents,
        candidates.place.tolist(),
        merged.scope[numbers].tolist(),
        merged.ranks[numbers].tolist(),
        merged.scores[numbers].tolist(),
        candidates.signals[numbers].tolist(),
        zip(values.tolist(), shares.tolist(), (values * shares).tolist(), strict=True),
        _relevances(candidates, believed).tolist(),
        strict=True,
    )
    return [
        Candidate(
            content,
            _occurrence(content, place),
            {
                channel: ChannelHit(rank, score)
                for channel, rank, score in zip(CHANNELS, ranks, scores, strict=True)
                if rank
            },
            {channel: score for channel, score in zip(CHANNELS, scores, strict=True) if not math.isnan(score)},
            {signal: value for signal, value in zip(SIGNALS, signals, strict=True) if not math.isnan(value)},
            tuple(
                Contribution(
                    part.name, value, weight, amount, belief or candidates.effects.get(number, {}).get(part.name)
                )
                for part, value, weight, amount, belief in zip(sums.parts, *addends, beliefs[scope], strict=True)
                if not math.isnan(amount)  # what adds nothing is left out
            ),
            candidates.uris(number),
            candidates.duplicates.get(number, ()),
            relevance,
            candidates.past.get(number),
        )
        for number, content, place, scope, ranks, scores, signals, addends, relevance in lines
    ]


def _occurrence(content: Content, place: int) -> Occurrence:
    for occurrence in content.occurrences:
        if occurrence.place == place:
            return occurrence
    raise LookupError(
        f"expected the content of row {content.row} at place {place} of the generation, found it elsewhere"
    )


def _belief(part: ScoreTerm, weights: Mapping[Signal, SignalWeight]) -> WeightBelief | None:
    """What is believed of an addend's weight; None also where its signal does not count."""
    weight = None if part.signal is None else weights.get(part.signal)
    return None if weight is None else weight.belief


def _relevances(candidates: RankingBatch, believed: Sequence[Mapping[Signal, SignalWeight]]) -> Floats:
    """Σ expected weight · signal of each, in [0, 1]: the same measure under every fusion mode, explored or not."""
    expected = np.array(
        [[each[signal].belief.mean if signal in each else np.nan for signal in SIGNALS] for each in believed]
    ).reshape(len(believed), len(SIGNALS))
    lines = candidates.number
    return np.clip(exact_sums(candidates.signals[lines] * expected[candidates.merged.scope[lines]]), 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How good a result is beside its score; the fields are those of `RankedResult`."""

    match: MatchFeatures | None = None
    probability: float | None = None
    doubtful: bool = False
    above_next: float | None = None
    propensity: float = 1.0


def is_praised(past: PastVerdicts | None) -> bool:
    """Whether more people called a result right than wrong: they know more than a match."""
    if past is None:
        return False
    return past.own if past.own is not None else past.right + past.near_right > past.wrong + past.near_wrong


def results(candidates: Sequence[Candidate], beliefs: Beliefs, verdicts: Sequence[Verdict]) -> tuple[RankedResult, ...]:
    """Candidates of one query, in their order, as ranked results."""
    return tuple(
        _result(rank, candidate, beliefs, verdict)
        for rank, (candidate, verdict) in enumerate(zip(candidates, verdicts, strict=True), start=1)
    )


def precedent_of(candidate: Candidate) -> float | None:
    """How good it was by what came of it before, in (0, 1): 1 / (1 + e^−u) of all effects; None without any."""
    effects = [each.value for each in candidate.contributions if each.name in {CONTENT, QUESTION, OWN}]
    return 1.0 / (1.0 + math.exp(-math.fsum(effects))) if effects else None


def _result(rank: int, candidate: Candidate, beliefs: Beliefs, verdict: Verdict) -> RankedResult:
    occurrence = candidate.occurrence
    chunk = occurrence.label
    return RankedResult(
        rank=rank,
        content_hash=candidate.content_hash,
        chunk_id=chunk.chunk_id,
        uris=candidate.uris,
        text=candidate.text,
        kind=chunk.kind,
        title=occurrence.title,
        symbol=chunk.symbol,
        heading_path=chunk.heading_path,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        domain=occurrence.domain,
        channels=candidate.channels,
        signals=candidate.signals,
        contributions=candidate.contributions,
        relevance=candidate.relevance,
        probability=verdict.probability,
        above_next=verdict.above_next,
        propensity=verdict.propensity,
        examination=beliefs.examined(occurrence.domain, rank),
        made=made_by(chunk),
        match=verdict.match,
        precedent=precedent_of(candidate),
        past=candidate.past,
        doubtful=verdict.doubtful and not is_praised(candidate.past),
        alike=candidate.duplicates,
    )


# How sure an answer is: of each result, of their order, and of there being one at all (RET-15, RET-18).

UNLEARNED = "no calibration has been learned yet: there were too few verdicts on results"
INSEPARABLE = "good and bad results do not separate by how well they match the query over these channels"

_DRAWN = 6  # bytes of a digest that are a draw in [0, 1): a float holds them exactly


def chance(match: MatchFeatures, calibration: ScoreCalibration | None) -> float | None:
    """P(good) of a match, where verdicts say how matches turn out; None where not, and where they do not separate."""
    curves = None if calibration is None else calibration.match
    return None if curves is None else curves.probability(match)


def with_verdict_request(results: Sequence[RankedResult], query_id: str, chance: float) -> tuple[RankedResult, ...]:
    """The results, one of which a verdict is asked for now and then: drawn by the query's id, so that answers repeat.

    One that is drawn at random speaks for all that is shown. Where the same was asked before, nobody is asked.
    """
    if not results or not chance:
        return tuple(results)
    each = min(chance, 1.0 / len(results))
    digest = hashlib.sha256(f"ask:{query_id}".encode("utf-8", "surrogatepass")).digest()
    asked = int(int.from_bytes(digest[:_DRAWN], "big") / 256**_DRAWN / each)
    if asked >= len(results) or any(result.precedent is not None for result in results):
        return tuple(results)
    return tuple(structs.replace(result, asked=each) if at == asked else result for at, result in enumerate(results))


ActingThreshold = Callable[[Domain], float | None]
"""From reviews of a domain, the confidence from which on to act; None where there are none (LRN-7)."""


def reviewed(results: Sequence[RankedResult], threshold: ActingThreshold) -> tuple[RankedResult, ...]:
    """The results, those in doubt on which reviews of their domain would not have one act."""
    return tuple(
        structs.replace(result, doubtful=True) if _below(result, threshold(result.domain)) else result
        for result in results
    )


def doubtful_gap(results: Sequence[RankedResult], threshold: ActingThreshold) -> EvidenceGap | None:
    """Set where reviews would have one act on none of the results: the surest of them, and what it would take."""
    asked = [(result.confidence, threshold(result.domain)) for result in results]
    below = [(confidence, least) for confidence, least in asked if least is not None and confidence < least]
    return EvidenceGap(*max(below), None) if below and len(below) == len(asked) else None


def _below(result: RankedResult, least: float | None) -> bool:
    return least is not None and result.confidence < least


def match_gap(results: Sequence[RankedResult], answering: Answering | None) -> EvidenceGap | None:
    """Set where no result is a good enough match to be an answer."""
    if answering is None:
        return None
    compared = answering.compared(best_match(result.match for result in results) if results else NO_MATCH)
    return None if compared is None or compared[0] > compared[1] else EvidenceGap(*compared, answering.bound)


def uncalibrated(results: Sequence[RankedResult], calibration: ScoreCalibration | None) -> str:
    """Why results carry no probability; empty where they do, or where there are none."""
    if not results or any(result.probability is not None for result in results):
        return ""
    return UNLEARNED if calibration is None or calibration.match is None else INSEPARABLE


@dataclass(frozen=True, slots=True, eq=False)
class ScoreComponents:
    """What scores of some results are made of."""

    values: Floats  # of each of `SIGNALS` that adds to a score with its learned weight, 0 of others, (n, signals)
    fixed: Floats  # what is added without a learned weight, (n,)
    learned: Flags  # whether any learned weight adds anything, (n,)
    domains: Sequence[Domain]  # whose weights rank each

    def of(self, lines: slice) -> ScoreComponents:
        """Some of the results."""
        return ScoreComponents(self.values[lines], self.fixed[lines], self.learned[lines], self.domains[lines])


def scored(candidates: RankingBatch) -> ScoreComponents:
    """The scores of candidates, a line each."""
    numbers, scores = candidates.number, candidates.scores
    addends = scores.values[numbers]
    amounts = addends * scores.weights[numbers]
    adds = ~np.isnan(amounts)
    weighed = [(at, SIGNALS.index(part.signal)) for at, part in enumerate(scores.parts) if part.signal is not None]
    places, signals = [at for at, _ in weighed], [signal for _, signal in weighed]
    values, fixed = np.zeros((len(candidates), len(SIGNALS))), np.zeros(len(candidates))
    values[:, signals] = np.where(adds[:, places], addends[:, places], 0.0)
    for at, part in enumerate(scores.parts):
        if part.signal is None:
            fixed += np.where(adds[:, at], amounts[:, at], 0.0)
    learned = np.logical_or.reduce(adds[:, places], axis=1)
    return ScoreComponents(values, fixed, learned, [DOMAINS[domain] for domain in candidates.domain.tolist()])


def rank_confidence(results: ScoreComponents, draws: WeightDraws) -> list[float | None]:
    """For each result the probability that it belongs above the next: P(score_i > score_{i+1}), ties counted half.

    Over draws from the posterior; None of the last result, and where no learned weight ranks.
    """
    count = len(results.fixed)
    if count < 2 or not results.learned.all():
        return [None] * count
    above = (results.fixed[:-1] - results.fixed[1:])[:, None] + _apart(results, draws)
    # Draws above less draws below, and all of them, are twice those above with half of the ties.
    balance = np.add.reduce(np.sign(above), axis=1)
    sure: list[float | None] = ((balance + above.shape[1]) / (2 * above.shape[1])).tolist()
    return [*sure, None]


def _apart(results: ScoreComponents, draws: WeightDraws) -> Floats:
    """By how much learned weights set each result above the next under each draw, (n − 1, draws)."""
    upper, lower, domains = results.values[:-1], results.values[1:], results.domains
    if len(set(domains)) == 1:
        # What two results have alike is gone before anything is rounded: those alike in everything tie in every draw.
        return np.asarray((upper - lower) @ draws(domains[0]))
    pairs = zip(upper, domains, lower, domains[1:], strict=False)
    return np.array(
        [
            (one - other) @ draws(its) if its is others else one @ draws(its) - other @ draws(others)
            for one, its, other, others in pairs
        ]
    )


def propensities(
    contenders: ScoreComponents, shown: Ints, draws: WeightDraws, would_show: Callable[[Floats], Ints]
) -> list[float]:
    """For each result of an exploring search the probability that it shows it at the rank that it has.

    The share of draws that give it the rank, the draw made among them: never 0 (Horvitz and Thompson, JASA 1952).
    """
    if not contenders.learned.all():
        return [1.0] * len(shown)
    # One signal after the other, so that equal results have equal scores: BLAS sums rows in different orders.
    scores = contenders.fixed[:, None]
    drawn = np.array([draws(domain) for domain in contenders.domains])  # (contenders, signals, draws)
    for at in range(len(SIGNALS)):
        scores = scores + contenders.values[:, at, None] * drawn[:, at]
    hits = (would_show(scores)[: len(shown)] == shown[:, None]).sum(axis=1)
    shares: list[float] = ((hits + 1.0) / (scores.shape[1] + 1.0)).tolist()
    return shares


SHOWN_REMEMBERED = 200
"""Results that a session's memory holds, those given last: ten pages of twenty."""


HEAD_DEPTH = 20
"""Hits of each channel that an answer names for the query log (EVA-3): two pages of ten."""


class RankedBatch(NamedTuple):
    """What is shown for the queries of a batch."""

    contenders: RankingBatch  # what might be shown
    shown: RankingBatch
    watch: Stopwatch


def scored_results(ranked: RankedBatch) -> list[ScoredResults]:
    """The results alone, as `answers` would give them."""
    shown, lines_of = ranked.shown, dict(ranked.shown.queries)
    uris = (shown.uris(number) for number in shown.number.tolist())
    placed = [ScoredResult(*each) for each in zip(shown.hashes, uris, shown.total.tolist(), strict=True)]
    return [tuple(placed[lines_of.get(at, slice(0))]) for at in range(len(shown.contexts))]


def answers(resources: Resources, ranked: RankedBatch) -> list[Answer]:
    """Results of each query with contributions, probabilities and timings."""
    with ranked.watch.stage("assembly"):
        by_query = _results(resources, ranked)
    return [
        _answer(resources, context, shown, failed, ranked.watch)
        for context, shown, failed in zip(ranked.shown.contexts, by_query, ranked.shown.failed, strict=True)
    ]


def _answer(
    resources: Resources,
    context: RankingContext,
    shown: tuple[RankedResult, ...],
    failed: Mapping[str, str],
    watch: Stopwatch,
) -> Answer:
    plan, reading, tuned = context.plan, context.reading, resources.settings
    memory = plan.query.memory
    if memory is not None:
        asked = remembered(query_vector(context.ranked), memory, tuned.understanding.shift)
        asked = asked.drawn() if plan.query.explore else asked
        memory = asked.given((result.content_hash for result in shown), limit=SHOWN_REMEMBERED)
    # What the query names is there, however little else of it matches.
    gap = None if plan.named is not None else match_gap(shown, reading.answering)
    if gap is not None:
        gap = replace(gap, missing=resources.snapshot.generation.lexical.unknown_words(plan.text))
    return Answer(
        query=plan.query,
        results=shown,
        generation=resources.snapshot.generation_id,
        learned=reading.version,
        fusion=tuned.fusion.value,
        truncated=plan.truncated,
        heads=head(context.hits, HEAD_DEPTH, resources.snapshot.generation.contents),
        failed_channels=failed,
        timings_ms=watch.timings_ms,
        understanding=plan.understanding,
        memory=memory,
        gap=gap or doubtful_gap(shown, context.threshold),
        hand_off=None
        if plan.query.turn is None
        else reading.beliefs.hand_off(plan.query.model, plan.query.agent, plan.query.turn),
        uncalibrated=uncalibrated(shown, reading.calibration),
        lessons=()
        if resources.lessons is None
        else resources.lessons.of(plan.query, reading.beliefs.lessons, query_vector(context.ranked)),
    )


def _results(resources: Resources, ranked: RankedBatch) -> list[tuple[RankedResult, ...]]:
    """The chosen candidates of each query as results, with what explains them."""
    shown, lines_of = ranked.shown, dict(ranked.shown.queries)
    explained, made_of = explain_candidates(shown), scored(shown)
    by_query = []
    for at, context in enumerate(shown.contexts):
        lines = lines_of.get(at, slice(0))
        own, above_next = shown.take(lines), rank_confidence(made_of.of(lines), context.draws)
        explored = context.plan.query.explore and len(own) > 0
        shares = _propensities(resources, contending(ranked.contenders, at), own) if explored else [1.0] * len(own)
        verdicts = [
            Verdict(
                match,
                chance(match, context.reading.calibration),
                not meant and is_doubtful(match, context.reading.answering),
                above,
                share,
            )
            for match, above, share, meant in zip(
                match_features(own, context), above_next, shares, _is_named(own, context), strict=True
            )
        ]
        ranks = reviewed(results(explained[lines], context.reading.beliefs, verdicts), context.threshold)
        ranks = _with_authority(context, _with_relations(resources.relations, ranks), own)
        asked = with_verdict_request(ranks, context.plan.query.query_id, resources.settings.ask)
        by_query.append(_with_contexts(resources, context, asked) if context.plan.query.context else asked)
    return by_query


def _is_named(shown: RankingBatch, context: RankingContext) -> list[bool]:
    """Which results of one query are what it names and says little else about."""
    named = context.plan.named
    return [False] * len(shown) if named is None else named.mask[shown.rows].tolist()


def _propensities(resources: Resources, contenders: RankingBatch, shown: RankingBatch) -> list[float]:
    """How likely an exploring query shows each result where it stands, given all that it might show (EVA-7)."""
    choice = Choice(contenders, resources.settings.diversity, resources.relations)
    line_of = {number: line for line, number in enumerate(contenders.number.tolist())}
    places = np.array([line_of[number] for number in shown.number.tolist()], dtype=np.int64)
    draws = contenders.contexts[int(shown.query[0])].draws
    return propensities(scored(contenders), places, draws, choice.ranked)


def _with_relations(relations: ResolvedRelations, shown: Sequence[RankedResult]) -> tuple[RankedResult, ...]:
    relations_of = [relations.relations_of(result.uris, result.chunk_id) for result in shown]
    return tuple(
        structs.replace(result, relations=some) if some else result
        for result, some in zip(shown, relations_of, strict=True)
    )


def _with_authority(
    context: RankingContext, shown: Sequence[RankedResult], candidates: RankingBatch
) -> tuple[RankedResult, ...]:
    authorities = authorities_of(candidates, context.reading.beliefs, context.facts)
    return tuple(structs.replace(result, authority=one) for result, one in zip(shown, authorities, strict=True))


def _with_contexts(
    resources: Resources, context: RankingContext, shown: Sequence[RankedResult]
) -> tuple[RankedResult, ...]:
    neighbours = neighbours_in(resources.snapshot.generation, most=sum(MOST.values()))

    def moved(result: RankedResult) -> float:
        return context.reading.beliefs.threshold_moved(result.domain, context.plan.query.agent)

    return with_contexts(shown, context.plan.understanding.type, neighbours, moved, resources.settings.context)
