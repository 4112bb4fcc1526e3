"""From ranked candidates to answers, with all that explains them (RET-18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.domain.ranking import Answer, Channel, Placed, Placings, RankedResult
from pipelines.domain.sessions import SessionMemory
from pipelines.retrieval.answer.confidence import (
    asking,
    chance,
    doubtful,
    gap_in,
    propensities,
    rank_confidence,
    scored,
    uncalibrated,
)
from pipelines.retrieval.answer.explain import Verdict, explain_candidates, results
from pipelines.retrieval.channels.run import (
    Ranked,
)
from pipelines.retrieval.channels.second_pass import query_vector
from pipelines.retrieval.context import MOST, neighbours_in, with_contexts
from pipelines.retrieval.query.plan import Plan
from pipelines.retrieval.query.understanding import remembered
from pipelines.retrieval.ranking.table import Candidates, head
from pipelines.retrieval.rerank.diversity import Choice
from pipelines.retrieval.search import RankingContext, Resources, Stopwatch

SHOWN_REMEMBERED = 200
"""Results that a session's memory holds, those given last: ten pages of twenty."""


@dataclass(frozen=True, slots=True)
class RankedBatch:
    """What is shown for the queries of a batch.

    Attributes:
        choices: By place in the batch of each query that explores: among what it chose.
        failed: For each query what was left out, and why.
    """

    contexts: Sequence[RankingContext]
    shown: Candidates
    choices: Mapping[int, Choice]
    failed: Sequence[Mapping[str, str]]
    watch: Stopwatch


def placings(chosen: RankedBatch) -> list[Placings]:
    """The results alone, as `answers` would give them."""
    shown, lines_of = chosen.shown, dict(chosen.shown.queries)
    uris = (shown.uris(number) for number in shown.number.tolist())
    placed = [Placed(*each) for each in zip(shown.hashes, uris, shown.total.tolist(), strict=True)]
    return [tuple(placed[lines_of.get(at, slice(0))]) for at in range(len(chosen.contexts))]


def answers(resources: Resources, chosen: RankedBatch) -> list[Answer]:
    """Results of each query with contributions, probabilities and timings."""
    with chosen.watch.stage("assembly"):
        shown = _shown(resources, chosen.contexts, chosen.shown, chosen.choices)
    return [
        _answer(resources, context, results, failed, chosen.watch)
        for context, results, failed in zip(chosen.contexts, shown, chosen.failed, strict=True)
    ]


def _answer(
    resources: Resources,
    context: RankingContext,
    shown: tuple[RankedResult, ...],
    failed: Mapping[str, str],
    watch: Stopwatch,
) -> Answer:
    plan, reading = context.plan, context.reading
    return Answer(
        query=plan.query,
        results=shown,
        generation=resources.snapshot.generation_id,
        learned=reading.learned,
        fusion=resources.settings.fusion.value,
        truncated=plan.truncated,
        heads=head(context.hits, resources.settings.heads_kept, resources.snapshot.generation.contents),
        failed_channels=failed,
        timings_ms=watch.timings_ms,
        understanding=plan.understanding,
        memory=_remembered(resources, plan, context.ranked, shown),
        gap=gap_in(shown, reading.calibration),
        uncalibrated=uncalibrated(shown, reading.calibration),
    )


def _shown(
    resources: Resources, contexts: Sequence[RankingContext], chosen: Candidates, choices: Mapping[int, Choice]
) -> list[tuple[RankedResult, ...]]:
    """The chosen candidates of each query as results, with what explains them."""
    explained = explain_candidates(chosen, [context.weights for context in contexts])
    lines_of, shown, made_of = dict(chosen.queries), [], scored(chosen)
    for at, context in enumerate(contexts):
        lines = lines_of.get(at, slice(0))
        above_next = rank_confidence(made_of.of(lines), context.draws)
        verdicts = _verdicts(context, above_next, chosen.take(lines), choices.get(at))
        ranked = results(explained[lines], context.reading.beliefs, verdicts)
        asked = asking(ranked, context.plan.query.query_id, resources.settings.ask)
        shown.append(_with_contexts(resources, context, asked) if context.plan.query.context else asked)
    return shown


def _verdicts(
    context: RankingContext,
    above_next: Sequence[float | None],
    chosen: Candidates,
    choice: Choice | None,
) -> list[Verdict]:
    """The verdict on each candidate of one query that is shown."""
    calibration, shares = context.reading.calibration, [1.0] * len(chosen)
    if choice is not None and len(chosen):
        line_of = {number: line for line, number in enumerate(choice.contenders.number.tolist())}
        places = np.array([line_of[number] for number in chosen.number.tolist()], dtype=np.int64)
        shares = propensities(scored(choice.contenders), places, context.draws, choice.ranked)
    return [
        Verdict(match, chance(match, calibration), doubtful(match, calibration), above, share)
        for match, above, share in zip(context.matches(chosen), above_next, shares, strict=True)
    ]


def _with_contexts(
    resources: Resources, context: RankingContext, shown: Sequence[RankedResult]
) -> tuple[RankedResult, ...]:
    tuned, plan = resources.settings.context, context.plan
    neighbours = neighbours_in(resources.snapshot.generation, most=max(MOST.values()))

    def moved(result: RankedResult) -> float:
        return context.reading.beliefs.threshold_moved(result.domain, plan.query.agent)

    return with_contexts(shown, plan.understanding.type, neighbours, moved, tuned)


def _remembered(
    resources: Resources, plan: Plan, rankings: Mapping[Channel, Ranked], shown: Sequence[RankedResult]
) -> SessionMemory | None:
    if plan.query.memory is None:
        return None
    asked = remembered(query_vector(rankings), plan.query.memory, resources.settings.understanding.shift)
    return asked.given((result.content_hash for result in shown), limit=SHOWN_REMEMBERED)
