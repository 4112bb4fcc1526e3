"""Stages of a pipeline and tasks, whoever runs them: this process, here, or a cluster (`runtime.ray.stages`)."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import pyarrow as pa

Task = TypeVar("Task")
Result = TypeVar("Result")
Guard = Callable[[], None]


class Worker(Protocol):
    """One step of a pipeline, made once per actor: it may load a model and keep it.

    A batch is run again when its worker or node dies, so running one twice must give the same as running it once.
    """

    def run(self, batch: pa.Table) -> pa.Table:
        """Work on one batch."""
        ...


@dataclass(frozen=True, slots=True)
class Stage:
    """One step and the actors that share it."""

    worker: Callable[..., Worker]  # makes the worker in each actor, from `arguments`, which must be picklable
    arguments: tuple[Any, ...]
    actors: int  # how many work side by side
    cpus: float  # logical CPUs that each of them holds
    gpus: float = 0.0  # and logical GPUs: below 1 where several stages share each
    here: bool = False  # whether they work on the host of whoever asks alone


def stream_here(batches: Sequence[pa.Table], stages: Sequence[Stage]) -> Generator[pa.Table]:
    """Pass every batch through all stages, one after the other in this process."""
    workers = [stage.worker(*stage.arguments) for stage in stages]
    for batch in batches:
        yield _through(workers, batch)


def run_through(work: tuple[Sequence[pa.Table], Sequence[Stage]]) -> list[pa.Table]:
    """All stages over a few batches, as one task: starting one worker takes less than starting an actor per stage."""
    batches, stages = work
    return list(stream_here(batches, stages))


def _through(workers: Sequence[Worker], batch: pa.Table) -> pa.Table:
    return functools.reduce(lambda table, worker: worker.run(table), workers, batch)


class RunTasks(Protocol):
    """Runs a function on tasks, like `map`."""

    def __call__(
        self,
        run: Callable[[Any], Any],
        tasks: Sequence[Any],
        *,
        cpus: float = 1.0,
        gpus: float = 0.0,
        here: bool = False,
        on: Sequence[str] | None = None,
    ) -> Iterable[Any]:
        """Results in the order of the tasks, each of which holds so many logical CPUs and GPUs.

        They run where there is room, all on this host with `here`, or each `on` the host of that name.
        """
        ...


@dataclass(frozen=True, slots=True)
class Executor:
    """Where work runs."""

    stream: Callable[[Sequence[pa.Table], Sequence[Stage]], Generator[pa.Table]]  # passes batches through stages
    tasks: RunTasks
    cpus: Callable[[], int]  # logical CPUs there are
    gpus: Callable[[], int | None]  # logical GPUs; None where nobody deals them out, and work takes what it finds
    # runs a function once on every other host there is; its name, and what was returned there
    on_other_hosts: Callable[[Callable[[], Any]], Sequence[tuple[str, Any]]]
    hosts: Callable[[], Sequence[str]] = tuple  # names of the hosts that have a CPU for tasks, this one's first

    def after(self, prepare: Callable[[], None]) -> Executor:
        """The same, prepared before anything is asked of it: that may be done again and again."""

        def prepared(ask: Callable[..., Any]) -> Callable[..., Any]:
            def asked(*arguments: Any, **options: Any) -> Any:
                prepare()
                return ask(*arguments, **options)

            return asked

        asked: list[Callable[..., Any]] = [
            self.stream,
            self.tasks,
            self.cpus,
            self.gpus,
            self.on_other_hosts,
            self.hosts,
        ]
        return Executor(*map(prepared, asked))

    def guarded(self, guard: Guard) -> Executor:
        """The same, where every worker and every task calls a guard first, which raises where it must not work."""

        def stream(batches: Sequence[pa.Table], stages: Sequence[Stage]) -> Generator[pa.Table]:
            made = [replace(stage, worker=functools.partial(_made, guard, stage.worker)) for stage in stages]
            return self.stream(batches, made)

        def tasks(run: Callable[[Task], Result], tasks: Sequence[Task], **options: Any) -> Iterable[Result]:
            return self.tasks(functools.partial(_run, guard, run), tasks, **options)

        return replace(self, stream=stream, tasks=tasks)


def _made(guard: Guard, worker: Callable[..., Worker], *arguments: Any) -> Worker:
    guard()
    return worker(*arguments)


def _run(guard: Guard, run: Callable[[Task], Result], task: Task) -> Result:
    guard()
    return run(task)


def _tasks_here(run: Callable[[Task], Result], tasks: Sequence[Task], **_: Any) -> Iterable[Result]:
    return map(run, tasks)


HERE = Executor(stream_here, _tasks_here, lambda: 1, lambda: None, lambda _: ())
"""In this process alone, one thing after the other."""


def in_threads(count: int) -> Executor:
    """In this process alone, so many things side by side; models and parsers do their work outside of Python's lock."""

    def stream(batches: Sequence[pa.Table], stages: Sequence[Stage]) -> Generator[pa.Table]:
        own = threading.local()  # a thread has workers of its own: they are not made to be shared

        def through(batch: pa.Table) -> pa.Table:
            if not hasattr(own, "workers"):
                own.workers = [stage.worker(*stage.arguments) for stage in stages]
            return _through(own.workers, batch)

        with ThreadPoolExecutor(count, "index") as pool:
            pending = [pool.submit(through, batch) for batch in batches]
            try:
                for done in as_completed(pending):
                    yield done.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def tasks(run: Callable[[Task], Result], tasks: Sequence[Task], **_: Any) -> Iterable[Result]:
        pool = ThreadPoolExecutor(count, "index")
        results = pool.map(run, tasks)
        pool.shutdown(wait=False)
        return results

    return Executor(stream, tasks, lambda: count, lambda: None, lambda _: ()) if count > 1 else HERE
