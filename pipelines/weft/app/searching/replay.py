"""Many queries at once, by processes where these pay; also of what is live held still, again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from weft.app.searching.engines import Engines, LoadEngines, load_engines, opened, require_published, source_of
from weft.app.searching.views import OpenViews, View, interleaved
from weft.catalog.overlays import SessionListing
from weft.domain.ranking import Answer, Query, ScoredResults
from weft.evaluation.replay.caching import CachingEncoder
from weft.learning.calibration.scores import ScoreCalibration
from weft.learning.evidence import Evidence
from weft.learning.parts import LearnedVersion
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import Pin
from weft.settings import Settings

if TYPE_CHECKING:
    from weft.app.searching.searcher_pool import SearcherPool

T = TypeVar("T")

Conditions: TypeAlias = tuple[Settings, Evidence | LearnedVersion | None]
"""What queries are asked under: settings, and the beliefs that follow from evidence, or those of the first time."""


class StoreReplay:
    """Asks a store the same queries again and again, now under these settings and beliefs, now under those.

    Whatever is published meanwhile, all of them are asked of what was live at first, at that time. That is done here;
    where there are enough queries to pay for them, by processes that are started for it. Here as there each text is
    encoded once.
    """

    def __init__(self, settings: Settings, *, times: int, load: LoadEngines | None = None) -> None:
        """Start nothing yet."""
        self._settings = settings
        self._times = times
        self._load = load or caching_engines
        self._views = OpenViews(self._load)
        self._pool: SearcherPool | None = None
        self._pins: dict[str, Pin] = {}

    def __call__(
        self, queries: Sequence[Query], settings: Settings, evidence: Evidence | LearnedVersion | None = None
    ) -> list[Answer]:
        """The answers under one side, in the queries' order."""
        (answers,) = self.answers_per_condition(queries, [(settings, evidence)])
        return answers

    def answers_per_condition(self, queries: Sequence[Query], sides: Sequence[Conditions]) -> list[list[Answer]]:
        """The answers under each side, in the queries' order; sides take turns, batch by batch."""
        views = self._views_of(sides)
        pool = self._pool_for(queries)
        return self._here(queries, views, Searcher.search_many) if pool is None else pool.search_each(queries, views)

    def rankings(self, queries: Sequence[Query], sides: Sequence[Conditions]) -> list[list[ScoredResults]]:
        """The results of the same answers, without their explanations."""
        views = self._views_of(sides)
        pool = self._pool_for(queries)
        return self._here(queries, views, Searcher.rank_many) if pool is None else pool.rank_each(queries, views)

    def _views_of(self, sides: Sequence[Conditions]) -> list[View]:
        return [View(settings, self._pinned(settings, evidence)) for settings, evidence in sides]

    def _pool_for(self, queries: Sequence[Query]) -> SearcherPool | None:
        """Processes, started for the first queries that pay for them; None where these do not."""
        processes = self._settings.retrieval.spread.worth(self._times * len(queries))
        if self._pool is None and processes > 1:
            self._pool = _pool(self._settings, processes, self._load)
        return self._pool

    def close(self) -> None:
        """End what was started."""
        if self._pool is not None:
            self._pool.close()

    def _pinned(self, settings: Settings, evidence: Evidence | LearnedVersion | None) -> Pin:
        root = settings.storage.root
        if root not in self._pins:
            self._pins[root] = source_of(settings).pin()
        if evidence is None:
            return self._pins[root]
        learned = evidence if isinstance(evidence, LearnedVersion) else LearnedVersion(evidence)
        calibration = self._pins[root].learned.part(ScoreCalibration)  # of what is live, whatever is compared
        learned = learned.with_part(ScoreCalibration, calibration)
        return replace(self._pins[root], learned=learned, listing=SessionListing())

    def _here(
        self, queries: Sequence[Query], views: Sequence[View], ask: Callable[[Searcher, Sequence[Query]], list[T]]
    ) -> list[list[T]]:
        with self._views.opened(views) as searchers:
            return interleaved(searchers, queries, self._settings.retrieval.encode_batch, ask)


def caching_engines(settings: Settings) -> Engines:
    """The configured models, of which each encodes a text once."""
    engines = load_engines(settings)
    return replace(engines, encoders=[CachingEncoder(each) for each in engines.encoders])


@contextmanager
def answering(settings: Settings, queries: int) -> Iterator[Searcher | SearcherPool]:
    """Whatever answers so many queries soonest: a searcher in this process, or several processes."""
    processes = settings.retrieval.spread.worth(queries)
    if processes == 1:
        with opened(settings) as searcher:
            yield searcher
        return
    require_published(settings)
    with _pool(settings, processes, load_engines) as pool:
        yield pool


def _pool(settings: Settings, processes: int, load: LoadEngines) -> SearcherPool:
    # Ray takes .3 s to import: only who has enough queries waits for it.
    from weft.app.searching.searcher_pool import SearcherPool  # noqa: PLC0415

    return SearcherPool(settings, processes=processes, load=load)
