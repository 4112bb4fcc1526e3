"""Units through workers, wherever these are: what is new is told from what is live, and passes through all stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from pipelines.catalog.catalog import Catalog
from pipelines.ingestion.report import ProgressReporter
from pipelines.ingestion.settings import IngestSettings
from pipelines.ingestion.stages.read_and_chunk import NewWork, ReadAndChunk, ReadRules
from pipelines.ingestion.stages.visibility import SUSPECT, require_gone
from pipelines.ingestion.units import UNIT_BYTES, Unit, pack, part_of, shuffled, unpack, write_part
from pipelines.runtime.ray.stages import Executor, Stage, run_through
from pipelines.runtime.storage.errors import named

_UNITS_COMPARED = 256  # by one task


@dataclass(frozen=True, slots=True)
class Changes:
    """Units with something new.

    Attributes:
        are_few: Whether one worker is done with them before a pool of actors would have started.
    """

    units: Sequence[Unit]
    are_few: bool


@dataclass(frozen=True, slots=True)
class _Task:
    """Neighbouring units to be compared with the live generation; those that are done already become parts."""

    units: Sequence[Unit]
    reading: ReadRules
    parts: Path


@dataclass(frozen=True, slots=True)
class _Compared:
    """Units with something new and how much that is, and the counts of the others."""

    changed: Sequence[Unit]
    work: NewWork
    counts: Mapping[str, int]


@contextmanager
def staged_folder(catalog: Catalog) -> Iterator[Path]:
    """A folder in the store, removed in the end; of one that was published nothing is left there by then."""
    folder = catalog.stage()
    try:
        with named(folder):
            yield folder
    finally:
        catalog.discard(folder)


def changed_units(
    units: Sequence[Unit], reading: ReadRules, parts: Path, executor: Executor, reporter: ProgressReporter
) -> Changes:
    """The units that the live generation does not hold as they are; the others are written to the folder of parts."""
    reporter.begin(len(units))
    if not len(reading.live):
        return Changes(units, len(units) <= reading.ingest.pools.few)
    reporter.enter("comparing with what is live", work=sum(unit.work for unit in units))
    starts = range(0, len(units), _UNITS_COMPARED)
    tasks = [_Task(units[start : start + _UNITS_COMPARED], reading, parts) for start in starts]
    # One task alone is done before a worker for it would have started.
    results = executor.tasks(_compare, tasks) if len(tasks) > 1 else map(_compare, tasks)
    changed: list[Unit] = []
    new = NewWork()
    for task, result in zip(tasks, results, strict=True):
        numbers = {unit.number for unit in result.changed}
        _check([unit for unit in task.units if unit.number not in numbers], result.counts, parts, executor)
        changed += result.changed
        new += result.work
        done = len(task.units) - len(result.changed)
        reporter.add(result.counts, units=done, work=sum(unit.work for unit in task.units))
    return Changes(changed, _is_little(new, reading.ingest))


def compute(
    changes: Changes, stages: Sequence[Stage], parts: Path, executor: Executor, reporter: ProgressReporter
) -> None:
    """Pass changed units through the stages, which write them to the folder of parts."""
    by_number = {unit.number: unit for unit in changes.units}
    reporter.enter("reading and embedding", work=sum(unit.work for unit in changes.units))
    rows = [pack(unit) for unit in shuffled(changes.units)]
    with closing(_in_one_task(rows, stages, executor) if changes.are_few else executor.stream(rows, stages)) as made:
        for row in made:
            done = unpack(row)
            _check([by_number[done.number]], done.counts, parts, executor)
            reporter.add(done.counts, work=by_number[done.number].work)


def _in_one_task(rows: Sequence[pa.Table], stages: Sequence[Stage], executor: Executor) -> Generator[pa.Table]:
    if rows:
        for made in executor.tasks(run_through, [(rows, stages)]):
            yield from made


def _compare(task: _Task) -> _Compared:
    """Read every document and look its key up; a task lost with its worker is run again."""
    reader = ReadAndChunk(task.reading)
    changed: list[Unit] = []
    work = NewWork()
    counts: Counter[str] = Counter()
    for unit in task.units:
        compared = reader.compared(unit)
        if isinstance(compared, NewWork):
            changed.append(unit)
            work += compared
        else:
            write_part(task.parts, compared)
            counts.update(compared.counts)
    return _Compared(changed, work, dict(counts))


def _is_little(work: NewWork, settings: IngestSettings) -> bool:
    few = settings.pools.few
    return work.documents <= few * settings.unit_documents and work.characters <= few * UNIT_BYTES


def _check(units: Sequence[Unit], counts: Mapping[str, int], parts: Path, executor: Executor) -> None:
    """Look into what workers could not read of some units: no other host may be able to."""
    if any(counts.get(name) for name in SUSPECT):
        for unit in units:
            require_gone(unit, part_of(parts, unit), executor)
