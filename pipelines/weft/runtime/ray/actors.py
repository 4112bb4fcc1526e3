"""A pool of actors: a task goes to whichever is free, and to another where an actor dies over it."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from weft.domain.errors import WeftError
from weft.runtime.ray.cluster import end_of, remote_cause, start_actor

log = logging.getLogger(__name__)

Value = TypeVar("Value")


class Shared(Generic[Value]):
    """A value that lies where every actor can get it; whoever holds the value of its `key` need not get it again."""

    def __init__(self, value: Value) -> None:
        reference = ray.put(value)
        self.key: str = reference.hex()
        self._reference = reference

    def get(self) -> Value:
        """The value."""
        value: Value = ray.get(self._reference)
        return value


@dataclass(frozen=True, slots=True)
class _Doing:
    """An actor, and the number of the task that it works on, if any."""

    actor: Any
    task: int | None = None


class ActorPool:
    """Actors of one class; one call at a time.

    An actor takes part from the moment it has started, so that a pool works as soon as one has. Where one dies, as
    processes do that memory runs out for, another is started in its place. A pool that has none left, because it was
    given up or closed, starts them anew when it is called.
    """

    def __init__(
        self, worker: Callable[..., Any], *arguments: Any, size: int, cpus: float, deaths: int, name: str
    ) -> None:
        """Start the actors."""
        self._start: Callable[[], Any] = partial(start_actor, worker, *arguments, num_cpus=cpus)
        self._size = size
        self._deaths = deaths
        self._name = name
        self._lost_unused = 0
        self._idle: list[Any] = []
        self._doing: dict[Any, _Doing] = {}
        self._start_all()

    def map(self, method: str, tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a method with the arguments of each task; what it returned, in the order of the tasks."""
        self._start_all()
        waiting, done, died, yielded = deque(range(len(tasks))), dict[int, Any](), Counter[int](), 0
        try:
            while yielded < len(tasks):
                while self._idle and waiting:
                    self._ask(self._idle.pop(0), method, tasks, waiting.popleft())
                while yielded in done:
                    yield done.pop(yielded)
                    yielded += 1
                if yielded < len(tasks):
                    self._next(waiting, done, died)
        finally:
            self._doing = {reference: _Doing(doing.actor) for reference, doing in self._doing.items()}

    def everywhere(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method on every actor, once all have started; what each returned. Errors as in `map`."""
        self._start_all()
        while self._doing:
            self._next(deque(), {}, Counter())
        actors = self._idle
        try:
            return ray.get([getattr(actor, method).remote(*arguments) for actor in actors])  # type: ignore[no-any-return]
        except RayError as error:
            raise remote_cause(error, Exception) from error

    def close(self) -> None:
        """End the actors, whatever they do."""
        for actor in [*self._idle, *(doing.actor for doing in self._doing.values())]:
            _end(actor)
        self._idle.clear()
        self._doing.clear()

    def _start_all(self) -> None:
        """Start all actors where there are none."""
        if not self._idle and not self._doing:
            self._lost_unused = 0
            for _ in range(self._size):
                self._join()

    def _join(self) -> None:
        actor = self._start()
        self._doing[actor.__ray_ready__.remote()] = _Doing(actor)

    def _ask(self, actor: Any, method: str, tasks: Sequence[tuple[Any, ...]], task: int) -> None:
        self._doing[getattr(actor, method).remote(*tasks[task])] = _Doing(actor, task)

    def _next(self, waiting: deque[int], done: dict[int, Any], died: Counter[int]) -> None:
        """Wait until an actor is through with something, and see what came of it."""
        (reference,), _ = ray.wait(list(self._doing), num_returns=1)
        doing = self._doing.pop(reference)
        try:
            result = ray.get(reference)
        except RayTaskError as error:
            self._idle.append(doing.actor)
            if doing.task is not None:
                raise remote_cause(error, Exception) from error
        except RayError as error:
            self._lost(doing, error, waiting, died)
        else:
            self._lost_unused = 0
            self._idle.append(doing.actor)
            if doing.task is not None:
                done[doing.task] = result

    def _lost(self, doing: _Doing, error: RayError, waiting: deque[int], died: Counter[int]) -> None:
        """Start another actor for one that is gone; what it did is to be done first of all."""
        _end(doing.actor)
        if doing.task is None:
            self._lost_unused += 1
            if self._lost_unused <= self._deaths:
                self._join()
            elif self._idle or self._doing:
                log.warning("going on without one of them: %s died before it had started: %s", self._name, error)
            else:
                raise self._given_up("before it had started", error) from error
            return
        self._join()
        waiting.appendleft(doing.task)
        died[doing.task] += 1
        if died[doing.task] > self._deaths:
            raise self._given_up("over one and the same task", error) from error

    def _given_up(self, over: str, error: RayError) -> WeftError:
        return WeftError(
            f"{self._name} died {self._deaths + 1} times {over}: give it more memory, or run fewer side by side; "
            f"Ray says: {end_of(error)}"
        )


def _end(actor: Any) -> None:
    with contextlib.suppress(RayError, ValueError):  # gone already, or Ray itself was left meanwhile
        ray.kill(actor)
