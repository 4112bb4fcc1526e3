"""Searchers over views: over what was live at one time, under settings of one's own (ARC-2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from weft.app.searching.engines import LoadEngines, searching, source_of
from weft.domain.ranking import Query
from weft.retrieval.channels.open import OpenedCache
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import Pin
from weft.retrieval.snapshot.snapshot import OneSnapshot, Snapshot
from weft.runtime.process import uncollected
from weft.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class View:
    """What queries are asked of, in values alone: everything that answers depend on besides the queries."""

    settings: Settings
    pin: Pin


class OpenViews:
    """Opens views; models, generation and what was read out of it stay from one time to the next where they can."""

    def __init__(self, load: LoadEngines) -> None:
        self._load = load
        self._shared: list[_SharedEngines] = []

    @contextmanager
    def opened(self, views: Sequence[View]) -> Iterator[list[Searcher]]:
        """A searcher over each view; only what these stand on stays for the next ones."""
        with ExitStack() as undo:
            parts = [self._engines_of(view.settings) for view in views]
            searchers = [undo.enter_context(part.searching(view)) for part, view in zip(parts, views, strict=True)]
            self._shared = [part for part in self._shared if part in parts]
            yield searchers

    def _engines_of(self, settings: Settings) -> _SharedEngines:
        if (part := next((each for each in self._shared if each.serves(settings)), None)) is None:
            part = _SharedEngines(settings, self._load)
            self._shared.append(part)
        return part


def interleaved(
    searchers: Sequence[Searcher],
    queries: Sequence[Query],
    batch: int,
    ask: Callable[[Searcher, Sequence[Query]], list[T]],  # `Searcher.search_many` or `Searcher.rank_many`
) -> list[list[T]]:
    """What each searcher is asked for, in the queries' order; a batch is asked of all of them before the next is.

    So the encodings of a batch are remembered when the next searcher asks for them.
    """
    answers: list[list[T]] = [[] for _ in searchers]
    for start in range(0, len(queries), batch):
        with uncollected():
            for of_one, searcher in zip(answers, searchers, strict=True):
                of_one.extend(ask(searcher, queries[start : start + batch]))
    return answers


class _SharedEngines:
    """What views stand on: models and store, and the generation that was opened last."""

    def __init__(self, settings: Settings, load: LoadEngines) -> None:
        self._decides = _deciding(settings)
        self._engines = load(settings)
        self._source = source_of(settings, precisions=self._engines.precisions)
        self._openings = OpenedCache()
        self._snapshot: Snapshot | None = None

    def serves(self, settings: Settings) -> bool:
        return _deciding(settings) == self._decides

    @contextmanager
    def searching(self, view: View) -> Iterator[Searcher]:
        self._snapshot = self._engines.over(self._source.at(view.pin, self._snapshot))
        source, now = OneSnapshot(self._snapshot), view.pin.at
        with searching(view.settings, self._engines, source, clock=lambda: now, openings=self._openings) as searcher:
            yield searcher


def _deciding(settings: Settings) -> tuple[Any, ...]:
    """What decides over models and store."""
    tuned = settings.retrieval
    return (settings.storage, settings.priors, settings.embedding, tuned.rerank.cross_encoder)
