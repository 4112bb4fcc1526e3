"""Tables of a partition's state as this version has them, with what an earlier one kept in them (ARC-3)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from types import MappingProxyType

_LATER: Mapping[str, str] = MappingProxyType({"usage": "question", "overlay_usage": "question"})
"""Keys that tables got since, by table: text, empty for what was kept before."""


def make_tables(connection: sqlite3.Connection, schema: str) -> None:
    """Create the tables that are not there yet, and take over those that lack a key; inside a transaction.

    A table that is taken over has no sum afterwards: `integrity.protect` makes a new one.

    Args:
        connection: To a store that was verified.
        schema: Statements, separated by semicolons.
    """
    earlier = {
        table: columns
        for table, later in _LATER.items()
        if (columns := [row[1] for row in connection.execute(f"pragma table_info({table})")]) and later not in columns
    }
    for table in earlier:
        connection.execute(f"alter table {table} rename to earlier_{table}")
    for statement in schema.split(";"):
        connection.execute(statement)
    for table, columns in earlier.items():
        names = ", ".join(columns)
        connection.execute(
            f"insert into {table} ({names}, {_LATER[table]}) select {names}, '' from earlier_{table}"  # noqa: S608
        )
        connection.execute(f"drop table earlier_{table}")
        _without_sum(connection, table)


def _without_sum(connection: sqlite3.Connection, table: str) -> None:
    if connection.execute("select 1 from sqlite_schema where name = 'sums'").fetchone():
        connection.execute("delete from sums where name = ?", (table,))
