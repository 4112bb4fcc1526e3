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
from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import TypeAlias, TypeVar

import msgspec

from weft.app.searching.engines import LoadEngines, alone, load_engines, source_of
from weft.app.searching.views import OpenViews, View
from weft.domain.ids import GenerationId
from weft.domain.ranking import Answer, Query, ScoredResults
from weft.retrieval.searcher import BELIEFS_MAX_AGE_S, Searcher
from weft.runtime.clock import system_clock
from weft.runtime.process import uncollected
from weft.runtime.ray.actors import ActorPool, Shared
from weft.runtime.ray.cluster import connect
from weft.runtime.ray.stages import cluster_cpus
from weft.settings import Settings

DEATHS = 2
"""Processes that may die over one batch before the search is given up: one may be killed for what others did."""

T = TypeVar("T")

Packed: TypeAlias = bytes | list[Answer] | list[ScoredResults]
"""Answers, or rankings, as they are sent between processes."""

_ENCODER = msgspec.msgpack.Encoder()
ANSWERS = msgspec.msgpack.Decoder(list[Answer])
RANKINGS = msgspec.msgpack.Decoder(list[ScoredResults])
"""What reads either of them."""


class SearchProcess:
    """One process of a pool: searchers over the views that it was asked of last, computing in one thread at a time."""

    def __init__(self, load: LoadEngines) -> None:
        self._views = OpenViews(load)
        self._searchers: dict[str, Searcher] = {}
        self._undo = ExitStack()

    def open(self, view: Shared[View]) -> GenerationId:
        """Get ready to answer; the generation that answers will come from."""
        (searcher,) = self._over([view])
        return searcher.snapshot.generation_id

    def answer(self, views: Sequence[Shared[View]], queries: Sequence[Query]) -> list[Packed]:
        """Answers to queries, in their order, under each view."""
        packs = [packed(searcher.search_many(queries)) for searcher in self._over(views)]
        gc.collect()
        return packs

    def rank(self, views: Sequence[Shared[View]], queries: Sequence[Query]) -> list[Packed]:
        """The results of the same answers, without their explanations."""
        packs = [packed(searcher.rank_many(queries)) for searcher in self._over(views)]
        gc.collect()
        return packs

    def _over(self, views: Sequence[Shared[View]]) -> list[Searcher]:
        if not {view.key for view in views} <= self._searchers.keys():
            self._searchers.clear()  # over no view, as long as these cannot be opened
            self._undo.close()
            with ExitStack() as undo:
                single = [replace(each, settings=alone(each.settings)) for each in (view.get() for view in views)]
                opened = undo.enter_context(self._views.opened(single))
                gc.disable()  # no answer outlives its batch: garbage is looked for between batches alone
                self._undo = undo.pop_all()
            self._searchers = {view.key: searcher for view, searcher in zip(views, opened, strict=True)}
        return [self._searchers[view.key] for view in views]


class SearcherPool:
    """Answers batches of queries as a `Searcher` does; shared by threads, which take turns."""

    def __init__(self, settings: Settings, *, processes: int, load: LoadEngines = load_engines) -> None:
        """Describe the pool."""
        self._settings = settings
        self._processes = processes
        self._load = load
        self._source = source_of(settings)
        self._actors: ActorPool | None = None
        self._live: tuple[Hashable, View] | None = None
        self._shared: list[tuple[View, Shared[View]]] = []
        self._lock = threading.Lock()

    def search_many(self, queries: Sequence[Query]) -> list[Answer]:
        """Answer queries from one snapshot of what is live now, in their order."""
        with self._lock:
            (answers,) = self._searched("answer", ANSWERS, queries, [self._view()])
            return answers

    def search_each(self, queries: Sequence[Query], views: Sequence[View]) -> list[list[Answer]]:
        """Answer queries under each of several views; whoever answers a batch under one of them does so under all."""
        with self._lock:
            return self._searched("answer", ANSWERS, queries, views)

    def rank_each(self, queries: Sequence[Query], views: Sequence[View]) -> list[list[ScoredResults]]:
        """The results of `search_each`, to the bit, without what is told of them; raises as that does."""
        with self._lock:
            return self._searched("rank", RANKINGS, queries, views)

    def open(self) -> list[GenerationId]:
        """Start all processes and open what is live in each; which generation that is."""
        with self._lock:
            view = self._view()
            actors, (shared,) = self._started(), self._handed_over([view])
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def _view(self) -> View:
        """What is live now; the same view as before where it would give the same answers."""
        # The token first: what comes in between is looked at again by the next call.
        rules, token, now = self._settings.retrieval, self._source.token(), system_clock()
        token = (token, now // rules.time_step_s, now // BELIEFS_MAX_AGE_S)
        if self._live is None or self._live[0] != token:
            self._live = (token, View(self._settings, self._source.pin()))
        return self._live[1]

    def _searched(
        self, method: str, decoder: msgspec.msgpack.Decoder[list[T]], queries: Sequence[Query], views: Sequence[View]
    ) -> list[list[T]]:
        actors, shared = self._started(), self._handed_over(views)
        batches = balanced_batches(queries, self._size(), self._settings.retrieval.encode_batch)
        answers: list[list[T]] = [[] for _ in views]
        for packs in actors.map(method, [(shared, batch) for batch in batches]):
            for of_view, pack in zip(answers, packs, strict=True):
                of_view.extend(unpacked(pack, decoder))
        return answers

    def _handed_over(self, views: Sequence[View]) -> list[Shared[View]]:
        existing = {id(view): shared for view, shared in self._shared}
        self._shared = [(view, existing.get(id(view)) or Shared(view)) for view in views]
        return [shared for _, shared in self._shared]

    def _size(self) -> int:
        return min(self._processes, cluster_cpus())

    def _started(self) -> ActorPool:
        connect(self._settings.cluster)  # before anything else of Ray: what joins by itself takes Java's signals away
        if self._actors is None:
            self._actors = ActorPool(
                SearchProcess, self._load, size=self._size(), cpus=1, deaths=DEATHS, name="a search process"
            )
        return self._actors


def balanced_batches(queries: Sequence[Query], processes: int, most: int) -> list[Sequence[Query]]:
    """Queries in batches of equal size, at most `most` each, so that all processes are done at about the same time."""
    count = min(len(queries), processes * ceil(len(queries) / (processes * most)))
    cuts = [len(queries) * at // count for at in range(count + 1)] if count else [0]
    return [queries[start:end] for start, end in pairwise(cuts)]


def packed(answers: list[Answer] | list[ScoredResults]) -> Packed:
    """Answers or rankings as they are sent: MessagePack takes less than half of the time of a pickle."""
    try:
        return _ENCODER.encode(answers)
    except UnicodeEncodeError:  # half of a surrogate pair in a query: no UTF-8 says that, a pickle does
        return answers


def unpacked(pack: bytes | list[T], decoder: msgspec.msgpack.Decoder[list[T]]) -> list[T]:
    """What was sent, read by `ANSWERS` or `RANKINGS`."""
    if isinstance(pack, list):
        return pack
    with uncollected():
        return decoder.decode(pack)
