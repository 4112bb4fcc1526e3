"""From ranked candidates to answers, with all that explains them (RET-18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import structs

from weft.domain.ranking import Answer, RankedResult, ScoredResult, ScoredResults
from weft.retrieval.answer.confidence import (
    answered,
    chance,
    doubtful_gap,
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
from weft.retrieval.ranking.batch import RankingBatch, head
from weft.retrieval.ranking.context import RankingContext
from weft.retrieval.ranking.signals import authorities_of, is_doubtful, match_features
from weft.retrieval.rerank.diversity import Choice, contending
from weft.retrieval.search import Resources, Stopwatch
from weft.retrieval.snapshot.relations import ResolvedRelations

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
                is_doubtful(match, context.reading.answering),
                above,
                share,
            )
            for match, above, share in zip(match_features(own, context), above_next, shares, strict=True)
        ]
        ranks = reviewed(results(explained[lines], context.reading.beliefs, verdicts), context.threshold)
        ranks = _with_authority(context, _with_relations(resources.relations, ranks), own)
        asked = with_verdict_request(ranks, context.plan.query.query_id, resources.settings.ask)
        by_query.append(_with_contexts(resources, context, asked) if context.plan.query.context else asked)
    return by_query


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
    neighbours = neighbours_in(resources.snapshot.generation, most=max(MOST.values()))

    def moved(result: RankedResult) -> float:
        return context.reading.beliefs.threshold_moved(result.domain, context.plan.query.agent)

    return with_contexts(shown, context.plan.understanding.type, neighbours, moved, resources.settings.context)
