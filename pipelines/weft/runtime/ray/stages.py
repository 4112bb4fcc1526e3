"""Work spread over a cluster: tables streamed through pools of actors by Ray Data, and tasks that are retried."""

from __future__ import annotations

import logging
import os
import pickle
import socket
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from weft.domain.errors import WeftError
from weft.runtime.ray.cluster import connect, remote_cause, starts_its_own
from weft.runtime.settings import ClusterSettings
from weft.runtime.stages import Executor, Result, Stage, Task, Worker, in_threads

_ERROR = "error"  # column of a batch that a worker could not make
_EXPLAINED = (WeftError, OSError)  # what workers raise that says itself what was expected and found
_LOOK_S = 1.0  # between looks at whether nodes live
_TASK_RETRIES = 3  # of a task whose worker died; its exceptions are not retried


def stream(batches: Sequence[pa.Table], stages: Sequence[Stage]) -> Generator[pa.Table]:
    """Pass every batch through all stages, in whatever order they get done; only batches in flight are in memory.

    Who stops before the end closes the stream (`contextlib.closing`): one that is still open when the process leaves
    the cluster joins it again to stop its actors, and waits for an answer that never comes.

    Raises:
        WeftError, OSError: What a worker raised, as it raised it; the stream stops.
    """
    if not batches:
        return
    _prepare()
    dataset = ray.data.from_arrow(list(batches))
    for stage in stages:
        dataset = dataset.map_batches(
            _Step,
            fn_constructor_args=(stage.worker, stage.arguments),
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=min(stage.actors, len(batches))),
            num_cpus=stage.cpus if not stage.here or _cpus_here() else 0,
            num_gpus=stage.gpus,
            **_placed(here=stage.here),
        )
    try:
        with closing(iter(dataset.iter_batches(batch_size=1, batch_format="pyarrow", prefetch_batches=0))) as made:
            for batch in made:
                _raise_carried(batch)
                yield batch
    except RayError as error:
        raise remote_cause(error, _EXPLAINED) from error


def run_tasks(
    run: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    cpus: float = 1.0,
    gpus: float = 0.0,
    here: bool = False,
    on: Sequence[str] | None = None,
) -> Iterator[Result]:
    """Run a function on every task, side by side on the cluster, on this host, or each on the node of an id.

    Results come in the order of the tasks.

    Each task holds `gpus` logical GPUs, and Ray shows it no others. One that holds none sees every GPU of its node,
    and has to be told to leave them alone. A host that has no CPU for the cluster, as heads often have none, runs its
    own tasks in threads of this process.
    """
    if here and not _cpus_here():
        return iter(in_threads(len(os.sched_getaffinity(0))).tasks(run, tasks))

    def on_a_worker(task: Task) -> Result:
        return run(task)

    held = {"num_cpus": cpus, "num_gpus": gpus}
    remote = ray.remote(max_retries=_TASK_RETRIES, **held, **_placed(here=here))(on_a_worker)
    if on is None:
        return _results([remote.remote(task) for task in tasks])
    placed = [remote.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)) for node in on]
    return _results_while(set(on), [each.remote(task) for each, task in zip(placed, tasks, strict=True)])


def _placed(*, here: bool) -> dict[str, Any]:
    """What has Ray place a worker on this host, or wherever there is room."""
    if not here:
        return {}
    return {"scheduling_strategy": NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)}


def _results(pending: Sequence[Any]) -> Iterator[Any]:
    try:
        for result in pending:
            yield ray.get(result)
    except RayError as error:
        raise remote_cause(error, _EXPLAINED) from error


def _results_while(nodes: set[str], pending: Sequence[Any]) -> Iterator[Any]:
    """The results of tasks, as long as nodes live: Ray lets a task wait for ever that is to run on a dead one."""
    for number, result in enumerate(pending):
        while not ray.wait([result], timeout=_LOOK_S)[0]:
            if not nodes <= _alive():
                for waiting in pending[number:]:
                    ray.cancel(waiting)
                raise WeftError("expected every host to live while its tasks run, found that one was lost: run again")
        yield from _results([result])


def run_on_other_hosts(run: Callable[[], Result]) -> list[tuple[str, Result]]:
    """Run a function once on every other node of the cluster; the name of its host, and what it returned there."""

    def on_a_host() -> tuple[str, Result]:
        return socket.gethostname(), run()

    remote = ray.remote(num_cpus=0, max_retries=_TASK_RETRIES)(on_a_host)
    others = _alive() - {ray.get_runtime_context().get_node_id()}
    asked = {
        node: remote.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
        for node in sorted(others)
    }
    answers: list[tuple[str, Result]] = []
    for node, answer in asked.items():
        try:
            answers.append(ray.get(answer))
        except RayError as error:
            if node in _alive():
                raise remote_cause(error, _EXPLAINED) from error
    return answers


def _cpus_here() -> bool:
    own = ray.get_runtime_context().get_node_id()
    return any(node["NodeID"] == own and node["Resources"].get("CPU", 0.0) >= 1.0 for node in ray.nodes())


def _alive() -> set[str]:
    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


def cluster_hosts() -> list[str]:
    """Ids of the nodes that have a CPU for tasks, this one first if it has."""
    own = ray.get_runtime_context().get_node_id()
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0.0) >= 1.0]
    return sorted(nodes, key=lambda node: (node != own, node))


def cluster_cpus() -> int:
    """Logical CPUs of the cluster, at least 1."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def cluster_gpus() -> int:
    """Logical GPUs of the cluster."""
    return int(ray.cluster_resources().get("GPU", 0))


ON_CLUSTER = Executor(stream, run_tasks, cluster_cpus, cluster_gpus, run_on_other_hosts, cluster_hosts)
"""On the cluster that this process has joined."""


def executors_of(settings: ClusterSettings, soon: Executor) -> tuple[Executor, Executor]:
    """On the cluster that this process joins now, for all; one that is to be started keeps none waiting for `soon`."""
    if starts_its_own(settings):
        return ON_CLUSTER.after(partial(connect, settings)), soon
    connect(settings)
    return ON_CLUSTER, ON_CLUSTER


class _Step:
    """A worker as Ray Data calls it; its failures go on as data, for Ray makes a failed actor anew without end."""

    def __init__(self, worker: Callable[..., Worker], arguments: tuple[Any, ...]) -> None:
        self._failed: pa.Table | None = None
        try:
            self._worker = worker(*arguments)
        except _EXPLAINED as error:
            self._failed = _carried(error)

    def __call__(self, batch: pa.Table) -> pa.Table:
        if _ERROR in batch.column_names:
            return batch
        if self._failed is not None:
            return self._failed
        try:
            return self._worker.run(batch)
        except _EXPLAINED as error:
            return _carried(error)


def _carried(error: WeftError | OSError) -> pa.Table:
    """An error as data, because Ray's wrappers keep no more of one than its text."""
    if isinstance(error, OSError):  # a full disk, for one; others have constructors of their own, and may not come back
        error = OSError(error.errno, error.strerror, error.filename) if error.errno else OSError(str(error))
    return pa.table({_ERROR: pa.array([pickle.dumps(error)], pa.binary())})


def _raise_carried(batch: pa.Table) -> None:
    if _ERROR in batch.column_names:
        # Made by a worker of this same stream.
        raise pickle.loads(batch[_ERROR][0].as_py())  # noqa: S301


def _prepare() -> None:
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False  # the pipeline shows its own, in its own words
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # what fails is raised, and told once
