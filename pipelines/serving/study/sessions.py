"""Simulated users of a study: what they are shown, what they do about it, and what the updaters make of it (EVA-6)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.progress import track

from pipelines.catalog.catalog import Catalog
from pipelines.domain.ids import QueryId, SessionId
from pipelines.domain.ranking import Answer, Query
from pipelines.evaluation.measures.beir import Dataset, JudgedQuery
from pipelines.evaluation.measures.measuring import as_query
from pipelines.evaluation.replay.remembering import RememberingSource
from pipelines.evaluation.simulation.users import (
    PAGE,
    SESSIONS_A_DAY,
    dealt,
    kind_of_user,
    of_days,
    react,
    refreshes,
    tell,
    with_replies,
)
from pipelines.feedback.events.producer import FeedbackProducer
from pipelines.learning.evidence import Evidence
from pipelines.retrieval.searcher import Searcher
from pipelines.retrieval.snapshot.ports import QueryEncoder
from pipelines.runtime.clock import system_clock
from pipelines.serving.collections import document_id as document_id_of
from pipelines.serving.console.terminal import stderr
from pipelines.serving.searching.engines import source_of
from pipelines.serving.updaters import BackgroundUpdaters
from pipelines.settings import Settings

AGENT = "study"


def taught(
    settings: Settings,
    lessons: Dataset,
    encoders: Sequence[QueryEncoder],
    marks: Sequence[int],
    *,
    deal: int = 0,
) -> dict[int, Evidence]:
    """Let users ask what they know the answer of, through Kafka and the updaters; the evidence at every mark.

    Args:
        deal: Which draw of users: who asks what, and does what about it.
    """
    catalog = Catalog(Path(settings.storage.root))
    document_id = document_id_of(lessons)
    rng = random.Random(settings.evaluation.seed + deal)  # noqa: S311  a simulation, repeatable by its seed
    questions = dealt(lessons.queries, marks[-1], rng)
    evidence, done, (first, *further) = {}, 0, encoders
    with (
        BackgroundUpdaters(settings, local=True) as updaters,
        Searcher(
            RememberingSource(source_of(settings)),
            first,
            settings.retrieval,
            clock=system_clock,
            further=further,
        ) as searcher,
        closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer,
    ):
        for upto in track(refreshes(marks), "teaching", console=stderr, transient=True):
            batch = list(enumerate(questions[done:upto], start=done))
            for number, answer in _shown(searcher, batch, settings):
                grades = lessons.qrels[questions[number].query_id]
                right = [
                    result.content_hash
                    for result in answer.results
                    if any(grades.get(document_id(uri), 0) > 0 for uri in result.uris)
                ]
                _react(producer, answer, right, settings, rng)
            producer.flush()
            updaters.caught_up()
            searcher.refresh()
            done = upto
            if upto in marks:
                evidence[upto] = catalog.live_evidence()
    return evidence


def scaled_to_days(settings: Settings, sessions: int) -> Settings:
    """The settings for sessions that take minutes and stand for days, of `SESSIONS_A_DAY` each.

    As much counts as of so many days. Beliefs change when searches are told to look, and not in between: repeatable.
    """
    days = sessions / SESSIONS_A_DAY
    retrieval = settings.retrieval.model_copy(update={"refresh_s": 1e9})
    return settings.model_copy(update={"retrieval": retrieval, "priors": of_days(settings.priors, days)})


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


def _react(
    producer: FeedbackProducer, answer: Answer, right: Sequence[Any], settings: Settings, rng: random.Random
) -> None:
    """One user's session: what was shown, and what was done about it."""
    query, rules = answer.query, settings.simulation
    producer.impression(answer)
    shown = [result.content_hash for result in answer.results]
    kind = kind_of_user(rules, rng)
    reactions = react(shown, right, rules, rng, kind=kind)
    tell(producer, query, with_replies(answer, reactions, right, rules, kind=kind))
