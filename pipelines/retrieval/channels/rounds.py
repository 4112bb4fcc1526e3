"""Channels that search at once, as one round: each begun once, by whichever thread gets to it first (RET-7)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Mapping
from typing import Generic, TypeVar

from pipelines.domain.ranking import Channel

log = logging.getLogger(__name__)

T = TypeVar("T")
Result = TypeVar("Result")

_ENGINES = frozenset({Channel.DENSE, Channel.DENSE_2, Channel.DENSE_3, Channel.LEXICAL})
"""Channels that compute outside the interpreter: side by side they take less time, and others would not."""

Gathered = tuple[dict[Channel, T], dict[Channel, str]]
"""What each channel gave, and why others gave nothing."""


class Round(Generic[T]):
    """Tasks of channels, and the time that each has from now on.

    Attributes:
        channels: All of them.
        beside: Those that other threads search with while one searches with the rest: engines but one.
    """

    def __init__(self, tasks: Mapping[Channel, Callable[[], T]], budget_s: Mapping[Channel, float]) -> None:
        """Begin the time of channels; none of them is begun yet."""
        self._tasks = tasks
        self._budget_s = budget_s
        self._started = time.perf_counter()
        self._changed = threading.Condition()
        self._waiting = set(tasks)
        self._ended: dict[Channel, T | _Failed] = {}
        engines = [channel for channel in tasks if channel in _ENGINES]
        self.channels = tuple(tasks)
        self.beside = tuple(engines[1:])
        self._here = (*engines[:1], *(channel for channel in tasks if channel not in _ENGINES))

    def run_here(self) -> bool:
        """Search with all that no other thread has begun, those `beside` last; whether all have ended now, with these.

        So that nothing waits behind other searches for a thread of its own.
        """
        return any(self.run(channel) for channel in (*self._here, *self.beside)) or not self.channels

    def run(self, channel: Channel) -> bool:
        """Search with a channel unless that was begun, or given up, before; whether all have ended now, with this."""
        with self._changed:
            if channel not in self._waiting:
                return False
            self._waiting.remove(channel)
        ended = _outcome(self._tasks[channel])
        with self._changed:
            self._ended[channel] = ended
            self._changed.notify_all()
            return len(self._ended) == len(self._tasks)

    def wait(self) -> None:
        """Wait for each as long as its time lasts."""
        for channel in self.channels:
            self._end_of(channel)

    def gathered(self) -> Gathered[T]:
        """What all gave, waiting for each as long as its time lasts; who has not begun by then never will."""
        found: dict[Channel, T] = {}
        failed: dict[Channel, str] = {}
        for channel in self.channels:
            ended = self._end_of(channel)
            if isinstance(ended, _Failed):
                log.warning("channel %s left out: %s", channel.value, ended)
                failed[channel] = str(ended)
            else:
                found[channel] = ended
        return found, failed

    def _end_of(self, channel: Channel) -> T | _Failed:
        ends, budget_s = self._started + self._budget_s[channel], self._budget_s[channel]
        with self._changed:
            left_s = max(0.0, ends - time.perf_counter())
            if not self._changed.wait_for(lambda: channel in self._ended, left_s):
                self._waiting.discard(channel)
                return _Failed(f"no answer within {budget_s:g} s")
            return self._ended[channel]


class _Failed(str):
    """Why a channel gave nothing."""

    __slots__ = ()


def _outcome(task: Callable[[], T]) -> T | _Failed:
    try:
        return task()
    except BaseException as error:  # noqa: BLE001  told to who gathers: panics of engines in Rust are no Exception
        return _Failed(f"{type(error).__name__}: {error}")


Steps = Generator[Round[T], Gathered[T], Result]
"""A search up to its result: hands out a round or more, and goes on with what each gave. Any thread may take a step."""
