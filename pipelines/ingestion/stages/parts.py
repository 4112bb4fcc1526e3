"""Parts on disk: what the stages made of each unit, one folder per unit, in the shape that the builder takes."""

from __future__ import annotations

import errno
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.ingestion.stages.worker import UnitWorker
from pipelines.ingestion.units import Unit
from pipelines.runtime.storage.errors import named

_HIDDEN = "."


def write_part(folder: Path, unit: Unit) -> Path:
    """Write a unit's tables, in one step for readers; a unit that is written already stays as it is.

    The folder is the run's own and is there already: a worker that does not see it would write beside the store.
    """
    part = part_of(folder, unit)
    writing = folder / f"{_HIDDEN}{part.name}-{secrets.token_hex(4)}"
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
    return part


def part_of(folder: Path, unit: Unit) -> Path:
    """Where the tables of a unit are written."""
    return folder / f"{unit.number:08d}"


class Written(UnitWorker):
    """The last stage, which writes what it made where it made it: only counts travel on.

    Args:
        worker: Makes the stage, from `arguments`.
        folder: Where parts go.
    """

    def __init__(self, worker: Callable[..., UnitWorker], arguments: tuple[Any, ...], folder: Path) -> None:
        self._worker = worker(*arguments)
        self._folder = folder

    def work(self, unit: Unit) -> Unit:
        """Write the unit and leave its counts."""
        done = self._worker.work(unit)
        write_part(self._folder, done)
        return Unit(unit.number, (), {}, done.counts)
