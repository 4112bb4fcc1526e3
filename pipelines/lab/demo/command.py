"""The whole loop on a small real corpus: index, search, feedback through Kafka, learn, consolidate, measure.

    python -m jobs.demo --store DIR [--bootstrap HOST:PORT] [--modules N] [--questions N] [--json]

Indexes weft's own files and modules of the standard library. Docstrings are the questions, and are masked. Simulated
users ask half of the questions, one each, and react to the results. Quality is measured on the other half, before and
after. As in a study, what takes minutes stands for days of a hundred users each. Exit codes: 0 done, 1 with a reason, 2
usage.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from rich.progress import track

from lab.demo import report
from lab.demo.corpus import prepare, remove_previous, split
from lab.ground_truth import SyntheticQuestion, from_questions
from lab.settings import simulated_users
from lab.simulation.users import PAGE, paraphrase, react, refreshes, send_reactions, with_replies
from lab.stores import BackgroundUpdaters
from lab.study.run import scaled_to_days
from weft.app.indexing import plan_of
from weft.app.night import night_of
from weft.app.questions import improvement_of
from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.cli.commands import consolidate, reindex
from weft.cli.commands.learned import write_page
from weft.cli.console import jobs as _job
from weft.cli.console.options import MEASURED, CommonOptions, job_command
from weft.cli.console.terminal import stderr
from weft.consolidation.improvement import Improve, Improvement, QuestionSource
from weft.consolidation.night import Shadow
from weft.domain.ids import ContentHash, QueryId, SessionId, content_hash
from weft.domain.ranking import Query
from weft.evaluation.ground_truth import collect as ground_truth
from weft.evaluation.measures.metrics import PerQuery, measure
from weft.evaluation.measures.runs import Run
from weft.evaluation.queries.writer import QueryLog
from weft.feedback.events.producer import FeedbackProducer
from weft.feedback.run.updater import PartitionProgress
from weft.learning.parts import LearnedVersion
from weft.retrieval.searcher import Searcher
from weft.runtime.clock import system_clock
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.settings import Settings


@dataclass(frozen=True, slots=True)
class SystemRun:
    """What one system returned for the held-out questions, and how good that was."""

    run: Run
    measured: PerQuery

    @property
    def means(self) -> dict[str, float]:
        """Mean over questions by name of the measure."""
        return {name: fmean(values.values()) for name, values in self.measured.items()}


@job_command
def demo(
    options: CommonOptions,
    bootstrap: Annotated[
        str | None, typer.Option("--bootstrap", help="Broker, host:port; default an embedded one.")
    ] = None,
    modules: Annotated[int, typer.Option("--modules", min=1, help="Standard library modules to index.")] = 95,
    questions: Annotated[
        int, typer.Option("--questions", min=2, help="At most this many, half of them held out.")
    ] = 800,
    as_json: _job.AsJson = False,
) -> None:
    """Show the whole loop on real input."""
    begun = time.perf_counter()
    # A question's answer is one chunk, so chunks are what is ranked.
    settings = options.settings(MEASURED, "retrieval.unit=chunk")
    root = Path(settings.storage.root)
    remove_previous(root)
    report.step("Preparing the corpus: this repository, and the standard library less the docstrings that are asked")
    corpus = prepare(root / "demo", settings, modules=modules)
    lessons, held_out = split(corpus.questions, questions)
    report.say(f"{corpus.documents} files; {len(lessons)} questions to learn from, {len(held_out)} held out")
    report.step("Indexing: chunks, entities, embeddings, FAISS and Lucene, on Ray")
    indexed = reindex.run_visibly(settings, plan_of(settings, corpus.sources))
    report.say(f"{indexed.documents} documents, {indexed.chunks:,} chunks, {indexed.entities:,} entities")
    with ExitStack() as stack:
        address = bootstrap or stack.enter_context(EmbeddedBroker()).bootstrap
        streamed = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"bootstrap": address})})
        systems, learned = _learn(scaled_to_days(streamed, len(lessons)), lessons, held_out)
    judgements = from_questions([*lessons, *held_out], now=system_clock())
    ground_truth.keep(root, judgements, now=system_clock())
    report.step("Consolidating: calibrate, gate, publish, report in MLflow")
    night = consolidate.run_visibly(
        replace(night_of(settings), shadow=_replayed(systems), improve=_improved(systems, settings))
    )
    report.quality({name: held.measured for name, held in systems.items()}, settings.evaluation)
    seconds = time.perf_counter() - begun
    write_page(Catalog(root), settings.priors, page := root / "learned.html")
    report.next_steps(root, page, night, seconds)
    summary = {"indexed": asdict(indexed), "feedback": learned, "night": dict(night), "seconds": seconds}
    _job.emit(
        {**summary, "metrics": {name: held.means for name, held in systems.items()}, "held_out": len(held_out)},
        as_json=as_json,
    )


def _learn(
    settings: Settings, lessons: Sequence[SyntheticQuestion], held_out: Sequence[SyntheticQuestion]
) -> tuple[dict[str, SystemRun], Mapping[str, Any]]:
    systems = {}
    report.step("Asking the held-out questions before anything is learned")
    for name, changes in report.BASELINES.items():
        retrieval = settings.retrieval.model_copy(update=dict(changes))
        with opened(settings.model_copy(update={"retrieval": retrieval})) as searcher:
            systems[name] = _ask(searcher, held_out, settings, name)
    with (
        BackgroundUpdaters(settings) as updaters,
        opened(settings) as searcher,
        closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer,
        QueryLog(Path(settings.storage.root), settings.query_log) as log,
    ):
        systems[report.BEFORE] = _ask(searcher, held_out, settings, report.BEFORE)
        before, again = report.weights_of(searcher), Again(searcher, lessons, settings)
        again.ask("asked for the first time")
        report.step("Simulated users ask, read, open and judge; feedback travels through Kafka to the updaters")
        progress = teach(searcher, producer, log, lessons, caught_up=updaters.caught_up)
        report.weights(before, report.weights_of(searcher))
        systems[report.AFTER] = _ask(searcher, held_out, settings, report.AFTER)
        again.ask("asked again, by somebody else")
        again.ask("asked again in other words, by somebody else", reworded=True)
    report.again(again.right, again.count)
    return systems, report.record_counts(progress)


class Again:
    """Questions that users ask, asked by somebody else before and after."""

    _SAMPLE = 120  # enough to see shares of tenths, within seconds

    def __init__(self, searcher: Searcher, lessons: Sequence[SyntheticQuestion], settings: Settings) -> None:
        self._searcher, self._prior = searcher, settings.priors.near
        self._rng = random.Random(settings.evaluation.seed)  # noqa: S311  repeatable by its seed
        self._questions = self._rng.sample(list(lessons), min(self._SAMPLE, len(lessons)))
        self.right: dict[str, float] = {}

    @property
    def count(self) -> int:
        """How many questions there are."""
        return len(self._questions)

    def ask(self, name: str, *, reworded: bool = False) -> None:
        """Ask them all, and remember for how many the right answer is first."""
        texts = [each.text for each in self._questions]
        if reworded:
            texts = [paraphrase(text, self._prior, self._rng) for text in texts]
        queries = [Query(text=text, k=PAGE, agent="demo", principal="somebody else") for text in texts]
        answers = self._searcher.search_many(queries)
        first = [answer.results[0].content_hash if answer.results else None for answer in answers]
        hits = [shown == question.content_hash for shown, question in zip(first, self._questions, strict=True)]
        self.right[name] = fmean(hits)


def teach(
    searcher: Searcher,
    producer: FeedbackProducer,
    log: QueryLog,
    lessons: Sequence[SyntheticQuestion],
    *,
    caught_up: Callable[[], Sequence[PartitionProgress]],
) -> Sequence[PartitionProgress]:
    """Let every question be asked by a user of its own, in a session of its own; where the updaters are in the end.

    One user who asks them all within minutes says in a day what weft believes of nobody: beyond the allowance of a
    principal (LRN-3), nothing would be learned.
    """
    progress: Sequence[PartitionProgress] = ()
    users = simulated_users()
    edges = [0, *refreshes([len(lessons)])]
    for first, last in track(list(pairwise(edges)), "  asking", console=stderr, transient=True):
        queries = [
            replace(_query(lessons[at], PAGE), session_id=SessionId(f"demo-{at}"), principal=f"user-{at}")
            for at in range(first, last)
        ]
        for question, answer in zip(lessons[first:last], searcher.search_many(queries), strict=True):
            session, user = str(answer.query.session_id), answer.query.principal
            producer.session(session, "start", principal=user)
            producer.impression(answer)
            log.emit(answer)
            shown, right = [result.content_hash for result in answer.results], {question.content_hash}
            rng = random.Random(answer.query.query_id)  # noqa: S311  repeatable by the query
            send_reactions(producer, answer.query, with_replies(answer, react(shown, right, users, rng), right))
            producer.session(session, "complete", principal=user)
        producer.flush()
        progress = caught_up()
        searcher.refresh()
    return progress


def _ask(searcher: Searcher, questions: Sequence[SyntheticQuestion], settings: Settings, name: str) -> SystemRun:
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for question in track(questions, f"  {name}", console=stderr, transient=True):
        query = _query(question, settings.evaluation.depth)
        answer = searcher.search(query)
        run[query.query_id] = {str(result.content_hash): result.score for result in answer.results}
        qrels[query.query_id] = {question.content_hash: 1}
    return SystemRun(run, measure(run, qrels))


def _query(question: SyntheticQuestion, k: int) -> Query:
    return Query(text=question.text, query_id=QueryId(content_hash(question.text)[:32]), k=k, agent="demo")


def _replayed(systems: Mapping[str, SystemRun]) -> Shadow:
    """The rankings that the gate compares: asked already, under no evidence and under all of it."""

    def rankings(learned: LearnedVersion) -> list[list[ContentHash]]:
        return [[ContentHash(name) for name in ranked] for ranked in _under(learned, systems).run.values()]

    return rankings


def _improved(systems: Mapping[str, SystemRun], settings: Settings) -> Improve:
    def improvements(former: LearnedVersion, candidate: LearnedVersion) -> list[Improvement]:
        control, treatment = (_under(learned, systems).measured for learned in (former, candidate))
        source, rules = QuestionSource.JUDGED, settings.evaluation
        return [improvement_of(name, source, control[name], treatment[name], rules) for name in control]

    return improvements


def _under(learned: LearnedVersion, systems: Mapping[str, SystemRun]) -> SystemRun:
    return systems[report.BEFORE if learned.evidence.is_empty else report.AFTER]


main = partial(_job.run, demo)
"""Run the job on arguments."""
