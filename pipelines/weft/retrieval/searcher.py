"""The searcher: what is live, held open, and the pipeline over it."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Self

from weft.domain.errors import ForkedError, StoreError
from weft.domain.ids import SessionId
from weft.domain.ranking import Answer, Query, ScoredResults
from weft.domain.signatures import SigningKey
from weft.domain.understanding import QueryType, SessionMemory
from weft.embedding.ports import PairScorer, TermEncoder, TextEncoder
from weft.learning.edges import NO_EDGES, LearnedEdges
from weft.retrieval.answer.lessons import LessonRetriever
from weft.retrieval.channels.open import OpenedCache, open_channels
from weft.retrieval.pipeline import Pipeline
from weft.retrieval.query.named import NamedPlaces
from weft.retrieval.query.near import Encode, QuestionIndex
from weft.retrieval.ranking.final_score import Headings
from weft.retrieval.search import search
from weft.retrieval.settings import BudgetSettings, RetrievalSettings
from weft.retrieval.snapshot.asides import LinkLists
from weft.retrieval.snapshot.documents import read_facts
from weft.retrieval.snapshot.places import ContentLocator
from weft.retrieval.snapshot.ports import SessionMemories
from weft.retrieval.snapshot.relations import resolve_relations
from weft.retrieval.snapshot.snapshot import Snapshot, SnapshotSource
from weft.runtime.clock import Clock

log = logging.getLogger(__name__)

BELIEFS_MAX_AGE_S = 3600.0
"""After this beliefs are read again though nothing changed: evidence decays with time, by days."""
WARMING_MS = 60_000.0
"""What each channel may take for the search that opening makes: models and pages of indexes are loaded by it."""
WARMING_WORDS = 8
"""Of the first content, which that search asks for: about as many as a question has."""

_opened_in: list[int] = []  # the process that opened a searcher first; a child that was forked from it has it too


@dataclass(frozen=True, slots=True)
class _Held:
    snapshot: Snapshot
    pipeline: Pipeline
    token: Hashable
    looked_at: float
    read_at: float


class Searcher:
    """Answers queries from what is live; shared by threads.

    A request resolves what is live once and holds it to its end. What another process publishes is seen by the first
    request that comes `refresh_s` after the last look. If reading beliefs took longer than `LOOK_MS`, they are then
    read in the background; reading takes at most the share `LOOK_SHARE` of the time, unless that would leave a decision
    unseen for `FOLLOW_S`. Whoever asks after a pause, `PAUSE_S` after a look was due, waits for it for `WAIT_S`, and is
    then answered by what is held. What a session remembers is part of its query and of its answer, and `memories` keeps
    it in between for queries that name a session and bring none along. In a process that was forked from the one that
    opened it, all but `close` raises `ForkedError`.
    """

    LOOK_MS = 50.0  # of a search's own time: the goal for all of it is 60
    LOOK_SHARE = 0.25  # of the time: what comes in is seen after five times as long as reading takes, at the latest
    PAUSE_S = 1.0  # searches that come less often than this are each answered from what is live
    WAIT_S = 10.0  # opening a large generation takes seconds; a store that hangs answers no sooner for waiting longer
    FOLLOW_S = 60.0  # within which searches follow what a person decided (CON-9)

    def __init__(
        self,
        source: SnapshotSource,
        encoder: TextEncoder,
        settings: RetrievalSettings,
        *,
        clock: Clock,
        further: Sequence[TextEncoder] = (),
        terms: TermEncoder | None = None,
        pairs: PairScorer | None = None,
        openings: OpenedCache | None = None,
        memories: SessionMemories | None = None,
        key: SigningKey | None = None,
        lessons: LessonRetriever | None = None,
        encode_past: Encode | None = None,
    ) -> None:
        """Open what is live.

        Args:
            encode_past: Encodes past questions; None where the encoder itself does.
            lessons: What finds lessons beside results; None where answers have none (LES-8).
            key: Answers give out signed tokens by it; without one plain ones (FBK-13).
            further: More encoders, in the order of `embedding.further`; each a dense channel.
            terms: The sparse encoder; None where none is configured.
            pairs: A cross-encoder for the best candidates.
            openings: What others opened of the same generation, for whoever opens searchers one after the other.
            memories: What sessions remember; None where that is the caller's to carry.

        Raises:
            NothingPublishedError: No generation is live yet.
            CorruptionError: The live generation differs from its manifest, and so does every older one.
            ForkedError: The process that this one was forked from had opened a searcher.
        """
        require_unforked()
        self._source = source
        self._encoders = (encoder, *further)
        self._questions = QuestionIndex(encode_past or encoder.encode)
        self._terms = terms
        self._pairs = pairs
        self._settings = settings
        self._clock = clock
        self._openings = openings or OpenedCache()
        self._memories = memories
        self._key = key
        self._lessons = lessons
        self._lock = threading.Lock()
        self._closed = False
        self._release: Callable[[], None] | None = None
        self._threads = ThreadPoolExecutor(settings.channel_threads, thread_name_prefix="search")
        self._looking = ThreadPoolExecutor(1, thread_name_prefix="look")
        self._looked: Future[None] | None = None
        self._awaited: Future[None] | None = None  # a look that was due long before it began
        self._took_s = 0.0  # what reading beliefs took last
        self._held = self._take(None, source.token())
        _opened_in[:] = [os.getpid()]

    def search(self, query: Query) -> Answer:
        """Answer one query."""
        return self.search_many([query])[0]

    async def asearch(self, query: Query) -> Answer:
        """Answer one query in a thread, while the event loop goes on.

        Whoever is cancelled, as by a deadline, waits no longer; the search ends by itself, and others do not mind.
        """
        return await asyncio.to_thread(self.search, query)

    def search_many(self, queries: Sequence[Query]) -> list[Answer]:
        """Answer queries from one snapshot, sharing encoder and FAISS batches.

        Queries whose session is remembered are answered one after the other: each sees what those before it left.

        Raises:
            ValueError: A query's filter asks for what no document can have, such as a date that is none; the message
                names the query, and none is answered. `documents.is_time` says beforehand what is one.
            ForkedError: This process was forked from the one that opened the searcher.
        """
        pipeline, now = self._now()
        sessions = [None if self._memories is None else _session_of(query) for query in queries]
        alone = [query for query, session in zip(queries, sessions, strict=True) if session is None]
        answers = iter(pipeline.answer(alone, now=now) if alone else [])
        one = partial(_one, pipeline, now=now)
        answered = [
            next(answers)
            if session is None or self._memories is None
            else _remembering(self._memories, session, query, one)
            for query, session in zip(queries, sessions, strict=True)
        ]
        return answered if self._key is None else [with_tokens(answer, self._key) for answer in answered]

    def rank_many(self, queries: Sequence[Query]) -> list[ScoredResults]:
        """The results of `search_many`, to the bit, without explanations; no session remembers them."""
        pipeline, now = self._now()
        return pipeline.rank(queries, now=now)

    @property
    def snapshot(self) -> Snapshot:
        """What the next search would read."""
        return self._current(self._clock()).snapshot

    def refresh(self) -> None:
        """See now what is live, without waiting for `refresh_s`."""
        require_unforked()
        with self._lock:
            self._look(self._clock())

    def close(self) -> None:
        """Wait for running searches, and release the threads and what it was opened with; closed again, it stays so.

        In a forked process nothing happens: its threads stayed in the other one.
        """
        if os.getpid() != _opened_in[0]:
            return
        self._closed = True
        if (release := self._release) is not None:
            self._release = None
            release()  # closes this once more, and then what it was opened with
            return
        self._looking.shutdown()
        self._threads.shutdown()

    def releasing(self, release: Callable[[], None]) -> Self:
        """The same searcher, which when it is closed also undoes what it was opened with."""
        self._release = release
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def _now(self) -> tuple[Pipeline, float]:
        if self._closed:
            raise RuntimeError(
                "expected an open searcher, found one that was closed: open one per process, and close it at the end"
            )
        now = self._clock()
        # Ages count in whole steps, so that the same query soon asked again has the same answer, to the last bit.
        return self._current(now).pipeline, now - now % self._settings.time_step_s

    def _current(self, now: float) -> _Held:
        # One thread looks, the others go on with what is held, unless that is of before a pause: a look must not stall
        # them.
        require_unforked()
        apart_s = max(self._settings.refresh_s, min(self._took_s / self.LOOK_SHARE, self.FOLLOW_S / 2.0))
        behind_s = abs(now - self._held.looked_at)
        if behind_s >= apart_s and self._lock.acquire(blocking=False):
            paused = behind_s >= apart_s + self.PAUSE_S
            if paused or self._took_s * 1000.0 > self.LOOK_MS:
                self._look_beside(now, awaited=paused)
            else:
                self._look_and_release(now)
        if (look := self._awaited) is not None:
            self._await(look, None if behind_s >= self.FOLLOW_S else self.WAIT_S)
        return self._held

    def _look_beside(self, now: float, *, awaited: bool) -> None:
        """Look in another thread; what the look before failed with is raised here, as if it had been made here."""
        former, self._looked = self._looked, None
        try:
            if former is not None:
                former.result()
            self._looked = self._looking.submit(self._look_and_release, now)
            self._awaited = self._looked if awaited else None
        except BaseException:
            self._lock.release()
            raise

    def _await(self, look: Future[None], limit_s: float | None) -> None:
        """Wait for a look, at most so long, and nobody after that; what it failed with is raised here."""
        done = wait([look], limit_s).done
        if self._awaited is look:
            self._awaited = None
        if not done:
            return
        if self._looked is look:
            self._looked = None
        look.result()

    def _look_and_release(self, now: float) -> None:
        try:
            self._look(now)
        finally:
            self._lock.release()

    def _look(self, now: float) -> None:
        held = self._held
        try:
            token = self._source.token()
            aged = now - held.read_at >= BELIEFS_MAX_AGE_S
            changed = aged or token != held.token
            self._held = self._take(held, token) if changed else replace(held, looked_at=now)
        except (StoreError, OSError) as error:
            # What is held was verified when it was opened; it serves until something whole is live, and within reach,
            # again: a share may be away for a while.
            log.warning("keeping generation %s: %s", held.snapshot.generation_id, error)
            self._held = replace(held, looked_at=now)

    def _take(self, held: _Held | None, token: Hashable) -> _Held:
        now, begun = self._clock(), time.perf_counter()
        snapshot = self._source.take(None if held is None else held.snapshot)
        # Beliefs come anew every second; what is read out of a generation only with a generation, or with relations
        # that were declared or found in it, or counts of providers.
        if (
            held is not None
            and snapshot.generation is held.snapshot.generation
            and snapshot.relations == held.snapshot.relations
            and snapshot.learned.part(LearnedEdges) == held.snapshot.learned.part(LearnedEdges)
            and snapshot.counted == held.snapshot.counted
        ):
            self._took_s = time.perf_counter() - begun
            pipeline = replace(held.pipeline, snapshot=snapshot)
        else:
            pipeline = self._opened(snapshot)
        return _Held(snapshot, pipeline, token, now, now)

    def _opened(self, snapshot: Snapshot) -> Pipeline:
        generation, tuned = snapshot.generation, self._settings
        stated = snapshot.relations, snapshot.learned.part(LearnedEdges) or NO_EDGES
        relations = self._openings.of(generation, "relations", stated, lambda: resolve_relations(generation, *stated))
        encoder = self._encoders[0].name
        facts = self._openings.of(
            generation,
            "facts",
            (encoder, snapshot.counted),
            lambda: read_facts(generation, encoder, counted=snapshot.counted),
        )
        asking = tuned.understanding.type.cues[QueryType.SPECIFIC]
        names = self._openings.of(
            generation,
            "named places",
            asking,
            lambda: NamedPlaces(generation.chunks, facts.code_asides, asking),
        )
        channels = open_channels(
            generation, self._encoders, tuned, self._openings, relations, names=names, terms=self._terms
        )
        pipeline = Pipeline(
            snapshot=snapshot,
            channels=channels,
            facts=facts,
            settings=tuned,
            threads=self._threads,
            places=ContentLocator(generation.chunks),
            names=names,
            questions=self._questions,
            headings=Headings(generation.chunks),
            links=self._openings.of(generation, "links", None, lambda: LinkLists(generation.chunks)),
            pairs=self._pairs,
            relations=relations,
            lessons=self._lessons,
        )
        self._openings.of(generation, "warmed", None, lambda: _warm(pipeline))
        return pipeline


def require_unforked() -> None:
    """Before anything is searched or opened; raises `ForkedError` in a child of a process that opened a searcher."""
    if _opened_in and (here := os.getpid()) != _opened_in[0]:
        raise ForkedError(
            f"expected a process that was not forked from one with a searcher, found process {here}, forked from "
            f"{_opened_in[0]}, whose threads (Lucene's, PyTorch's) stayed there: open searchers after forking only "
            '(gunicorn: no preload, open in `post_fork`), or start processes by "spawn"'
        )


def _warm(pipeline: Pipeline) -> None:
    """Search once in all channels, so that no search misses its deadline for what is loaded on first use."""
    patient = BudgetSettings(searching=WARMING_MS, following=WARMING_MS)
    settings = pipeline.settings.model_copy(update={"budget_ms": patient})
    first = pipeline.texts_of(range(min(1, len(pipeline.snapshot.generation.chunks))))
    text = " ".join(" ".join(first).split()[:WARMING_WORDS])
    search(replace(pipeline, settings=settings), [Query(text=text)])


def _session_of(query: Query) -> SessionId | None:
    """The session whose memory a query lacks."""
    return SessionId(query.session_id) if query.session_id and query.memory is None else None


def _one(pipeline: Pipeline, query: Query, *, now: float) -> Answer:
    return pipeline.answer([query], now=now)[0]


def _remembering(
    memories: SessionMemories, session: SessionId, query: Query, answer: Callable[[Query], Answer]
) -> Answer:
    """The answer to a query of a session, which remembers it; without its memory where that cannot be had."""
    answered: list[Answer] = []

    def step(memory: SessionMemory) -> SessionMemory:
        answered.append(answer(replace(query, memory=memory)))
        return answered[0].memory or memory

    try:
        memories.update(session, step)
    except (StoreError, OSError) as error:
        log.warning("session %s does not remember query %s: %s", session, query.query_id, error)
    return answered[0] if answered else answer(query)


def with_tokens(answer: Answer, key: SigningKey) -> Answer:
    """An answer with what whoever asked may speak of it by."""
    tokens = key.tokens_of(answer.query)
    return replace(answer, proof=tokens.query, session_token=tokens.session)
