"""Who takes the steps of a search: one thread that stays awake to its end, and who asked, if that hangs.

A thread that sleeps while others search for it finds its caches cold, and each hand-over takes time. So a thread of the
pool takes all steps itself, and meanwhile searches with one channel; who asked waits for the answer. It takes the steps
that are left as soon as the other is late, wherever that hangs, and then never waits longer than channels have time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Generic

from pipelines.domain.ranking import Channel
from pipelines.retrieval.channels.rounds import Result, Round, Steps, T
from pipelines.runtime.warm import WarmThreads


class Awake(Generic[T, Result]):
    """The steps of one search.

    Whoever takes a step has the turn, and there is one turn: it is given back while channels search, and kept by who
    took the last step, or takes all that are left. So each step is taken once, whoever comes when.
    """

    def __init__(self, steps: Steps[T, Result], threads: WarmThreads) -> None:
        self._steps = steps
        self._threads = threads
        self._turn = threading.Lock()
        self._round: Round[T] | None = None
        self._result: Future[Result] = Future()

    def result(self, late_s: float) -> Result:
        """The result of the last step, and what any of them raises.

        Args:
            late_s: Seconds after which who asks takes over, where channels are at work; no more than any has.
        """
        self._threads.start(self._go_on)
        while not _is_there(self._result, late_s):
            if self._turn.acquire(blocking=False):
                return from_here(self._steps, self._round, self._threads)
        return self._result.result()

    def _go_on(self) -> None:
        """Take steps, and search with the channels that each wants; who ends a round as the last one goes on."""
        while self._turn.acquire(blocking=False):
            try:
                self._round = current = next_round(self._steps, self._round)
                for channel in current.beside:
                    self._threads.start(partial(self._beside, current, channel))
            except StopIteration as end:
                self._result.set_result(end.value)
                return
            except BaseException as error:  # noqa: BLE001  raised where the result is asked for
                self._result.set_exception(error)
                return
            self._turn.release()
            if not current.run_here():
                return

    def _beside(self, current: Round[T], channel: Channel) -> None:
        if current.run(channel):
            self._go_on()


def one_ahead(searches: Sequence[Steps[T, Result]], threads: WarmThreads) -> list[Result]:
    """The results of several searches: while this thread ranks for one, the pool searches for the next."""
    results: list[Result] = []
    started = [begin(steps, None, threads) for steps in searches[:1]]
    for at, steps in enumerate(searches):
        current = started.pop()
        current.wait()
        started += [begin(later, None, threads) for later in searches[at + 1 : at + 2]]
        results.append(from_here(steps, current, threads))
    return results


def next_round(steps: Steps[T, Result], current: Round[T] | None) -> Round[T]:
    """Take a step, given what the current round gave; None before the first.

    Raises:
        StopIteration: It was the last; its value is the result.
    """
    return next(steps) if current is None else steps.send(current.gathered())


def begin(steps: Steps[T, Result], current: Round[T] | None, threads: WarmThreads) -> Round[T]:
    """Take a step, and have the pool search with all channels that it wants; raises as `next_round` does."""
    following = next_round(steps, current)
    _submit(following, threads)
    return following


def from_here(steps: Steps[T, Result], current: Round[T] | None, threads: WarmThreads) -> Result:
    """Take all steps that are left in this thread, which never searches itself: so nothing that hangs holds it up."""
    if current is not None:
        _submit(current, threads)
    while True:
        try:
            current = begin(steps, current, threads)
        except StopIteration as end:
            result: Result = end.value
            return result


def _submit(current: Round[T], threads: WarmThreads) -> None:
    for channel in current.channels:
        threads.start(partial(current.run, channel))


def _is_there(result: Future[Result], within_s: float) -> bool:
    try:
        result.exception(within_s)
    except TimeoutError:
        return False
    return True
