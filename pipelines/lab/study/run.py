"""A study: measure, let simulated users teach, and measure again (EVA-6)."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.progress import track

from lab.settings import SimulationSettings
from lab.simulation.study import averaged, only, row
from lab.simulation.users import (
    PAGE,
    SESSIONS_A_DAY,
    kind_of_user,
    of_days,
    question_schedule,
    react,
    refreshes,
    send_reactions,
    with_replies,
    without_newcomers,
)
from lab.stores import BackgroundUpdaters, isolated_store
from lab.study.bench import AGENT, Bench, baselines, measure_probabilities
from lab.study.report import FITTED, PRIOR, WITH_EFFECTS, StudyResult
from weft.app.collections import indexed
from weft.app.night import logged_of
from weft.app.searching.engines import source_of
from weft.catalog.catalog import Catalog
from weft.cli.console.terminal import stderr
from weft.cli.reports.query_log import collected
from weft.domain.errors import SourceError
from weft.domain.ids import QueryId, SessionId
from weft.domain.ranking import Answer, Query
from weft.evaluation.measures.beir import Dataset, JudgedQuery
from weft.evaluation.measures.measuring import as_query
from weft.evaluation.queries.writer import QueryLog
from weft.evaluation.replay.caching import CACHED_ENTRIES, CachingGeneration, remembered
from weft.feedback.events.producer import FeedbackProducer
from weft.learning.evidence import Evidence
from weft.learning.parts import LearnedVersion, parts_of
from weft.learning.pooling.fitted import FittedWeights
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.snapshot import Snapshot, SnapshotSource
from weft.runtime.clock import system_clock
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.settings import Settings


class CachingSource:
    """A source of snapshots whose generations remember, from one snapshot of a generation to the next."""

    def __init__(self, source: SnapshotSource, most: int = CACHED_ENTRIES) -> None:
        self._source = source
        self._most = most

    def token(self) -> Hashable:
        """A value that changes whenever the live generation, learned version or evidence does."""
        return self._source.token()

    def take(self, previous: Snapshot | None) -> Snapshot:
        """What is live now; a generation that `previous` already has open is not opened again."""
        snapshot = self._source.take(previous)
        held: Any = None if previous is None else previous.generation
        if isinstance(held, CachingGeneration) and held.caches(snapshot.generation):
            return replace(snapshot, generation=held)
        return remembered(snapshot, self._most)


def run(
    lessons: Dataset,
    held_out: Dataset,
    settings: Settings,
    users: SimulationSettings,
    marks: Sequence[int],
    foreign_queries: Sequence[Dataset] = (),
    *,
    least: float = 0.0,
    bare: bool = False,
    fit: bool = False,
    probabilities: bool = True,  # whether to look at what they are worth; not where it is bare
) -> StudyResult:
    """Measure, teach and measure again, in a store of its own that is gone afterwards."""
    stored = indexed(held_out, settings)
    if least > 0.0:
        lessons, held_out = (_reaching(least, each, stored) for each in (lessons, held_out))
    with _streamed(stored, marks) as streamed:
        bench = Bench(streamed, held_out)
        values, weight = ({}, None) if bare else baselines(bench, lessons)
        values[PRIOR] = bench.values(Evidence(), effects=False)
        taught = [_taught(streamed, users, lessons, bench, marks, deal=0, fit=fit)]
        for deal in range(1, users.deals):
            with _streamed(stored, marks) as anew:
                taught.append(_taught(anew, users, lessons, bench, marks, deal=deal, fit=fit))
        counted = [{count: learned.evidence for count, learned in each.items()} for each in taught]
        by_deal = {_named(count): [bench.values(each[count], effects=False) for each in counted] for count in marks}
        by_deal[_named(marks[-1]) + WITH_EFFECTS] = [bench.values(each[marks[-1]], effects=True) for each in counted]
        for count in marks if fit else ():
            nights = [each[count] for each in taught]
            by_deal[_named(count) + FITTED] = [
                bench.values(night.evidence, effects=False, fitted=night.part(FittedWeights)) for night in nights
            ]
        worth = [
            measure_probabilities(bench, lessons, each[marks[-1]], foreign_queries)
            for each in (counted if probabilities and not bare else [])
        ]
        weights = {PRIOR: bench.weights(Evidence())}
        weights |= {_named(count): averaged([bench.weights(each[count]) for each in counted]) for count in marks}
    values |= {name: averaged(of_deals) for name, of_deals in by_deal.items()}
    rows = [
        row(
            name,
            measured,
            settings.evaluation,
            against=values[PRIOR] if name in by_deal else None,
            weights=weights.get(name),
            deals=by_deal.get(name, ()),
        )
        for name, measured in values.items()
    ]
    return StudyResult(rows, values, weight, counted[0], worth)


def _reaching(least: float, dataset: Dataset, settings: Settings) -> Dataset:
    """The data set with those queries alone whose measure is at least that at the priors."""
    values = Bench(settings, dataset).values(Evidence(), effects=False)
    reaching = only(dataset, {query for query, value in values.items() if value >= least})
    if not reaching.queries:
        raise SourceError(
            f"{dataset.name} {dataset.split}: expected queries that reach {least} at the priors, found none"
        )
    return reaching


def scaled_to_days(settings: Settings, sessions: int) -> Settings:
    """The settings for sessions that take minutes and stand for days, of `SESSIONS_A_DAY` each.

    As much counts as of so many days, and everybody has a history. Beliefs change when searches are told to look, and
    not in between: repeatable.
    """
    days = sessions / SESSIONS_A_DAY
    retrieval = settings.retrieval.model_copy(update={"refresh_s": 1e9})
    limits = settings.feedback.limits.model_copy(update={"newcomers": settings.feedback.limits.principals})
    feedback = settings.feedback.model_copy(update={"limits": limits})
    priors = without_newcomers(of_days(settings.priors, days), limits.newcomers)
    values = {"retrieval": retrieval, "feedback": feedback, "priors": priors}
    return settings.model_copy(update=values)


def _named(sessions: int) -> str:
    return f"{sessions:,} sessions"


@contextmanager
def _streamed(stored: Settings, marks: Sequence[int]) -> Iterator[Settings]:
    """A store and a broker of its own for one deal of users, which are gone afterwards."""
    with isolated_store(stored) as own, EmbeddedBroker() as broker:
        kafka = own.kafka.model_copy(update={"bootstrap": broker.bootstrap})
        yield scaled_to_days(own.model_copy(update={"kafka": kafka}), marks[-1])


def _taught(
    settings: Settings,
    users: SimulationSettings,
    lessons: Dataset,
    bench: Bench,
    marks: Sequence[int],
    *,
    deal: int,
    fit: bool,
) -> dict[int, LearnedVersion]:
    """Let users ask what they know the answer of, through Kafka and the updaters; what was learned at every mark."""
    catalog = Catalog(Path(settings.storage.root))
    rng = random.Random(settings.evaluation.seed + deal)  # noqa: S311  a simulation, repeatable by its seed
    questions = question_schedule(lessons.queries, marks[-1], rng)
    root, learned, done, (first, *further) = Path(settings.storage.root), {}, 0, bench.encoders
    source = CachingSource(source_of(settings))
    with (
        BackgroundUpdaters(settings, local=True) as updaters,
        Searcher(source, first, settings.retrieval, clock=system_clock, further=further, terms=bench.terms) as searcher,
        closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer,
    ):
        for upto in track(refreshes(marks), "teaching", console=stderr, transient=True):
            batch = list(enumerate(questions[done:upto], start=done))
            shown_now = list(_shown(searcher, batch, settings))
            if fit:
                _log([answer for _, answer in shown_now], settings)
            for number, answer in shown_now:
                grades = lessons.qrels[questions[number].query_id]
                right = [
                    result.content_hash
                    for result in answer.results
                    if any(grades.get(bench.document_id(uri), 0) > 0 for uri in result.uris)
                ]
                producer.impression(answer)
                shown, kind = [result.content_hash for result in answer.results], kind_of_user(users, rng)
                reactions = react(shown, right, users, rng, kind=kind)
                send_reactions(producer, answer.query, with_replies(answer, reactions, right, kind=kind))
            producer.flush()
            updaters.caught_up()
            searcher.refresh()
            done = upto
            if upto in marks:
                evidence, logged = catalog.live.evidence(), None
                if fit:
                    collected(root, settings)
                    logged = logged_of(settings)
                learned[upto] = LearnedVersion(evidence, parts_of(bench.fitted(logged(), evidence) if logged else None))
    return learned


def _log(answers: Sequence[Answer], settings: Settings) -> None:
    """Write answers to the query log of the store, all of them."""
    every = settings.query_log.model_copy(update={"sample": 1.0})
    with QueryLog(Path(settings.storage.root), every, waiting=len(answers)) as log:
        for answer in answers:
            log.emit(answer)


def _shown(
    searcher: Searcher, batch: Sequence[tuple[int, JudgedQuery]], settings: Settings
) -> Iterator[tuple[int, Answer]]:
    """What each session of a batch is shown."""
    size = settings.retrieval.encode_batch
    for start in range(0, len(batch), size):
        part = batch[start : start + size]
        queries = [_question(number, query, settings) for number, query in part]
        yield from zip((number for number, _ in part), searcher.search_many(queries), strict=True)


def _question(number: int, query: JudgedQuery, settings: Settings) -> Query:
    return replace(
        as_query(query, settings.evaluation),
        query_id=QueryId(f"{number}-{query.query_id}"),
        k=PAGE,
        agent=AGENT,
        session_id=SessionId(f"study-{number}"),
        principal=f"user-{number}",
    )
