"""A process that searches: it answers jobs from a pipe, one after the other, from what is live (OPS-5).

The pipe carries MessagePack: nothing that is read from it runs.
"""

from __future__ import annotations

import gc
import logging
import pkgutil
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from enum import StrEnum
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from weft.app.searching.engines import alone, load_engines, searching, source_of
from weft.catalog.catalog import Catalog
from weft.domain.errors import StoreError, WeftError
from weft.domain.ids import ContentHash
from weft.domain.ranking import Answer, Query, RankedResult
from weft.embedding.ports import PairScorer, TextEncoder
from weft.embedding.remembered import RememberedQueries
from weft.evaluation.queries.writer import QueryLog
from weft.feedback.events.producer import FeedbackProducer
from weft.indexes.chunk_store import ChunkStore
from weft.retrieval.answer.trace import gap_line
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.places import ContentLocator, place_of
from weft.retrieval.snapshot.ports import Fleet
from weft.runtime.arrow import leave_pandas_out
from weft.runtime.logs import is_json, json_handler
from weft.runtime.process import PeriodicCollection, release_freed_memory, share_arenas, uncollected
from weft.runtime.storage.stored_answers import StoredAnswers
from weft.settings import Settings

log = logging.getLogger(__name__)

ARENAS = 2
"""Pools of memory of a search process: with one per thread it held 40 MB more, over 12,000 contents."""

_JOINED = "weft.service.shards:joined"

COLLECT_S = 10.0
"""Between collections of garbage, with which freed memory goes back; they wait for a moment without a job."""


class Form(StrEnum):
    """How an answer is sent."""

    PAGE = "page"  # what a page of results shows
    WHOLE = "whole"  # with what every score is made of
    PACKED = "packed"  # the value itself, for a process of the same version


class Search(msgspec.Struct, frozen=True, tag=True):
    """Queries to be answered from one snapshot, each in its form."""

    queries: Sequence[Query]
    forms: Sequence[Form]
    recorded: Sequence[bool]  # whether the query log and the topic are told of each


class Rerank(msgspec.Struct, frozen=True, tag=True):
    """Texts to be scored against a query."""

    query: str
    documents: Sequence[str]


class Locate(msgspec.Struct, frozen=True, tag=True):
    """A place that somebody names, such as "README.md#Start"."""

    name: str


class Read(msgspec.Struct, frozen=True, tag=True):
    """A content that somebody names by its hash."""

    content_hash: str


class SentAnswer(msgspec.Struct, frozen=True):
    """An answer as it is sent, and what is counted of it."""

    body: bytes
    outcome: str  # "answered", or "gap"
    stages_ms: Mapping[str, float]


class Searched(msgspec.Struct, frozen=True, tag=True):
    """What was found for each query."""

    answers: Sequence[SentAnswer]
    recalled: int = 0  # texts whose vectors were remembered
    computed: int = 0  # texts that were encoded


class Reranked(msgspec.Struct, frozen=True, tag=True):
    """How well each text answers the query, in [0, 1]."""

    scores: Sequence[float]


class Located(msgspec.Struct, frozen=True, tag=True):
    """The URI of a place."""

    uri: str


class ContentBody(msgspec.Struct, frozen=True, tag=True):
    """A content, and everywhere it stands, in JSON."""

    body: bytes


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A job that could not be done, and why."""

    kind: str  # the class of the error
    message: str


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The process can answer; said once, first of all."""

    generation: str


Job = Search | Rerank | Locate | Read
Reply = Searched | Reranked | Located | ContentBody | Failed | Ready

JOBS = msgspec.msgpack.Decoder(Job)
REPLIES = msgspec.msgpack.Decoder(Reply)
ENCODER = msgspec.msgpack.Encoder()
_json = msgspec.json.Encoder()


def page_of(answer: Answer) -> dict[str, Any]:
    """What a page of results shows: each result with its text and one sentence of why, without the derivation."""
    gap, advice = answer.gap, answer.hand_off
    return {
        "query": answer.query.text,
        "query_id": answer.query.query_id,
        "token": answer.token,
        **({"session_token": answer.session_token} if answer.session_token else {}),
        "generation": answer.generation,
        "learned": answer.learned,
        "gap": None if gap is None else gap_line(gap),
        "hand_off": None if advice is None else advice.due,
        "truncated": answer.truncated,
        "failed_channels": dict(answer.failed_channels),
        "failed_shards": dict(answer.failed_shards),
        "took_ms": round(sum(answer.timings_ms.values()), 1),
        "results": [_shown(result) for result in answer.results],
        "lessons": [{"id": each["id"], "content": each["content"]} for each in map(_lesson, answer.lessons)],
    }


def _lesson(chosen: Any) -> dict[str, Any]:
    lesson = chosen.match.believed.lesson
    return {"id": lesson.id, "content": lesson.content}


def _shown(result: RankedResult) -> dict[str, Any]:
    return {
        "rank": result.rank,
        "score": result.score,
        "probability": result.probability,
        "doubtful": result.doubtful,
        "why": result.why,
        "uri": result.uris[0],
        "uris": list(result.uris),
        "start_line": result.start_line,
        "end_line": result.end_line,
        "title": result.title,
        "heading_path": list(result.heading_path),
        "symbol": result.symbol,
        "kind": result.kind,
        "domain": result.domain.value,
        "content_hash": result.content_hash,
        "text": result.text,
        "asked": bool(result.asked),
        "past": None if result.past is None else msgspec.to_builtins(result.past),
        "relations": [each.says for each in result.relations],
        "context": None if result.context is None else result.context.to_dict(),
    }


def body_of(answer: Answer, form: Form) -> bytes:
    """An answer as it is sent."""
    if form is Form.PACKED:
        return ENCODER.encode(answer)
    return _json.encode(answer.to_dict() if form is Form.WHOLE else page_of(answer))


def content_of(chunks: ChunkStore, content_hash: str) -> dict[str, Any]:
    """A content, and everywhere it stands; `StoreError` where what is live holds none of that hash."""
    row = chunks.row_of(ContentHash(content_hash))
    if row is None:
        raise StoreError(f"expected the hash of a content that is live, found {content_hash!r}")
    (content,) = chunks.contents([row])
    places = [(each, each.label) for each in content.occurrences]
    return {
        "content_hash": content_hash,
        "text": content.text,
        "places": [
            {
                "uri": each.uri,
                "title": each.title,
                "domain": each.domain.value,
                "start_line": label.start_line,
                "end_line": label.end_line,
                "heading_path": list(label.heading_path),
                "symbol": label.symbol,
            }
            for each, label in places
        ],
    }


class SearchWorker:
    """Does jobs over a searcher, and afterwards notes what was shown."""

    def __init__(
        self,
        searcher: Searcher,
        encoder: TextEncoder,
        pairs: PairScorer | None,
        *,
        remembered: RememberedQueries,
        stored: StoredAnswers,
        query_log: QueryLog,
        producer: FeedbackProducer | None,
    ) -> None:
        self._searcher = searcher
        self._encoder = encoder
        self._pairs = pairs
        self._remembered = remembered
        self._stored = stored
        self._log = query_log
        self._producer = producer
        self._unnoted: list[Answer] = []

    @property
    def generation(self) -> str:
        """What is searched now."""
        return self._searcher.snapshot.generation_id

    def do(self, job: Job) -> Reply:
        """The reply to a job; what cannot be done is told."""
        try:
            if isinstance(job, Search):
                return self._search(job)
            if isinstance(job, Rerank):
                return Reranked(self._scores(job.query, job.documents))
            chunks = self._searcher.snapshot.generation.chunks
            if isinstance(job, Read):
                return ContentBody(_json.encode(content_of(chunks, job.content_hash)))
            return Located(place_of(job.name, chunks.uris(), ContentLocator(chunks)))
        except (WeftError, ValueError, OSError) as error:
            return Failed(type(error).__name__, str(error))
        except Exception as error:
            log.exception("a job failed: %s", type(job).__name__)
            return Failed(type(error).__name__, "the service's log says more")

    def note(self) -> None:
        """Write down and tell what was shown since the last time; nobody waits for it."""
        answers, self._unnoted = self._unnoted, []
        if not answers:
            return
        for answer in answers:
            self._log.emit(answer)
            if self._producer is not None:
                self._producer.emit(answer)
        try:
            self._stored.keep(answers)
        except StoreError as error:
            log.warning("%d answers are not kept for explanations: %s", len(answers), error)

    def _search(self, job: Search) -> Searched:
        before = self._remembered.recalled, self._remembered.computed
        answers = self._searcher.search_many(job.queries)
        self._unnoted += [answer for answer, noted in zip(answers, job.recorded, strict=True) if noted]
        return Searched(
            [
                SentAnswer(body_of(answer, form), "answered" if answer.gap is None else "gap", answer.timings_ms)
                for answer, form in zip(answers, job.forms, strict=True)
            ],
            recalled=self._remembered.recalled - before[0],
            computed=self._remembered.computed - before[1],
        )

    def _scores(self, query: str, documents: Sequence[str]) -> list[float]:
        """By the cross-encoder, where one is configured; else the cosine to the query, none below 0."""
        if self._pairs is not None:
            return self._pairs.score(query, documents)
        (wanted,) = self._encoder.encode([query])
        return [max(0.0, min(1.0, float(each))) for each in self._encoder.encode(documents) @ wanted]


def run(connection: Connection, settings: Settings, *, reports: bool, shards: int = 0) -> None:
    """Answer jobs until the other end of the pipe is closed."""
    for number in (signal.SIGINT, signal.SIGTERM):  # whoever began this process ends it, by the pipe
        signal.signal(number, signal.SIG_IGN)
    root = Path(settings.storage.root)
    share_arenas(ARENAS)
    leave_pandas_out()
    pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own keeps four times of what is used for later
    with ExitStack() as undo:
        if is_json():
            logging.basicConfig(level=logging.WARNING, handlers=[json_handler()])
        try:
            # Whoever searches alone does without Ray.
            fleet = pkgutil.resolve_name(_JOINED)(settings, shards) if shards else None
            worker = _opened(settings, root, undo, reports=reports, fleet=fleet)
        except (WeftError, OSError) as error:
            connection.send_bytes(ENCODER.encode(Failed(type(error).__name__, str(error))))
            return
        connection.send_bytes(ENCODER.encode(Ready(worker.generation)))
        garbage, opened = PeriodicCollection(every_s=COLLECT_S), ""
        while True:
            try:
                job = JOBS.decode(connection.recv_bytes())
                connection.send_bytes(ENCODER.encode(worker.do(job)))
            except (EOFError, OSError):
                return
            worker.note()
            # What is decoded once for a generation is decoded by now; what searches freed lies between what they keep.
            if garbage.collect_when_due(time.monotonic()) or worker.generation != opened:
                opened = worker.generation
                release_freed_memory()


def _opened(settings: Settings, root: Path, undo: ExitStack, *, reports: bool, fleet: Fleet | None) -> SearchWorker:
    producer = None
    if reports:
        producer = undo.enter_context(closing(FeedbackProducer.connect(settings.kafka, settings.feedback)))
    query_log = undo.enter_context(QueryLog(root, settings.query_log))
    stored = undo.enter_context(closing(StoredAnswers(root)))
    with uncollected():
        one = alone(settings)
        engines, memories = load_engines(one), Catalog(root).memories
        remembered = RememberedQueries(engines.encoders[0])
        if engines.terms is None:  # else one pass makes vectors and the weights of terms, and remembers the last itself
            engines = replace(engines, encoders=[remembered, *engines.encoders[1:]])
        source = source_of(one, precisions=engines.precisions, fleet=fleet)
        searcher = undo.enter_context(searching(one, engines, source, memories=memories))
    gc.freeze()
    return SearchWorker(
        searcher,
        engines.encoders[0],
        engines.pairs,
        remembered=remembered,
        stored=stored,
        query_log=query_log,
        producer=producer,
    )
