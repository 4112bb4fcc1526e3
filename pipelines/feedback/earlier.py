"""Tables of a partition's state as this version has them, with what an earlier one kept in them (ARC-3)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from types import MappingProxyType

_LATER: Mapping[str, str] = MappingProxyType({"usage": "question", "overlay_usage": "question"})
"""Keys that tables got since, by table: text, empty for what was kept before."""

_LATER_NUMBERS = ("dead_letters_waiting", "lost", "offset_base", "log_end")
"""Columns that `progress` got since: zero in a store that was made before."""


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
    _add_numbers(connection)


def _add_numbers(connection: sqlite3.Connection) -> None:
    columns = {row[1] for row in connection.execute("pragma table_info(progress)")}
    later = [name for name in _LATER_NUMBERS if name not in columns]
    for name in later:
        connection.execute(f"alter table progress add column {name} integer not null default 0")
    if later:
        _without_triggers(connection, "progress")
    if "dead_letters_waiting" in later:
        connection.execute(
            "update progress set dead_letters_waiting = (select count(*) from dead_letters where offset >= republished)"
        )


def _without_triggers(connection: sqlite3.Connection, table: str) -> None:
    """Have `integrity.protect` make triggers of its columns as they are now."""
    for event in ("insert", "update", "delete"):
        connection.execute(f"drop trigger if exists check_{event}_{table}")
    if connection.execute("select 1 from sqlite_schema where name = 'checks'").fetchone():
        connection.execute("delete from checks where name = ?", (table,))


def _without_sum(connection: sqlite3.Connection, table: str) -> None:
    if connection.execute("select 1 from sqlite_schema where name = 'sums'").fetchone():
        connection.execute("delete from sums where name = ?", (table,))
