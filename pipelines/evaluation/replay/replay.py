"""Asking the same queries again and again of one snapshot, under other settings or beliefs (EVA-7, EVA-9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TypeVar

from msgspec import structs

from pipelines.domain.matching import MatchFeatures
from pipelines.domain.ranking import Answer, Channel, Placings, Query, Signal
from pipelines.evaluation.replay.remembering import remembered
from pipelines.learning.calibration.fit import ShownResults
from pipelines.retrieval.channels.open import Openings
from pipelines.retrieval.searcher import Searcher
from pipelines.retrieval.settings import RetrievalSettings
from pipelines.retrieval.snapshot.ports import QueryEncoder
from pipelines.retrieval.snapshot.snapshot import OneSnapshot, Snapshot
from pipelines.runtime.garbage import uncollected
from pipelines.runtime.memory import FREED_BYTES, keep_freed_memory
from pipelines.runtime.threads import linear_algebra_threads

T = TypeVar("T")


class Replay:
    """Answers fixed queries from one snapshot at one time: what differs between two replays is what was changed.

    Only who asks a text first asks FAISS and Lucene: what they found is remembered as long as at most so many others
    are asked (`remembering`). A pass over more queries asks the engines anew, and is none the less right.

    Attributes:
        snapshot: The usual one, whose generation remembers.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        encoders: Sequence[QueryEncoder],
        settings: RetrievalSettings,
        *,
        now: float,
        batch: int,
        most: int,
    ) -> None:
        """Ask nothing yet.

        Args:
            encoders: The default one first, each of which is a dense channel.
            now: When all queries are asked, seconds since the epoch.
            batch: Queries asked together.
            most: Texts of which it is remembered what the engines found: some 5 kB each at a depth of 100.
        """
        self.snapshot = remembered(snapshot, most)
        self._most = most
        self._encoders = encoders
        self._settings = settings
        self._now = now
        self._batch = batch
        self._openings = Openings()

    def __call__(
        self,
        queries: Sequence[Query],
        *,
        settings: RetrievalSettings | None = None,
        snapshot: Snapshot | None = None,
        watch: Callable[[int], None] = lambda _: None,
    ) -> Iterator[Answer]:
        """The answer to each query, in their order.

        Args:
            settings: Instead of the usual ones.
            snapshot: Instead of the usual one.
            watch: Told how many queries were answered, now and then.
        """
        return self._answers(Searcher.search_many, queries, settings, snapshot, watch)

    def rankings(
        self,
        queries: Sequence[Query],
        *,
        settings: RetrievalSettings | None = None,
        snapshot: Snapshot | None = None,
        watch: Callable[[int], None] = lambda _: None,
    ) -> Iterator[Placings]:
        """The results of these answers, without what is told of them."""
        return self._answers(Searcher.rank_many, queries, settings, snapshot, watch)

    def _answers(
        self,
        ask: Callable[[Searcher, Sequence[Query]], list[T]],
        queries: Sequence[Query],
        settings: RetrievalSettings | None,
        snapshot: Snapshot | None,
        watch: Callable[[int], None],
    ) -> Iterator[T]:
        keep_freed_memory(FREED_BYTES)
        with (
            linear_algebra_threads(self._settings.product_threads),
            self._searching(settings or self._settings, snapshot or self.snapshot) as searcher,
        ):
            for start in range(0, len(queries), self._batch):
                with uncollected():  # or else Python looks through the whole generation for garbage, again and again
                    answers = ask(searcher, queries[start : start + self._batch])
                yield from answers
                watch(min(start + self._batch, len(queries)))

    def otherwise(self, settings: RetrievalSettings, snapshot: Snapshot) -> Replay:
        """A replay with others for the usual ones, that remembers what this one does."""
        other = copy(self)
        other.snapshot, other._settings = remembered(snapshot, self._most), settings
        return other

    def _searching(self, settings: RetrievalSettings, snapshot: Snapshot) -> Searcher:
        encoder, *further = self._encoders
        source, openings = OneSnapshot(snapshot), self._openings
        return Searcher(source, encoder, settings, clock=lambda: self._now, further=further, openings=openings)


def shown_matches(replay: Replay, settings: RetrievalSettings, queries: Sequence[Query], *, depth: int) -> ShownResults:
    """What all channels together show, whatever is known of a question, and what each channel shows alone.

    Of the latter, what both do not find among the first `depth` is left out.
    """
    unknowing = (*settings.without_signals, Signal.PRECEDENT)
    answers = replay(queries, settings=settings.model_copy(update={"without_signals": unknowing}))
    pages = [(result.rank, result.match) for answer in answers for result in answer.results if result.match is not None]
    return ShownResults(pages, _alone(replay, settings, queries, depth))


def _alone(
    replay: Replay, settings: RetrievalSettings, queries: Sequence[Query], depth: int
) -> dict[Channel, list[MatchFeatures]]:
    wide = [replace(query, k=depth) for query in queries]
    both_channels = {
        (answer.query.query_id, result.content_hash): result.match
        for answer in replay(wide)
        for result in answer.results
    }
    matches: dict[Channel, list[MatchFeatures]] = {}
    for channel in (Channel.DENSE, Channel.LEXICAL):
        narrow = settings.model_copy(update={"channels": (channel,)})
        pairs = [
            (both_channels.get((answer.query.query_id, result.content_hash)), result.match)
            for answer in replay(queries, settings=narrow)
            for result in answer.results
        ]
        matches[channel] = [over_both(both, one) for both, one in pairs if both is not None and one is not None]
    return {name: [each for each in some if None not in (each.dense, each.lexical)] for name, some in matches.items()}


def over_both(both: MatchFeatures, one: MatchFeatures) -> MatchFeatures:
    """A match as both channels know it; how near it is, as the one that shows it does, where that compared tokens.

    Examples:
        >>> over_both(MatchFeatures(dense=0.5, lexical=0.2), MatchFeatures(dense=0.5, late_interaction=0.4))
        MatchFeatures(dense=0.5, lexical=0.2, late_interaction=0.4)
    """
    return both if one.late_interaction is None else structs.replace(both, late_interaction=one.late_interaction)
