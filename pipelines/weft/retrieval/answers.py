"""From ranked candidates to answers, with all that explains them (RET-18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from weft.domain.ranking import Answer, RankedResult, ScoredResult, ScoredResults
from weft.retrieval.answer.confidence import (
    answered,
    chance,
    doubtful_gap,
    is_doubtful,
    propensities,
    rank_confidence,
    reviewed,
    scored,
    uncalibrated,
    with_verdict_request,
)
from weft.retrieval.answer.explain import Verdict, explain_candidates, results
from weft.retrieval.channels.second_pass import query_vector
from weft.retrieval.context import MOST, neighbours_in, with_contexts
from weft.retrieval.query.understanding import remembered
from weft.retrieval.ranking.signals import authorities_of
from weft.retrieval.ranking.table import Candidates, head
from weft.retrieval.rerank.diversity import Choice
from weft.retrieval.search import RankingContext, Resources, Stopwatch
from weft.retrieval.snapshot.relations import ResolvedRelations

SHOWN_REMEMBERED = 200
"""Results that a session's memory holds, those given last: ten pages of twenty."""


HEAD_DEPTH = 20
"""Hits of each channel that an answer names for the query log (EVA-3): two pages of ten."""


@dataclass(frozen=True, slots=True)
class RankedBatch:
    """What is shown for the queries of a batch."""

    contexts: Sequence[RankingContext]
    shown: Candidates
    choices: Mapping[int, Choice]  # by place in the batch of each query that explores: among what it chose
    failed: Sequence[Mapping[str, str]]  # for each query what was left out, and why
    watch: Stopwatch


def scored_results(ranked: RankedBatch) -> list[ScoredResults]:
    """The results alone, as `answers` would give them."""
    shown, lines_of = ranked.shown, dict(ranked.shown.queries)
    uris = (shown.uris(number) for number in shown.number.tolist())
    placed = [ScoredResult(*each) for each in zip(shown.hashes, uris, shown.total.tolist(), strict=True)]
    return [tuple(placed[lines_of.get(at, slice(0))]) for at in range(len(ranked.contexts))]


def answers(resources: Resources, ranked: RankedBatch) -> list[Answer]:
    """Results of each query with contributions, probabilities and timings."""
    with ranked.watch.stage("assembly"):
        by_query = _results(resources, ranked)
    return [
        _answer(resources, context, shown, failed, ranked.watch)
        for context, shown, failed in zip(ranked.contexts, by_query, ranked.failed, strict=True)
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
    texts = resources.snapshot.generation.lexical
    judged = answered(
        shown, reading.answering, lambda some: texts.coverage(plan.text, [each.full_text for each in some])
    )
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
        gap=judged.gap or doubtful_gap(shown, context.threshold),
        answered=judged.probability,
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
    explained = explain_candidates(ranked.shown, [context.weights for context in ranked.contexts])
    lines_of, by_query, made_of = dict(ranked.shown.queries), [], scored(ranked.shown)
    for at, context in enumerate(ranked.contexts):
        lines = lines_of.get(at, slice(0))
        above_next = rank_confidence(made_of.of(lines), context.draws)
        verdicts = _verdicts(context, above_next, ranked.shown.take(lines), ranked.choices.get(at))
        shown = reviewed(results(explained[lines], context.reading.beliefs, verdicts), context.threshold)
        shown = _with_relations(resources.relations, shown)
        shown = _with_authority(context, shown, ranked.shown.take(lines))
        asked = with_verdict_request(shown, context.plan.query.query_id, resources.settings.ask)
        by_query.append(_with_contexts(resources, context, asked) if context.plan.query.context else asked)
    return by_query


def _verdicts(
    context: RankingContext, above_next: Sequence[float | None], shown: Candidates, choice: Choice | None
) -> list[Verdict]:
    reading, shares = context.reading, [1.0] * len(shown)
    if choice is not None and len(shown):
        line_of = {number: line for line, number in enumerate(choice.contenders.number.tolist())}
        places = np.array([line_of[number] for number in shown.number.tolist()], dtype=np.int64)
        shares = propensities(scored(choice.contenders), places, context.draws, choice.ranked)
    return [
        Verdict(match, chance(match, reading.calibration), is_doubtful(match, reading.answering), above, share)
        for match, above, share in zip(context.match_features(shown), above_next, shares, strict=True)
    ]


def _with_relations(relations: ResolvedRelations, shown: Sequence[RankedResult]) -> tuple[RankedResult, ...]:
    relations_of = [relations.relations_of(result.uris, result.chunk_id) for result in shown]
    return tuple(
        structs.replace(result, relations=some) if some else result
        for result, some in zip(shown, relations_of, strict=True)
    )


def _with_authority(
    context: RankingContext, shown: Sequence[RankedResult], candidates: Candidates
) -> tuple[RankedResult, ...]:
    authorities = authorities_of(candidates, context.reading.beliefs, context.moment.facts)
    return tuple(structs.replace(result, authority=one) for result, one in zip(shown, authorities, strict=True))


def _with_contexts(
    resources: Resources, context: RankingContext, shown: Sequence[RankedResult]
) -> tuple[RankedResult, ...]:
    neighbours = neighbours_in(resources.snapshot.generation, most=max(MOST.values()))

    def moved(result: RankedResult) -> float:
        return context.reading.beliefs.threshold_moved(result.domain, context.plan.query.agent)

    return with_contexts(shown, context.plan.understanding.type, neighbours, moved, resources.settings.context)
