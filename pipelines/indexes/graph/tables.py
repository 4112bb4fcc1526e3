"""Rows between Python and the joins of the graph, a batch at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.runtime.storage.tables import Database, opened

_BATCH = 20_000  # rows that pass through Python at once
_TYPES = {"VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_()}


@contextmanager
def database(scratch: Path, *, memory_mb: int, threads: int) -> Iterator[Database]:
    """A database in memory that moves to the folder `scratch` what its bound does not hold."""
    connection = opened(scratch, memory_mb=memory_mb, threads=threads)
    try:
        yield connection
    finally:
        connection.close()
        shutil.rmtree(scratch, ignore_errors=True)


def rows_of(connection: Database, query: str, values: Mapping[str, object] | None = None) -> Iterator[tuple[Any, ...]]:
    """Rows of a query, while the connection does other work."""
    cursor = connection.cursor().execute(query, values or {})
    while rows := cursor.fetchmany(_BATCH):
        yield from rows


def create(connection: Database, table: str, columns: Mapping[str, str]) -> None:
    """An empty table of columns with the types VARCHAR, BIGINT, DOUBLE or BOOLEAN."""
    connection.execute(f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")


def insert(connection: Database, table: str, columns: Mapping[str, str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Add rows to a table that `create` made with these columns."""
    waiting = iter(rows)
    types = [_TYPES[kind] for kind in columns.values()]
    while batch := list(islice(waiting, _BATCH)):
        arrays = [pa.array(column, kind) for column, kind in zip(zip(*batch, strict=True), types, strict=True)]
        connection.register("batch", pa.table(arrays, names=list(columns)))
        connection.execute(f"INSERT INTO {table} SELECT * FROM batch")  # noqa: S608
        connection.unregister("batch")
