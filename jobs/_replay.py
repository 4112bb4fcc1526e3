"""What is live in a store, held still, so that queries can be asked of it again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.catalog.overlays import Listing
from pipelines.domain.ranking import Answer, Query
from pipelines.embedding.encoder import load_encoder
from pipelines.embedding.settings import EmbeddingSettings
from pipelines.evaluation.replay import RememberingEncoder, Replay
from pipelines.learning.evidence import Evidence
from pipelines.retrieval.live import Pin
from pipelines.retrieval.ports import QueryEncoder
from pipelines.runtime.clock import system_clock
from pipelines.serving.engines import Engines, source_of
from pipelines.settings import Settings

if TYPE_CHECKING:
    from pipelines.serving.spread import SearcherPool


def replayed(settings: Settings) -> Replay:
    """A replay over the live generation, under what is believed now.

    Raises:
        NothingPublishedError: No generation is live.
    """
    now = system_clock()
    snapshot = source_of(settings, lambda: now).take(None)
    batch = settings.evaluation.batch
    return Replay(snapshot, remembering(settings), settings.retrieval, now=now, batch=batch)


class Again:
    """Asks a store the same queries again and again, now under these settings and beliefs, now under those.

    Whatever is published meanwhile, all of them are asked of what was live at first, at that time. That is done here;
    where there are enough queries to pay for them, by processes that are started for it.
    """

    def __init__(self, settings: Settings, *, times: int) -> None:
        """Start nothing yet.

        Args:
            settings: Those that say what processes are started, whatever is asked under which.
            times: How often so many queries will be asked as the first time.
        """
        self._settings = settings
        self._times = times
        self._encoders: list[tuple[EmbeddingSettings, Sequence[QueryEncoder]]] = []
        self._pool: SearcherPool | None = None
        self._pins: dict[str, Pin] = {}

    def __call__(self, queries: Sequence[Query], settings: Settings, evidence: Evidence | None = None) -> list[Answer]:
        """The answers, in the queries' order.

        Args:
            evidence: Under the beliefs that follow from it, instead of what was believed at first.
        """
        pin = self._pinned(settings)
        if evidence is not None:
            pin = replace(pin, evidence=evidence, listing=Listing())
        processes = self._settings.retrieval.spread.worth(self._times * len(queries))
        if self._pool is None and processes == 1:
            return self._here(queries, settings, pin)
        from pipelines.serving.spread import SearcherPool, View  # noqa: PLC0415  only who needs Ray waits for it

        self._pool = self._pool or SearcherPool(self._settings, processes=processes, load=_remembering_engines)
        return self._pool.search_many(queries, View(settings, pin))

    def close(self) -> None:
        """End what was started."""
        if self._pool is not None:
            self._pool.close()

    def _pinned(self, settings: Settings) -> Pin:
        root = settings.storage.root
        if root not in self._pins:
            self._pins[root] = source_of(settings).pin()
        return self._pins[root]

    def _here(self, queries: Sequence[Query], settings: Settings, pin: Pin) -> list[Answer]:
        known = [encoders for embedding, encoders in self._encoders if embedding == settings.embedding]
        if not known:
            known = [remembering(settings)]
            self._encoders.append((settings.embedding, known[0]))
        snapshot, batch = source_of(settings).at(pin, None), settings.evaluation.batch
        return list(Replay(snapshot, known[0], settings.retrieval, now=pin.at, batch=batch)(queries))


def _remembering_engines(settings: Settings) -> Engines:
    return Engines(remembering(settings))


def remembering(settings: Settings) -> list[RememberingEncoder]:
    """The configured encoders, each of which encodes a query once however often it is asked."""
    return [RememberingEncoder(load_encoder(each)) for each in settings.embedding.encoders]
