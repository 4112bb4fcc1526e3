"""Queries over Parquet files that are larger than memory; the one importer of DuckDB."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb
import pyarrow as pa

from weft.domain.errors import StoreError
from weft.runtime.storage.errors import advice_on

_DAMAGED = "if a file of the store is damaged, index again with `weft index --full`"
_CUTS = 4096  # values that rows may be cut at: as many times the bound can be sorted
_BATCH = 20_000  # rows that pass through Python at once
_TYPES = {"VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_()}

Database = duckdb.DuckDBPyConnection
"""A connection, for those whose queries are more than one at a time."""


def opened(spill: Path, *, memory_mb: int, threads: int) -> Database:
    """A database in memory that moves to the folder `spill` what its bound does not hold."""
    return duckdb.connect(config={"memory_limit": f"{memory_mb}MB", "threads": threads, "temp_directory": str(spill)})


def glob_escaped(path: Path) -> str:
    """A path as DuckDB's `read_parquet` takes it, to which some signs of a bare one stand for other names.

    Examples:
        >>> glob_escaped(Path("/builds/q?1/chunks.parquet"))
        '/builds/q[?]1/chunks.parquet'
    """
    return glob.escape(str(path))


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


class TableQueries:
    """SQL over Parquet files within a memory limit; what does not fit is spilled to a folder and removed at the end."""

    def __init__(
        self, spill: Path, *, memory_mb: int, threads: int, advice: str = "give `index.merge` more memory"
    ) -> None:
        self._connection = opened(spill, memory_mb=memory_mb, threads=threads)
        self._advice = advice

    def __enter__(self) -> TableQueries:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def define(self, name: str, files: Sequence[Path], schema: pa.Schema) -> None:
        """Name the rows of some files of one schema; no files are no rows. Column `part` names a row's folder."""
        if files:
            # A view takes no parameters, so the list goes through a variable.
            self._connection.execute(f"set variable {name}_files = $1", [[glob_escaped(file) for file in files]])
            source = f"read_parquet(getvariable('{name}_files'), filename = true, union_by_name = true)"
            columns = ", ".join(f'"{each}"' for each in schema.names)
            select = f"select {columns}, parse_path(filename)[-2] as part from {source}"  # noqa: S608  # our own names
            self._run(f"create view {name} as {select}")
        else:
            empty = schema.append(pa.field("part", pa.string())).empty_table()
            self._connection.register(name, empty)

    def register(self, name: str, columns: Mapping[str, Sequence[str]]) -> None:
        """Name a table of texts, for the queries to come."""
        self._connection.register(name, pa.table({key: pa.array(texts, pa.string()) for key, texts in columns.items()}))

    def keep(self, name: str, query: str) -> None:
        """Run a query and keep its rows under a name, for the queries to come."""
        self._run(f"create temp table {name} as {query}")

    def number(self, query: str) -> int:
        """The one number that a query answers."""
        ((number,),) = self._run(query).fetchall()
        return int(number)

    def counts(self, name: str, column: str) -> dict[str, int]:
        """Rows by the value of a column, the largest number first; "unknown" stands for no value."""
        query = f"select coalesce({column}, 'unknown') as value, count(*) from {name} group by value order by 2 desc, 1"  # noqa: S608
        return {str(value): int(count) for value, count in self._run(query).fetchall()}

    def rows(
        self, query: str, schema: pa.Schema, *, at_once: int, values: Mapping[str, object] | None = None
    ) -> Iterator[pa.Table]:
        """Rows of a query in tables of at most `at_once` rows of a schema; `values` stand for its `$name`s."""
        try:
            for batch in self._connection.sql(query, params=dict(values or {})).to_arrow_reader(at_once):
                yield pa.Table.from_batches([batch]).select(schema.names).cast(schema)
        except (duckdb.Error, pa.ArrowInvalid) as error:
            raise self._mapped(error) from error

    def ordered(self, query: str, by: Sequence[str], schema: pa.Schema, *, at_once: int) -> Iterator[pa.Table]:
        """As `rows`, in the order of columns of text that together tell all rows apart; however many rows there are.

        DuckDB's sort spills its rows to disk, but merging them takes memory that grows with their number. A range of
        the first column that the bound does not hold is therefore sorted in two halves, one after the other.

        Raises:
            StoreError: The query fails; or rows that are equal in the first column exceed the memory bound.
        """
        keys = self._sampled(query, by[0])
        ranges = [(0, len(keys) + 1)]  # of places among the keys: a range holds what lies from one key up to the next
        again = 0  # rows that were yielded before their range proved too long, and come once more
        while ranges:
            first, end = ranges.pop()
            passed = 0
            try:
                for table in self._between(query, by, keys[first - 1 : first], keys[end - 1 : end], at_once):
                    passed += table.num_rows
                    new = table.slice(again)
                    again -= table.num_rows - new.num_rows
                    yield new.select(schema.names).cast(schema)
            except (duckdb.Error, pa.ArrowInvalid, OSError) as error:
                if not _is_too_much(error) or end - first < 2:
                    raise self._mapped(error) from error
                again += passed
                middle = (first + end) // 2
                ranges += [(middle, end), (first, middle)]

    def _sampled(self, query: str, column: str) -> list[str]:
        """Different values of a column, in order, that cut the rows in parts of about one size."""
        sampled = f"select {column} from ({query}) using sample reservoir({_CUTS} rows) repeatable (1)"  # noqa: S608
        values = self._run(f"select distinct {column} from ({sampled}) order by 1").fetchall()  # noqa: S608
        return [str(value) for (value,) in values]

    def _between(
        self, query: str, by: Sequence[str], low: Sequence[str], high: Sequence[str], at_once: int
    ) -> Iterator[pa.Table]:
        """Rows whose first column lies from `low`, if there is one, up to below `high`, if there is one, in order."""
        bounds = [*(f"{by[0]} >= ${place}" for place, _ in enumerate(low, 1))]
        bounds += [f"{by[0]} < ${place}" for place, _ in enumerate(high, len(low) + 1)]
        where = f"where {' and '.join(bounds)}" if bounds else ""
        ordered = f"select * from ({query}) {where} order by {', '.join(by)}"  # noqa: S608  # our own names
        for batch in self._connection.sql(ordered, params=[*low, *high]).to_arrow_reader(at_once):
            yield pa.Table.from_batches([batch])

    def _run(self, query: str) -> Any:
        try:
            return self._connection.execute(query)
        except duckdb.Error as error:
            raise self._mapped(error) from error

    def _mapped(self, error: Exception) -> StoreError:
        advice = self._advice if _is_too_much(error) else advice_on(error, otherwise=_DAMAGED)
        return StoreError(f"expected tables that can be queried, found: {' '.join(str(error).split())}: {advice}")


def _is_too_much(error: Exception) -> bool:
    """Whether the memory bound was met; a stream of batches says so as an error of input and output."""
    return isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory Error" in str(error)
