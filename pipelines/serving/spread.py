"""Searches spread over processes that share no lock: each holds a searcher of its own over the same store (RET-20).

In one process half of what a batch takes is done by one thread at a time. A process takes seconds to start, so that
this pays for thousands of queries (`retrieval.spread`). All batches of one call are answered from one snapshot (ARC-2):
the caller looks up what is live, once, and hands it over in values. So answers are, to the bit, those of one process.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from types import TracebackType
from typing import Any, TypeAlias

import msgspec

from pipelines.domain.ids import GenerationId
from pipelines.domain.ranking import Answer, Query
from pipelines.retrieval.live import CatalogSource, Pin
from pipelines.retrieval.searcher import Searcher
from pipelines.retrieval.snapshot import OneSnapshot, Snapshot
from pipelines.runtime.actors import ActorPool, Shared
from pipelines.runtime.clock import Clock, system_clock
from pipelines.runtime.cluster import connect
from pipelines.runtime.garbage import uncollected
from pipelines.runtime.stages import cluster_cpus
from pipelines.serving.engines import Engines, LoadEngines, load_engines, searching, source_of
from pipelines.settings import Settings

Packed: TypeAlias = bytes | list[Answer]
"""Answers as they are sent between processes."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Answer])


@dataclass(frozen=True, slots=True)
class View:
    """What queries are asked of, in values alone: everything that answers depend on besides the queries."""

    settings: Settings
    pin: Pin


class SearchProcess:
    """One process of a pool: a searcher over the view that it was asked of last, computing in one thread at a time."""

    def __init__(self, load: LoadEngines) -> None:
        self._load = load
        self._key = ""
        self._held: _Held | None = None

    def open(self, view: Shared[View]) -> GenerationId:
        """Get ready to answer; the generation that answers will come from."""
        return self._of(view).searcher.snapshot.generation_id

    def answer(self, view: Shared[View], queries: Sequence[Query]) -> Packed:
        """Answers to queries, in their order."""
        pack = packed(self._of(view).searcher.search_many(queries))
        gc.collect()
        return pack

    def _of(self, view: Shared[View]) -> _Held:
        if self._held is None or self._key != view.key:
            self._key = ""  # of no view, as long as this one cannot be opened: models and generation stay nevertheless
            self._held = _turned(self._held, view.get(), self._load)
            self._key = view.key
        return self._held


class SearcherPool:
    """Answers batches of queries as a `Searcher` does; shared by threads, which take turns.

    Nothing is started before the first query. A process that dies is replaced, and its batch asked again.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        processes: int = 0,
        load: LoadEngines = load_engines,
        clock: Clock = system_clock,
    ) -> None:
        """Describe the pool.

        Args:
            processes: How many answer side by side, at most as many as the cluster has CPUs; 0 takes that many.
            load: Loads the models, in each process; a function that other processes can import.
        """
        self._settings = settings
        self._processes = processes
        self._load = load
        self._clock = clock
        self._source = source_of(settings, clock)
        self._actors: ActorPool | None = None
        self._live: tuple[Hashable, View] | None = None
        self._shared: tuple[View, Shared[View]] | None = None
        self._lock = threading.Lock()

    def search_many(self, queries: Sequence[Query], view: View | None = None) -> list[Answer]:
        """Answer queries from one snapshot, in their order.

        Args:
            view: What to ask them of; what is live now under the pool's settings where it is None.

        Raises:
            NothingPublishedError: No generation is live.
            StoreError: The generation was removed before every process had opened it: ask again.
            WeftError: Processes died over one batch again and again.
        """
        with self._lock:
            view = view or self._view()
            actors, shared = self._started(), self._handed_over(view)
            batches = dealt(queries, self._size, self._settings.retrieval.spread.batch)
            packs = actors.map("answer", [(shared, batch) for batch in batches])
            return [answer for pack in packs for answer in unpacked(pack)]

    def open(self) -> list[GenerationId]:
        """Start all processes and open what is live in each; which generation that is."""
        with self._lock:
            view = self._view()
            actors, shared = self._started(), self._handed_over(view)
            opened: list[GenerationId] = actors.everywhere("open", shared)
            return opened

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            if self._actors is not None:
                self._actors.close()
                self._actors = None

    def __enter__(self) -> SearcherPool:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def _view(self) -> View:
        """What is live now; the same view as before where it would give the same answers."""
        # The token first: what comes in between is looked at again by the next call.
        rules, token, now = self._settings.retrieval, self._source.token(), self._clock()
        token = (token, now // rules.time_step_s, now // rules.beliefs_max_age_s)
        if self._live is None or self._live[0] != token:
            self._live = (token, View(self._settings, self._source.pin()))
        return self._live[1]

    def _handed_over(self, view: View) -> Shared[View]:
        if self._shared is None or self._shared[0] is not view:
            self._shared = (view, Shared(view))
        return self._shared[1]

    @property
    def _size(self) -> int:
        cpus = cluster_cpus()
        return min(self._processes or cpus, cpus)

    def _started(self) -> ActorPool:
        connect(self._settings.cluster)  # before anything else of Ray: what joins by itself takes Java's signals away
        if self._actors is None:
            deaths = self._settings.retrieval.spread.deaths
            self._actors = ActorPool(
                SearchProcess, self._load, size=self._size, cpus=1, deaths=deaths, name="a search process"
            )
        return self._actors


def dealt(queries: Sequence[Query], processes: int, most: int) -> list[Sequence[Query]]:
    """Queries in batches of equal size, at most `most` each, so that all processes are done at about the same time.

    Examples:
        >>> [len(batch) for batch in dealt(range(200), 2, 64)]
        [50, 50, 50, 50]
        >>> dealt(range(3), 8, 64)
        [range(0, 1), range(1, 2), range(2, 3)]
    """
    count = min(len(queries), processes * ceil(len(queries) / (processes * most)))
    cuts = [len(queries) * at // count for at in range(count + 1)] if count else [0]
    return [queries[start:end] for start, end in pairwise(cuts)]


def packed(answers: list[Answer]) -> Packed:
    """Answers as they are sent: MessagePack takes less than half of the time of a pickle."""
    try:
        return _ENCODER.encode(answers)
    except UnicodeEncodeError:  # half of a surrogate pair in a query: no UTF-8 says that, a pickle does
        return answers


def unpacked(pack: Packed) -> list[Answer]:
    """The answers that were sent.

    Examples:
        >>> unpacked(packed([]))
        []
    """
    if isinstance(pack, list):
        return pack
    with uncollected():
        return _DECODER.decode(pack)


@dataclass(frozen=True, slots=True)
class _Held:
    """What a process has open: models and generation stay from one view to the next where they can."""

    ground: tuple[Any, ...]
    engines: Engines
    source: CatalogSource
    snapshot: Snapshot
    searcher: Searcher
    undo: ExitStack


def _turned(held: _Held | None, view: View, load: LoadEngines) -> _Held:
    """A searcher over another view."""
    settings = _alone(view.settings)
    ground = _ground(settings)
    if held is not None and held.ground == ground:
        engines, source, previous = held.engines, held.source, held.snapshot
    else:
        engines, source, previous = load(settings), source_of(settings), None
    snapshot = source.at(view.pin, previous)
    if held is not None:
        held.undo.close()
    with ExitStack() as undo:
        searcher = undo.enter_context(searching(settings, engines, OneSnapshot(snapshot), clock=lambda: view.pin.at))
        gc.disable()  # no answer outlives its batch: garbage is looked for between batches alone
        return _Held(ground, engines, source, snapshot, searcher, undo.pop_all())


def _alone(settings: Settings) -> Settings:
    """The settings for one of many processes: side by side are the processes, not threads of them."""
    one = {"threads": 1}
    rerank, embedding = settings.retrieval.rerank, settings.embedding
    pairs = rerank.cross_encoder.model_copy(update=one)
    threads = dict.fromkeys(("encode_threads", "lexical_threads", "product_threads", "channel_threads"), 1)
    return settings.model_copy(
        update={
            "embedding": embedding.model_copy(
                update={**one, "further": tuple({**each, **one} for each in embedding.further)}
            ),
            "retrieval": settings.retrieval.model_copy(
                update={**threads, "rerank": rerank.model_copy(update={"cross_encoder": pairs})}
            ),
        }
    )


def _ground(settings: Settings) -> tuple[Any, ...]:
    """What decides over models and store."""
    tuned = settings.retrieval
    return (settings.storage, settings.priors, settings.embedding, tuned.rerank.cross_encoder, tuned.sessions_held)
