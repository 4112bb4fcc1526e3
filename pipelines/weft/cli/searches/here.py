"""Searching and telling without a service: a searcher of this process, its query log, and a producer.

It imports indexes, models' ports and settings: who asks a running service does without.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weft.app.searching.engines import opened
from weft.app.searching.replay import answering
from weft.cli.console.options import CommonOptions
from weft.cli.console.terminal import warn
from weft.cli.searches.requests import new_id, warn_of_depth
from weft.domain.errors import SourceError
from weft.domain.ids import QueryId
from weft.domain.ranking import Answer, Query, RankedResult
from weft.evaluation.measures.beir import UniqueLines
from weft.evaluation.queries.writer import QueryLog
from weft.feedback.settings import WITHOUT_KEY
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.places import ContentLocator, place_of
from weft.runtime.arrow import leave_pandas_out
from weft.runtime.storage.files import text_lines
from weft.settings import Settings

if TYPE_CHECKING:
    from weft.feedback.events.producer import FeedbackProducer


def searched(settings: Settings, requests: Sequence[Query]) -> Sequence[Answer]:
    """Answers, noted in the query log."""
    warn_of_depth(requests, settings.retrieval.depth)
    most = max(settings.retrieval.understanding.router.limits.values())
    leave_pandas_out()
    wanted = [replace(each, k=most) if each.adaptive else each for each in requests]
    with (
        # A session's queries follow one another, each in the light of those before it: that is done here.
        answering(settings, 1 if any(each.session_id for each in wanted) else len(wanted)) as searcher,
        QueryLog(Path(settings.storage.root), settings.query_log) as log,
    ):
        answers = searcher.search_many(wanted)
        for answer in answers:
            log.emit(answer)
    if unlogged := log.dropped + log.lost:
        warn(f"{unlogged} of {len(answers)} answers are not in the query log")
    return answers


def publish(settings: Settings, answers: Sequence[Answer]) -> None:
    """Say to the configured topic what was shown; exit code 1 where it could not be told all of it."""
    with closing(connected(settings)) as producer:
        tell(answers, producer)
        producer.flush()
        if producer.lost:
            raise typer.Exit(1)


def tell(answers: Sequence[Answer], producer: FeedbackProducer) -> None:
    """Say to the topic what was shown; what it cannot be told is counted on stderr."""
    for answer in answers:
        producer.emit(answer)
    if producer.lost:
        warn(f"{producer.lost} of {len(answers)} answers are not in the feedback topic")


def connected(settings: Settings) -> FeedbackProducer:
    """A producer, and a word where anybody could speak for anybody."""
    # Kafka's clients take .2 s to import: only who names a broker waits for them.
    from weft.feedback.events.producer import FeedbackProducer  # noqa: PLC0415

    producer = FeedbackProducer.connect_now(settings.kafka, settings.feedback)
    if settings.feedback.key is None:
        warn(WITHOUT_KEY)
    return producer


@dataclass
class AskedSearcher:
    """A searcher of this process, its query log, and a producer where a broker is named."""

    searcher: Searcher
    producer: FeedbackProducer | None
    log: QueryLog

    @property
    def takes_feedback(self) -> bool:
        """Whether anybody is told."""
        return self.producer is not None

    def search(self, query: Query, *, record: bool) -> Answer:
        """The answer; recorded where it is shown."""
        answer = self.searcher.search(query)
        if record:
            self.log.emit(answer)
            if self.producer is not None:
                self.producer.emit(answer)
        return answer

    def follow(self) -> None:
        """See what was learned meanwhile."""
        self.searcher.refresh()

    def select(self, answer: Answer, result: RankedResult) -> None:
        """Say that a result was opened."""
        with self._acknowledged() as producer:
            producer.selection(answer.query, result.content_hash, result.rank)

    def judge(self, answer: Answer, result: RankedResult, verdict: float) -> None:
        """Say what a result is worth."""
        with self._acknowledged() as producer:
            producer.explicit(answer.query, verdict, content_hash=result.content_hash, asked=bool(result.asked))

    def correct(self, answer: Answer, name: str, *, right: bool) -> str:
        """Say that a place that is named is right for a question, or wrong; its URI."""
        chunks = self.searcher.snapshot.generation.chunks
        uri = place_of(name, chunks.uris(), ContentLocator(chunks))
        with self._acknowledged() as producer:
            producer.correction(answer.query, right=right, uri=uri)
        return uri

    def finish(self) -> None:
        """Wait until all of it is acknowledged."""
        if self.producer is not None:
            self.producer.flush()

    @contextmanager
    def _acknowledged(self) -> Iterator[FeedbackProducer]:
        assert self.producer is not None  # whoever says something has looked
        yield self.producer
        self.producer.flush()


def opened_searcher(options: CommonOptions, bootstrap: str | None, open_: ExitStack) -> AskedSearcher:
    """What answers without a service, and tells a broker where one is named."""
    settings = options.settings(bootstrap=bootstrap)
    leave_pandas_out()
    searcher = open_.enter_context(opened(settings))
    producer = None if bootstrap is None else open_.enter_context(closing(connected(settings)))
    log = open_.enter_context(QueryLog(Path(settings.storage.root), settings.query_log))
    return AskedSearcher(searcher, producer, log)


def corrected(
    options: CommonOptions, query: Query, words: Sequence[tuple[str, bool]], bootstrap: str | None
) -> tuple[list[tuple[str, bool]], list[str]]:
    """What is said to the broker itself: of which places, and by which events."""
    from weft.app.producer import acknowledged_producer  # noqa: PLC0415  Kafka, as above

    settings, catalog = options.opened(bootstrap=bootstrap)
    with closing(catalog.open_live()) as generation:
        uris, places = generation.chunks.uris(), ContentLocator(generation.chunks)
        named = [(place_of(name, uris, places), is_right) for name, is_right in words]
    with acknowledged_producer(settings) as producer:
        return named, [producer.correction(query, right=is_right, uri=uri) for uri, is_right in named]


def queries_of(path: Path) -> tuple[list[tuple[QueryId, str]], list[str]]:
    """The queries of a file, and what is wrong with the lines that are none, each told at once."""
    wanted: list[tuple[QueryId, str]] = []
    refused: list[str] = []
    for each in _read(path):
        if isinstance(each, SourceError):
            refused.append(str(each))
            warn(refused[-1])
        else:
            wanted.append(each)
    if refused and not wanted:
        raise SourceError(f"expected queries in {path}, found none in any of its {len(refused)} lines: mend them")
    return wanted, refused


def _read(path: Path) -> Iterator[tuple[QueryId, str] | SourceError]:
    if not path.is_file():
        raise SourceError(f"expected a file of queries, found none at {path}")
    holds_records = path.suffix.lower() == ".jsonl"
    once = UniqueLines("query")
    for number, line in text_lines(path):
        if holds_records and line.lstrip().startswith("{"):
            yield _record(line, f"{path}:{number}", once)
        elif line.strip():
            yield new_id(), line.strip()


def _record(line: str, place: str, once: UniqueLines) -> tuple[QueryId, str] | SourceError:
    try:
        record = json.loads(line)
        named, text = record["_id"], record["text"]
    except (ValueError, KeyError, RecursionError) as error:
        return SourceError(f"{place}: expected a JSON object with _id and text, found: {error!r}")
    if not isinstance(text, str) or type(named) not in {str, int} or not text.strip() or not str(named).strip():
        return SourceError(f"{place}: expected texts for _id and text, found {named!r} and {text!r}")
    try:
        once.note(place, str(named))
    except SourceError as error:
        return error
    return QueryId(str(named)), text
