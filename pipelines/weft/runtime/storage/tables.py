"""Queries over Parquet files that are larger than memory; the one importer of DuckDB."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.domain.errors import StoreError
from weft.runtime.storage.errors import advice_on

_DAMAGED = "if a file of the store is damaged, index again with `weft index --full`"
_CUTS = 4096  # rows that say where to cut all of them
_MOST_PARTS = 512  # files that are written side by side
_TOGETHER = 2_048  # rows that are sorted or cut, read at once
_BATCH = 20_000  # rows that pass through Python at once
_TYPES = {
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "BLOB": pa.binary(),
}

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


def literal(text: str) -> str:
    """A text as a query holds it, where no parameter can stand.

    Examples:
        >>> literal("it's")
        "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def file_rows(connection: Database, name: str, file: Path, first: int) -> None:
    """Name the rows of a file, each with its `place`, counted from `first` on."""
    connection.execute(
        f"""CREATE TEMP VIEW {name} AS SELECT * EXCLUDE (file_row_number), {first} + file_row_number AS place
            FROM read_parquet({literal(glob_escaped(file))}, file_row_number = true)"""  # noqa: S608  # our own names
    )


def create(connection: Database, table: str, columns: Mapping[str, str]) -> None:
    """An empty table of columns with the types VARCHAR, BIGINT, DOUBLE, BOOLEAN or BLOB."""
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
        self._spill = spill
        self._bound = memory_mb * 1024**2 // 8  # bytes that are sorted at once, held twice beside the query
        self._cuts = 0
        self._advice = advice

    def __enter__(self) -> TableQueries:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        shutil.rmtree(self._spill, ignore_errors=True)

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

        Rows that an eighth of the bound does not hold are cut once, by their first column, into files of about that
        size, each of which is sorted by itself: time grows with their number alone.

        Raises:
            StoreError: The query fails.
        """
        held: list[pa.RecordBatch] = []
        size = 0
        try:
            for batch in self._connection.sql(query).to_arrow_reader(_TOGETHER):
                held.append(batch)
                size += batch.nbytes
                if size > self._bound:
                    break
            else:
                yield from _sorted(pa.Table.from_batches(held, None if held else schema), by, schema, at_once)
                return
            bytes_of_row = size / sum(batch.num_rows for batch in held)
            del held
            for path in self._cut(query, by[0].strip('"'), bytes_of_row):
                with pa.memory_map(str(path)) as source:
                    yield from _sorted(pa.ipc.open_file(source).read_all(), by, schema, at_once)
                path.unlink()
        except (duckdb.Error, pa.ArrowInvalid, OSError) as error:
            raise self._mapped(error) from error

    def _cut(self, query: str, column: str, bytes_of_row: float) -> list[Path]:
        """The rows of a query in files that follow one another by a column; rows alike in it share a file."""
        sampled = f"select {column} from ({query}) using sample reservoir({_CUTS} rows) repeatable (1)"  # noqa: S608
        keys = [str(key) for (key,) in self._run(f"{sampled} order by 1").fetchall()]
        rows = self.number(f"select count(*) from ({query})")  # noqa: S608
        parts = min(_MOST_PARTS, 1 + int(rows * bytes_of_row / self._bound))
        bounds = sorted({keys[len(keys) * part // parts] for part in range(1, parts)})
        self._cuts += 1
        folder = self._spill / f"cut-{self._cuts}"
        folder.mkdir(parents=True)
        paths = [folder / f"{part:04d}.arrow" for part in range(len(bounds) + 1)]
        with ExitStack() as files:
            writers: dict[int, Any] = {}
            for table in self._numbered(query, column, bounds):
                parts_of = table.column("cut_number").to_numpy()
                order = np.argsort(parts_of, kind="stable")
                apart = table.drop_columns(["cut_number"]).take(order)
                numbers, firsts, counts = np.unique(parts_of[order], return_index=True, return_counts=True)
                for number, first, count in zip(numbers.tolist(), firsts.tolist(), counts.tolist(), strict=True):
                    if number not in writers:
                        opened = pa.ipc.new_file(str(paths[number]), apart.schema)
                        writers[number] = files.enter_context(opened)
                    writers[number].write_table(apart.slice(first, count))
        return [path for path in paths if path.exists()]

    def _numbered(self, query: str, column: str, bounds: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of a query, each with how many of some bounds it is not below, as many at once as are worth it."""
        numbered = f"select *, len(list_filter($bounds, lambda one: one <= {column})) as cut_number from ({query})"  # noqa: S608
        held: list[pa.RecordBatch] = []
        for batch in self._connection.sql(numbered, params={"bounds": list(bounds)}).to_arrow_reader(_TOGETHER):
            held.append(batch)
            if sum(each.nbytes for each in held) > self._bound // 4:
                yield pa.Table.from_batches(held)
                held = []
        if held:
            yield pa.Table.from_batches(held)

    def _run(self, query: str) -> Any:
        try:
            return self._connection.execute(query)
        except duckdb.Error as error:
            raise self._mapped(error) from error

    def _mapped(self, error: Exception) -> StoreError:
        advice = self._advice if _is_too_much(error) else advice_on(error, otherwise=_DAMAGED)
        return StoreError(f"expected tables that can be queried, found: {' '.join(str(error).split())}: {advice}")


def _sorted(table: pa.Table, by: Sequence[str], schema: pa.Schema, at_once: int) -> Iterator[pa.Table]:
    whole = table.combine_chunks()
    order = pc.sort_indices(whole, sort_keys=[(column.strip('"'), "ascending") for column in by])
    for start in range(0, len(order), at_once):
        yield whole.take(order.slice(start, at_once)).select(schema.names).cast(schema)


def _is_too_much(error: Exception) -> bool:
    """Whether the memory bound was met; a stream of batches says so as an error of input and output."""
    return isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory Error" in str(error)
