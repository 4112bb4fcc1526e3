"""Tables of a partition's state as this version has them, with what an earlier one kept in them (ARC-3)."""

from __future__ import annotations

import contextlib
import sqlite3


def make_tables(connection: sqlite3.Connection, schema: str) -> None:
    """Create the tables that are not there yet, and take over those that lack columns; inside a transaction.

    A column that a table lacks gets the schema's default. A table that is taken over has no sum afterwards:
    `rows.protect` makes a new one.

    Args:
        connection: To a store that was verified.
        schema: Statements, separated by semicolons.
    """
    wanted = _columns_of(schema)
    earlier = {
        table: columns
        for table in wanted
        if (columns := _columns(connection, table)) and not set(wanted[table]) <= set(columns)
    }
    for table in earlier:
        # Indexes go along under their names, which the ones of the new table need.
        for index in _indexes(connection, table):
            connection.execute(f"drop index {index}")
        connection.execute(f"alter table {table} rename to earlier_{table}")
    for statement in schema.split(";"):
        connection.execute(statement)
    for table, columns in earlier.items():
        names = ", ".join(columns)
        connection.execute(f"insert into {table} ({names}) select {names} from earlier_{table}")  # noqa: S608
        connection.execute(f"drop table earlier_{table}")
        _without_sum(connection, table)
    if "dead_letters_waiting" not in earlier.get("progress", ["dead_letters_waiting"]):
        connection.execute(
            "update progress set dead_letters_waiting = (select count(*) from dead_letters where offset >= republished)"
        )


def _columns_of(schema: str) -> dict[str, list[str]]:
    """Columns by table, as the schema makes them."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        tables = connection.execute("select name from sqlite_schema where type = 'table'").fetchall()
        return {table: _columns(connection, table) for (table,) in tables}


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"pragma table_info({table})")]


def _indexes(connection: sqlite3.Connection, table: str) -> list[str]:
    made = "select name from sqlite_schema where type = 'index' and tbl_name = ? and sql is not null"
    return [name for (name,) in connection.execute(made, (table,)).fetchall()]


def _without_sum(connection: sqlite3.Connection, table: str) -> None:
    for sums in ("sums", "checks"):
        if connection.execute("select 1 from sqlite_schema where name = ?", (sums,)).fetchone():
            connection.execute(f"delete from {sums} where name = ?", (table,))  # noqa: S608
