"""Decoded copies of a generation's tables: made by who reads one first, mapped by all, held by none (OPS-5).

Parquet is packed: whoever reads it has a copy of its own, 1.5 KB for each content. Arrow's own format lies in the file
as it does in memory. Copies are derived: what is missing or damaged is made anew, and where none can be written a
table is read as it was.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

log = logging.getLogger(__name__)

COPIES_FOLDER = Path("cache/tables")
"""Below a store."""


class TableCopies:
    """The copies of one generation; those of other generations go when one is made."""

    def __init__(self, folder: Path, generation: str) -> None:
        self._folder = folder
        self._generation = generation

    def read(self, name: str, file: pq.ParquetFile, columns: Sequence[str]) -> pa.Table:
        """Some columns of a table, each in one piece."""
        path = self._folder / f"{self._generation}.{name}.arrow"
        rows = file.metadata.num_rows
        if (mapped := _mapped(path, columns, rows)) is not None:
            return mapped
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)  # damaged
        table = read_whole(file, columns)
        if not self._written(path, table):
            return table
        again = _mapped(path, columns, rows)
        return table if again is None else again

    def _written(self, path: Path, table: pa.Table) -> bool:
        temporary = ""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=".")
            with os.fdopen(handle, "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
                writer.write_table(table)
            with contextlib.suppress(FileExistsError):  # another one was first: all map the same file
                path.hardlink_to(temporary)
        except OSError as error:
            log.debug("%s: not written: %s", path, error)
            return False
        finally:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        for other in self._folder.glob("*.arrow"):
            if not other.name.startswith(f"{self._generation}."):
                other.unlink(missing_ok=True)
        return True


def read_whole(file: pq.ParquetFile, columns: Sequence[str]) -> pa.Table:
    """Some columns of a table, each in one piece, in memory."""
    table: pa.Table = file.read().select(list(columns)).combine_chunks()
    return table


def remove_copies(folder: Path, generations: Sequence[str]) -> None:
    """Remove the copies of some generations."""
    for generation in generations:
        for path in folder.glob(f"{generation}.*.arrow"):
            path.unlink(missing_ok=True)


def _mapped(path: Path, columns: Sequence[str], rows: int) -> pa.Table | None:
    """A copy; None where there is none that holds what it should."""
    try:
        with pa.memory_map(str(path)) as source:
            table: pa.Table = pa.ipc.open_file(source).read_all()
    except (OSError, pa.ArrowInvalid):
        return None
    whole = all(column.num_chunks <= 1 for column in table.columns)
    return table if whole and table.column_names == list(columns) and table.num_rows == rows else None
