"""Measuring on a store's query log, and on the feedback about what is in it (EVA-3)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.app.searching.replay import StoreReplay
from weft.catalog.catalog import Catalog
from weft.consolidation.steps.gate import GateVerdict, judge_rankings
from weft.domain.errors import NothingPublishedError, SourceError
from weft.domain.ids import ContentHash, QueryId
from weft.domain.ranking import Answer, Query
from weft.evaluation.ground_truth import collect as ground_truth
from weft.evaluation.ground_truth.collect import Grades
from weft.evaluation.log.alarms import LOGGED_QUERIES, Alarm, AlarmInput, alarms
from weft.evaluation.log.questions import (
    PlaceFacts,
    answered_queries,
    explored,
    exploring,
    items_of,
    judged,
    mentioned,
    run_of,
    to_replay,
)
from weft.evaluation.measures.compare import UNJUDGED_DEPTH, RunComparison, compare_runs
from weft.evaluation.measures.memory import MemoryMeasures, memory_measures
from weft.evaluation.measures.metrics import Estimate, estimates, measure
from weft.evaluation.measures.off_policy import Value, of_rankings
from weft.evaluation.measures.runs import Run
from weft.evaluation.measures.significance import unjudged
from weft.evaluation.queries.reader import LoggedQuery, read_queries
from weft.indexes.generation import Generation
from weft.runtime.clock import SECONDS_PER_DAY, system_clock
from weft.settings import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Logged:
    """What a store's log holds, and what is known to be right."""

    queries: Sequence[LoggedQuery]
    grades: Grades
    root: Path


@dataclass(frozen=True, slots=True)
class LogReport:
    """What the log says of the searches in it."""

    queries: int
    judged: int  # how many these are
    measures: Mapping[str, Estimate]  # of queries with a judgement; empty where there is none
    unjudged: float
    p50_ms: float
    p95_ms: float
    memory: MemoryMeasures
    alarms: Sequence[Alarm]


def read(settings: Settings, *, days: float, judgements: Path | None, ask: int) -> Logged:
    """The log of the last days, and every judgement that holds now; new judgements are kept in the store."""
    now, root = system_clock(), Path(settings.storage.root)
    since = now - days * SECONDS_PER_DAY
    queries = read_queries(root, limit=LOGGED_QUERIES, since=since)
    if not queries:
        raise SourceError(f"{root}: expected logged queries of the last {days:g} days, found none: search first")
    if judgements is not None:
        ground_truth.keep(root, ground_truth.from_file(judgements, now=now), now=now)
    if ask:
        ground_truth.keep(root, _model_judgements(queries, settings, ask, now), now=now)
    all_judgements = [*ground_truth.from_feedback(queries), *ground_truth.stored_judgements(root)]
    return Logged(queries, ground_truth.grades_of(all_judgements, now=now), root)


def report(logged: Logged, settings: Settings) -> LogReport:
    """Measure what was shown."""
    rules, declared = settings.evaluation, settings.priors.declared
    qrels, run = judged(logged.queries, logged.grades), run_of(logged.queries)
    items = _items(logged)
    elapsed = [sum(stage["value"] for stage in query.facts["timings_ms"]) for query in logged.queries]
    p50, p95 = np.quantile(elapsed, [0.5, 0.95])
    return LogReport(
        queries=len(logged.queries),
        judged=len(qrels),
        measures=estimates(measure(run, qrels), rules) if qrels else {},
        unjudged=unjudged(run, qrels, UNJUDGED_DEPTH),
        p50_ms=float(p50),
        p95_ms=float(p95),
        memory=memory_measures(answered_queries(logged.queries, logged.grades), items, rules, declared),
        alarms=alarms(AlarmInput(logged.queries, items)),
    )


def ringing(settings: Settings) -> list[Alarm]:
    """The alarms that ring now, for whoever looks after the store every night."""
    root = Path(settings.storage.root)
    queries = read_queries(root, limit=LOGGED_QUERIES)
    if not queries:
        return []
    items = _items(Logged(queries, {}, root))
    return [alarm for alarm in alarms(AlarmInput(queries, items)) if alarm.ringing]


@dataclass(frozen=True, slots=True)
class LogComparison:
    """Two configurations on the queries that were really asked."""

    queries: int
    moved: GateVerdict  # what the gate says of how far the rankings moved
    judged: RunComparison | None  # on queries with a judgement; None where there are none
    # off-policy estimates of both from what was explored, by estimator; empty where nothing was
    values: Sequence[Mapping[str, Value]]


def compared(logged: Logged, control: Settings, treatment: Settings) -> LogComparison:
    """Ask the logged queries again under both configurations (EVA-7)."""
    rules = control.evaluation
    queries = to_replay(logged.queries, LOGGED_QUERIES)
    with closing(StoreReplay(control, times=2)) as replay:
        replayed = replay.answers_per_condition(
            [*queries, *exploring(logged.queries)], [(control, None), (treatment, None)]
        )
    answers = [{QueryId(answer.query.query_id): answer for answer in some} for some in replayed]
    before, after = (_as_run(some, queries) for some in answers)
    control_order, treatment_order = (
        [[ContentHash(name) for name in run[query.query_id]] for query in queries] for run in (before, after)
    )
    moved = judge_rankings(control_order, treatment_order, control.consolidation.shadow)
    asked = {query.query_id for query in queries}
    qrels = judged([query for query in logged.queries if query.query_id in asked], logged.grades)
    pairs = [explored(logged.queries, some) for some in answers]
    return LogComparison(
        queries=len(queries),
        moved=moved,
        judged=compare_runs(before, after, qrels, rules) if qrels else None,
        values=[of_rankings(some, settings=rules) for some in pairs if some],
    )


def _as_run(answers: Mapping[QueryId, Answer], queries: Sequence[Query]) -> Run:
    by_query = {query.query_id: answers[QueryId(query.query_id)].results for query in queries}
    return {
        query_id: {str(result.content_hash): -float(result.rank) for result in results}
        for query_id, results in by_query.items()
    }


def _model_judgements(queries: Sequence[LoggedQuery], settings: Settings, most: int, now: float) -> list[Any]:
    rules = settings.evaluation.ground_truth
    if not rules.endpoint:
        raise SourceError("expected evaluation.ground_truth.endpoint, the model that judges, found none: set it")
    stored = ground_truth.stored_judgements(Path(settings.storage.root))
    pairs_judged = {(one.text, one.content_hash) for one in stored if one.holds(now)}
    pairs = dict.fromkeys((query.text, result.content_hash) for query in queries for result in query.results)
    wanted = [pair for pair in pairs if pair not in pairs_judged][:most]
    judge = ground_truth.Judge(rules)
    with closing(Catalog(Path(settings.storage.root)).open_live()) as generation:
        judged_pairs = judge.judge(wanted, lambda content: _text(generation, content), now=now)
    if judge.failed:
        log.warning("%d requests brought no grade", judge.failed)
    return judged_pairs


def _text(generation: Generation, content: ContentHash) -> str | None:
    row = generation.chunks.row_of(content)
    return None if row is None else generation.chunks.contents([row])[0].text


def _items(logged: Logged) -> dict[str, Any]:
    """Facts about contents, as far as the live generation holds them."""
    with suppress(NothingPublishedError), closing(Catalog(logged.root).open_live()) as generation:
        chunks = generation.chunks
        documents = chunks.table("documents").select(["uri", "tier"]).to_pylist()
        tiers = {row["uri"]: row["tier"] for row in documents if row["tier"] is not None}

        def places(contents: Collection[ContentHash]) -> Iterable[tuple[ContentHash, Sequence[PlaceFacts]]]:
            rows = [row for content in contents if (row := chunks.row_of(content)) is not None]
            return ((content.content_hash, content.occurrences) for content in chunks.contents(rows))

        return dict(items_of(mentioned(logged.queries, logged.grades), places, tiers))
    return {}
