"""Work units: a fixed group of source items that passes through the stages as one row of Arrow tables."""

from __future__ import annotations

import errno
import functools
import json
import pickle
import random
import secrets
import shutil
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.errors import StoreError
from weft.indexes.dense.tokens import projection_of
from weft.ingestion.sources.items import FileItem, SourceItem
from weft.runtime.storage.errors import named
from weft.runtime.storage.run_files import RunFiles
from weft.runtime.storage.working_copy import working_copy_of

UNIT_BYTES = 65_536
"""Files of this many bytes make a unit: few enough that no encoder waits long for the last one's end."""

_DOCUMENT_BYTES = 300  # of text that take as long as a document costs besides its text


@dataclass(frozen=True, slots=True)
class Unit:
    """One group of items and what the stages made of it so far."""

    number: int  # from 0: with the items it makes the results reproducible (ARC-9)
    items: Sequence[SourceItem]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)  # in the shapes of `indexes.schemas`
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of its items."""
        return sum(item.size for item in self.items)

    @property
    def work(self) -> int:
        """How much there is to do in it, in bytes of text: a document costs something besides its text."""
        return self.size + _DOCUMENT_BYTES * sum(item.count for item in self.items)

    def extended(self, tables: Mapping[str, pa.Table], counts: Mapping[str, int]) -> Unit:
        """The unit with further tables and counts."""
        return replace(self, tables={**self.tables, **tables}, counts={**self.counts, **counts})


class UnitWorker(ABC):
    """A stage that works on one unit at a time: the same unit with more tables. It does not know Ray."""

    def run(self, batch: pa.Table) -> pa.Table:
        """Work on a packed unit, as Ray hands it over."""
        return pack(self.work(unpack(batch)))

    def warm(self) -> None:  # noqa: B027  some load nothing
        """Load what the first unit with something new would wait for."""

    @abstractmethod
    def work(self, unit: Unit) -> Unit:
        """The unit with what this stage adds to it; the same unit always gives the same."""


Step = tuple[Callable[..., UnitWorker], tuple[Any, ...]]
"""What makes a worker, and from which arguments."""


class Chained(UnitWorker):
    """Several steps, one after the other, as one stage."""

    def __init__(self, *steps: Step) -> None:
        self._workers = [worker(*arguments) for worker, arguments in steps]

    def work(self, unit: Unit) -> Unit:
        """The unit with what each step adds to it."""
        return functools.reduce(lambda done, worker: worker.work(done), self._workers, unit)

    def warm(self) -> None:
        """Have each step load what it needs."""
        for worker in self._workers:
            worker.warm()


_AT_ONCE = 8  # parts that are fetched side by side


class WritePart(UnitWorker):
    """The last step writes the unit to a folder of parts: only counts travel on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def work(self, unit: Unit) -> Unit:
        """The unit's number and counts."""
        write_part(self._folder, unit)
        return Unit(unit.number, (), {}, unit.counts)


def grouped(items: Iterable[SourceItem], size: int) -> Iterator[Unit]:
    """Units of neighbouring items that hold `size` documents or `UNIT_BYTES` of files or more, but for the last one."""
    group: list[SourceItem] = []
    number = documents = total = 0
    for item in items:
        group.append(item)
        documents += item.count
        total += item.size if isinstance(item, FileItem) else 0
        if documents >= size or total >= UNIT_BYTES:
            yield Unit(number, tuple(group))
            number, documents, total, group = number + 1, 0, 0, []
    if group:
        yield Unit(number, tuple(group))


def shuffled(units: Iterable[Unit]) -> list[Unit]:
    """Units in an order that is always the same, and in which those that are done say what the others will take.

    A unit of twice `UNIT_BYTES` or more comes first, the longest before all: nobody waits for it at the end.
    """
    mixed = list(units)
    random.Random(0).shuffle(mixed)  # noqa: S311  nothing is kept secret by it
    return sorted(mixed, key=lambda unit: -max(unit.size, 2 * UNIT_BYTES))


def pack(unit: Unit) -> pa.Table:
    """A unit as a table of one row, which is how it travels between workers."""
    columns = {
        "number": pa.array([unit.number], pa.int64()),
        "items": pa.array([pickle.dumps(tuple(unit.items))], pa.large_binary()),
        "counts": pa.array([json.dumps(dict(unit.counts))], pa.string()),
        **{f"table:{name}": pa.array([_bytes(table)], pa.large_binary()) for name, table in unit.tables.items()},
    }
    return pa.table(columns)


def unpack(row: pa.Table) -> Unit:
    """The unit in a table of one row."""
    if row.num_rows != 1:
        raise ValueError(f"expected one unit, found {row.num_rows}")
    tables = {
        name.removeprefix("table:"): pa.ipc.open_stream(row[name][0].as_buffer()).read_all()
        for name in row.column_names
        if name.startswith("table:")
    }
    # Written by `pack` in this same run, never read from a file or a stranger.
    items = pickle.loads(row["items"][0].as_py())  # noqa: S301
    return Unit(row["number"][0].as_py(), items, tables, json.loads(row["counts"][0].as_py()))


def _bytes(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def part_of(folder: Path, unit: Unit) -> Path:
    """The part of a unit: the folder with its tables, as the builder takes it."""
    return folder / f"{unit.number:08d}"


def write_part(folder: Path, unit: Unit) -> Path:
    """Write a unit's tables, in one step for readers; a unit that is written already stays as it is.

    The folder is the run's own and is there already: a worker that does not see it would write beside the store. Of a
    store in an object store it makes the folder, and sends what it wrote there.
    """
    part, run_files = part_of(folder, unit), _run_files_of(folder)
    is_guest = run_files is not None and run_files.enter(folder)
    writing = folder / f".{part.name}-{secrets.token_hex(4)}"
    writing.mkdir()
    try:
        with named(writing):
            for name, table in unit.tables.items():
                if table.num_rows:
                    pq.write_table(table, writing / f"{name}.parquet")
        # Another worker that was given the same unit may have been first: its tables are the same.
        try:
            writing.rename(part)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
    finally:
        shutil.rmtree(writing, ignore_errors=True)
    if run_files is not None and is_guest:
        _send_part(run_files, part)
    return part


def bring_part(part: Path) -> None:
    """Fetch a part that a worker on another host has sent to the object store, if it is one."""
    if not part.is_dir() and (run_files := _run_files_of(part.parent)) is not None:
        run_files.bring(part, optional=True)


def sent_parts(folder: Path, units: Sequence[Unit]) -> list[Path]:
    """The parts of all units, those of this host sent to the object store as those of others are."""
    parts = [part_of(folder, unit) for unit in units]
    if (run_files := _run_files_of(folder)) is not None:
        here = [part for part in parts if part.is_dir()]
        with ThreadPoolExecutor(_AT_ONCE, "parts") as threads:
            for _ in threads.map(functools.partial(_send_part, run_files), here):
                pass
    return parts


def _send_part(run_files: RunFiles, part: Path) -> None:
    run_files.send(part)
    for tokens in part.glob("tokens*.parquet"):
        _send_once(run_files, part.parent, projection_of(tokens))


@functools.lru_cache(maxsize=8)
def _send_once(run_files: RunFiles, _of_run: Path, path: Path) -> None:
    run_files.send(path)


def _run_files_of(folder: Path) -> RunFiles | None:
    root = folder.parents[1]
    return None if working_copy_of(root) is None else RunFiles(root)


def written_parts(folder: Path, units: Sequence[Unit]) -> list[Path]:
    """The parts of all units, each looked up by its name: a network file system may list a folder as it was."""
    parts = [part_of(folder, unit) for unit in units]
    with ThreadPoolExecutor(_AT_ONCE, "parts") as threads:
        for _ in threads.map(bring_part, parts):
            pass
    if missing := [part.name for part in parts if not part.is_dir()]:
        raise StoreError(
            f"{folder} on host {socket.gethostname()}: expected {len(units)} parts, found none of {missing[:3]}, which "
            "workers have written: give the store a file system that shows every host at once what another one wrote"
        )
    return parts
