"""Who builds a generation (SCL-6).

All hosts, where all see its folder. Where an object store is all that they share, each builds some of the shards on its
own disk, gives others what they need of it through the store, and sends what is complete. What is one shard is built
by the host of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from weft.catalog.catalog import GENERATIONS, Catalog
from weft.domain.errors import StoreError, WeftError
from weft.indexes.builder import work_folder
from weft.indexes.dense.vectors import has_gpu
from weft.indexes.generation import open_indexes
from weft.indexes.graph.graph import GRAPH_FOLDER
from weft.indexes.manifest import CHUNKS_FOLDER, DESCRIBED, Manifest
from weft.indexes.parts import IndexPart, PartFacts, Share
from weft.indexes.shards import SHARDS_FOLDER, MapTasks, shard_folders
from weft.indexes.spread import Indexes, facts_of
from weft.ingestion.plan import CUDA, Describe, IndexPlan
from weft.ingestion.stages.reuse import Base
from weft.runtime.stages import Executor
from weft.runtime.storage.files import verify_some
from weft.runtime.storage.run_files import Brought, RunFiles

Parts = Callable[[Manifest], Sequence[IndexPart]]
"""The shards of a staged generation, each where it was built."""


@dataclass(frozen=True, slots=True)
class Builders:
    """Who builds one generation."""

    executor: Executor  # where all that they share can be reached
    tasks: MapTasks
    alone: MapTasks  # runs the tasks of a generation of one shard
    on_gpus: MapTasks | None = None  # runs tasks that hold a GPU each
    run_files: RunFiles | None = None  # of hosts that share an object store alone; None of others
    hosts: Sequence[str] = ()  # these, if each builds shards of its own

    @property
    def lost_host(self) -> bool:
        """Whether one is gone that may have had a shard."""
        return not set(self.hosts) <= set(self.executor.hosts())

    def seen(self, generation: Path | None) -> Path | None:
        """Where tasks find the generation before."""
        borrowed = self.run_files.borrowed if self.run_files is not None else None
        return generation if generation is None or borrowed is None else borrowed[0]


def builders_of(
    executor: Executor, catalog: Catalog, parts: Path, staged: Path, before: Base, *, is_small: bool
) -> Builders:
    """Who builds a staged generation.

    Args:
        parts: The folder of what it is merged from.
        before: What it builds on.
        is_small: Whether it has one shard in any case.
    """
    if not catalog.is_remote or all(sees for _, sees in executor.on_other_hosts(staged.is_dir)):
        on_gpus = partial(executor.tasks, gpus=1.0)
        gpus = executor.gpus() != 0 and all(on_gpus(has_gpu, [None]))
        return Builders(executor, executor.tasks, executor.tasks, on_gpus if gpus else None)
    # A GPU may be on another host than a shard, so none is asked for.
    hosts = executor.hosts()
    if is_small or len(hosts) < 2:
        alone = replace(executor, tasks=partial(executor.tasks, here=True), gpus=lambda: 0)
        return Builders(alone, alone.tasks, alone.tasks)
    borrowed = None
    if (folder := before.folder or before.earlier) is not None:
        borrowed = work_folder(staged) / "before", f"{GENERATIONS}/{before.generation}"
        borrowed[0].parent.mkdir(parents=True)
        borrowed[0].symlink_to(folder)
    run_files = RunFiles(catalog.root.absolute(), (parts, staged), borrowed)
    spread = run_files.spread(executor.tasks, hosts), run_files.spread(executor.tasks, ())
    return Builders(executor, *spread, run_files=run_files, hosts=hosts)


def sending(
    builders: Builders, staged: Path, shards: int, run: MapTasks
) -> Callable[[Manifest], Collection[str]] | None:
    """Has the hosts send the shards that they built; see `Catalog.publish`. None where all is on the run's host."""
    run_files = builders.run_files
    if run_files is None or shards == 1:
        return None

    def elsewhere(manifest: Manifest) -> Collection[str]:
        tasks = [_Complete(number, run_files, staged, manifest) for number in range(shards)]
        return {file for files in run(_send, tasks) for file in files}

    return elsewhere


@dataclass(frozen=True, slots=True)
class _Complete:
    """A shard of a sealed generation, where it was built."""

    number: int
    run_files: RunFiles
    staged: Path
    manifest: Manifest


def _send(task: _Complete) -> list[str]:
    below = f"{SHARDS_FOLDER}/{task.number:04d}/"
    files = {file: digest for file, digest in task.manifest.files.items() if file.startswith(below)}
    verify_some(task.staged, files)
    name, values = f"{GENERATIONS}/{task.manifest.id}", {"files": dict(task.manifest.files)}
    task.run_files.copy.send_some(name, values, task.staged, files)
    return list(files)


def description(plan: IndexPlan, staged: Path, shards: int, builders: Builders, run: MapTasks) -> Mapping[str, object]:
    """What searches of a staged generation say about it, where that is asked for; `run` has built its shards."""
    if plan.describe is None:
        return {}
    if builders.run_files is None:
        on_gpu = any(one.device == CUDA for one in plan.encoders) and builders.executor.gpus() != 0
        (facts,) = builders.executor.tasks(plan.describe, [staged], gpus=float(on_gpu))
    elif shards == 1:
        (facts,) = run(plan.describe, [staged])
    else:
        # The task that asks holds a CPU while it waits, perhaps its host's only one.
        asking = builders.run_files.spread(partial(builders.executor.tasks, cpus=0.0), builders.hosts)
        (facts,) = run(_describe, [_Describing(plan.describe, staged, shards, partial(_parts, staged, asking))])
    return {**facts, DESCRIBED: 1.0}


@dataclass(frozen=True, slots=True)
class _Describing:
    """A staged generation whose shards are searched elsewhere: tables and graph are read here."""

    describe: Describe
    staged: Path
    shards: int
    parts: Parts

    @property
    def reads(self) -> Iterator[Brought]:
        """Tables and graph of all shards."""
        for shard in shard_folders(self.staged, self.shards):
            yield Brought(shard / CHUNKS_FOLDER)
            yield Brought(shard / GRAPH_FOLDER, optional=True)


def _describe(task: _Describing) -> Mapping[str, object]:
    return task.describe(task.staged, task.parts)


def _parts(staged: Path, run: MapTasks, manifest: Manifest) -> list[IndexPart]:
    return [_BuiltPart(staged, manifest, number, run) for number in range(len(manifest.shards))]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A function of the indexes of one shard, and its arguments."""

    number: int
    staged: Path
    manifest: Manifest
    work: Callable[..., Any]
    arguments: tuple[Any, ...]


class _BuiltPart:
    """One shard of a staged generation, searched where it was built."""

    def __init__(self, staged: Path, manifest: Manifest, number: int, run: MapTasks) -> None:
        self.name = f"shard-{number}"
        self._asked = partial(_Asked, number, staged, manifest)
        self._run = run
        self.rows = Share(number, len(manifest.shards)).rows(manifest)
        self.facts: PartFacts = self.begin(facts_of)()

    def begin(self, work: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        """Begin it; what fails fails as a whole: an answer without a shard says nothing of the generation."""
        results = iter(self._run(_ask, [self._asked(work, arguments)]))

        def reply() -> Any:
            try:
                return next(results)
            except StoreError as error:
                raise WeftError(f"{self.name}: {error}") from error

        return reply

    def close(self) -> None:
        """Nothing of it is open here."""


_HELD = 2  # shards that a worker keeps open: it is asked for one again and again
_held: dict[tuple[Path, int], Indexes] = {}


def _ask(task: _Asked) -> Any:
    of = task.staged, task.number
    if of not in _held:
        while len(_held) >= _HELD:
            _held.pop(next(iter(_held)))
        _held[of] = open_indexes(task.staged, task.manifest, Share(task.number, len(task.manifest.shards)))
    return task.work(_held[of], *task.arguments)
