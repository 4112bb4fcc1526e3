"""Channels side by side, each within its time budget; one that fails is left out and named (RET-7)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.domain.ranking import Channel
from weft.indexes.rows import RowSet

ScoreRows = Callable[[Ints], Floats]
"""One number for each of some contents, named by row."""


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Rows of contents, each once, and a channel's scores of them (higher is better), best first."""

    rows: Ints  # (n,)
    scores: Floats  # (n,)

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, float]]) -> Hits:
        """Rows with their scores, the best first."""
        ranked = list(pairs)
        rows, scores = zip(*ranked, strict=True) if ranked else ((), ())
        return cls(np.array(rows, dtype=np.int64), np.array(scores, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(self.rows.tolist(), self.scores.tolist(), strict=True)

    def head(self, depth: int) -> Hits:
        """The first `depth` of them."""
        return self if len(self.rows) <= depth else Hits(self.rows[:depth], self.scores[:depth])

    def collapsed(self, representatives: Mapping[int, int]) -> Hits:
        """The same with the representative in the place of each alias, each content once, where it stands first."""
        own = self.rows.tolist()
        if representatives.keys().isdisjoint(own):
            return self
        rows = np.array([representatives.get(row, row) for row in own], dtype=np.int64)
        first = np.sort(np.unique(rows, return_index=True)[1])
        return Hits(rows[first], self.scores[first])


NOTHING = Hits.of(())


ENCODERS = (Channel.DENSE, Channel.DENSE_2, Channel.DENSE_3)
"""The channel of each encoder, in their order."""
DENSE = frozenset(ENCODERS)

log = logging.getLogger(__name__)

Among = Sequence[RowSet | None]
"""For each text of a batch the only contents that it may find; None for all."""

VectorLookup = Callable[[Ints], np.ndarray]
"""Vectors of contents by row: float32 (rows, dimension), unit rows."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """What a channel found for one query."""

    ranking: Hits
    score_rows: ScoreRows | None = None  # its score of any contents; None where it scores only what it found
    match_rows: ScoreRows | None = None  # how well tokens match, in [−1, 1] (RET-10); None where it knows none
    vector: np.ndarray | None = None  # the query's, float32 (dimension,), a unit vector; None where it makes none
    cosines: Callable[[np.ndarray, Ints], Floats] | None = None  # of any unit vector to contents by row
    vectors: VectorLookup | None = None
    alone: Ranked | None = None  # what the query's own words found, where others were asked for it, too


def scores_of(ranked: Ranked) -> ScoreRows:
    """A channel's score of any contents, by row; 0 where it can only score what it found."""
    if ranked.score_rows is not None:
        return ranked.score_rows
    scores = dict(ranked.ranking)
    return lambda rows: np.array([scores.get(row, 0.0) for row in rows.tolist()], dtype=np.float64)


def matcher(by_channel: Mapping[Channel, Ranked]) -> ScoreRows | None:
    """What compares any contents with the query token by token; None where no channel can."""
    return next((ranked.match_rows for ranked in by_channel.values() if ranked.match_rows is not None), None)


class SearchChannel(Protocol):
    """One way to produce ranked candidates; called from a pool's thread, for a batch of queries at a time."""

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        """A ranking of at most `depth` per text, in the order of the texts, of what each may find."""


class FollowingChannel(Protocol):
    """A way that starts from what others found; called when these are done, otherwise like a `SearchChannel`."""

    def follow(
        self, texts: Sequence[str], among: Among, first: Sequence[Mapping[Channel, Ranked]], depth: int
    ) -> list[Ranked]:
        """A ranking of at most `depth` per text, given what the others found for it."""


@dataclass(frozen=True, slots=True)
class Channels:
    """The channels of one generation."""

    searching: Mapping[Channel, SearchChannel]
    following: Mapping[Channel, FollowingChannel] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)  # reason by name of each that is wanted and cannot be had


@dataclass(frozen=True, slots=True)
class ChannelRankings:
    """What the channels gave for a batch of queries."""

    # one ranking per query, by channel and place of the query in its batch; of channels that failed none, and of
    # others none for queries that did not want them
    rankings: Mapping[Channel, Mapping[int, Ranked]]
    failed: Sequence[Mapping[str, str]]  # for each query the reason by channel that it wanted and that was left out
    elapsed_ms: float  # milliseconds until the last channel was done with or given up, per query of the batch

    def of(self, index: int) -> dict[Channel, Ranked]:
        """What the channels gave for one query of the batch."""
        return {channel: rankings[index] for channel, rankings in self.rankings.items() if index in rankings}


@dataclass(frozen=True, slots=True)
class ChannelRequest:
    """What one query of a batch asks of the channels."""

    text: str
    channels: Collection[Channel]  # those that search for it
    depth: int  # candidates wanted of each of them
    among: RowSet | None = None  # all that it may find; None for everything


def run_channels(
    channels: Channels, requests: Sequence[ChannelRequest], *, budget_ms: Mapping[Channel, float], threads: Executor
) -> ChannelRankings:
    """Search with all channels at once, then with all that follow them at once."""
    started = time.perf_counter()
    wanting = {channel: [at for at, each in enumerate(requests) if channel in each.channels] for channel in budget_ms}
    budget_s = {channel: budget * len(wanting[channel]) / 1000 for channel, budget in budget_ms.items()}
    of_channel = {channel: [requests[at] for at in places] for channel, places in wanting.items()}
    searches = {
        channel: partial(_searched, each, of_channel[channel])
        for channel, each in channels.searching.items()
        if wanting[channel]
    }
    rankings, failed = _at_once(searches, wanting, budget_s, threads)
    first = [
        {channel: ranked[at] for channel, ranked in rankings.items() if at in ranked} for at in range(len(requests))
    ]
    follows = {
        channel: partial(_followed, each, of_channel[channel], [first[at] for at in wanting[channel]])
        for channel, each in channels.following.items()
        if wanting[channel]
    }
    following, failed_too = _at_once(follows, wanting, budget_s, threads)
    reasons = {**failed, **failed_too}
    without = [
        {**channels.missing, **{channel.value: reasons[channel] for channel in reasons if channel in each.channels}}
        for each in requests
    ]
    elapsed_ms = (time.perf_counter() - started) * 1000.0 / max(1, len(requests))
    return ChannelRankings({**rankings, **following}, without, elapsed_ms)


def _at_once(
    tasks: Mapping[Channel, Callable[[], list[Ranked]]],
    wanting: Mapping[Channel, Sequence[int]],
    budget_s: Mapping[Channel, float],
    threads: Executor,
) -> tuple[dict[Channel, Mapping[int, Ranked]], dict[Channel, str]]:
    """What each task gives within its budget, by place in the batch, and why others give nothing."""
    started = time.perf_counter()
    futures = {channel: threads.submit(copy_context().run, task) for channel, task in tasks.items()}
    rankings: dict[Channel, Mapping[int, Ranked]] = {}
    failed: dict[Channel, str] = {}
    for channel, future in futures.items():
        reason = _failure(future, started, budget_s[channel])
        if reason is None:
            rankings[channel] = dict(zip(wanting[channel], future.result(), strict=True))
        else:
            log.warning("channel %s left out: %s", channel.value, reason)
            failed[channel] = reason
    return rankings, failed


def _failure(future: Future[list[Ranked]], started: float, budget_s: float) -> str | None:
    """Why a channel gave nothing in its time; None where it gave something. What has not begun by then never will."""
    try:
        error = future.exception(max(0.0, started + budget_s - time.perf_counter()))
    except TimeoutError:
        future.cancel()
        return f"no answer within {budget_s:g} s"
    return None if error is None else f"{type(error).__name__}: {error}"


def _searched(channel: SearchChannel, requests: Sequence[ChannelRequest]) -> list[Ranked]:
    return _to_depths(lambda some, depth: channel.search(*_texts(requests, some), depth), requests)


def _followed(
    channel: FollowingChannel, requests: Sequence[ChannelRequest], first: Sequence[Mapping[Channel, Ranked]]
) -> list[Ranked]:
    return _to_depths(
        lambda some, depth: channel.follow(*_texts(requests, some), [first[at] for at in some], depth), requests
    )


def _to_depths(find: Callable[[Sequence[int], int], list[Ranked]], requests: Sequence[ChannelRequest]) -> list[Ranked]:
    """What a channel ranks for each, to its own depth: who is searched deeper in company would get another answer."""
    rankings: dict[int, Ranked] = {}
    for depth in dict.fromkeys(each.depth for each in requests):
        some = [at for at, each in enumerate(requests) if each.depth == depth]
        rankings |= dict(zip(some, find(some, depth), strict=True))
    return [rankings[at] for at in range(len(requests))]


def _texts(requests: Sequence[ChannelRequest], some: Sequence[int]) -> tuple[list[str], list[RowSet | None]]:
    return [requests[at].text for at in some], [requests[at].among for at in some]


def with_elevated(rankings: ChannelRankings, elevated: Mapping[int, Mapping[Channel, Ranked]]) -> ChannelRankings:
    """Rankings in which some contents stand before all others."""
    joined = {channel: dict(of_channel) for channel, of_channel in rankings.rankings.items()}
    for at, by_channel in elevated.items():
        for channel, ranked in by_channel.items():
            others = joined.get(channel, {}).get(at)
            if others is not None:
                joined[channel][at] = replace(others, ranking=_joined(ranked.ranking, others.ranking))
    return replace(rankings, rankings=joined)


def _joined(first: Hits, others: Hits) -> Hits:
    rest = ~np.isin(others.rows, first.rows)
    return Hits(np.concatenate([first.rows, others.rows[rest]]), np.concatenate([first.scores, others.scores[rest]]))
