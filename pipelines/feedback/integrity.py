"""Whether a store says what was written into it: a sum over the rows of every table, kept in the same transaction.

SQLite checks what lies in its write-ahead log, and how pages hang together, but not what stands in a page: a flipped
bit there would be read as it is. So every table has a sum of hashes of its rows. Triggers keep it, whoever writes:
adding a row adds its hash, deleting one takes it away, both exactly, since sums of integers know no order.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from zlib import crc32

from pipelines.domain.errors import CorruptionError

_SCHEMA = "create table if not exists checks (name text primary key, rows integer not null, hashes integer not null)"


def teach(connection: sqlite3.Connection) -> None:
    """Make a connection able to write to a protected store; it can always read one."""
    connection.create_function("row_hash", -1, row_hash, deterministic=True)
    connection.execute("pragma recursive_triggers = on")  # rows that `insert or replace` replaces are deleted rows, too


def row_hash(*values: object) -> int:
    """CRC-32 over the columns of a row: any flipped bit in one of them changes it.

    Examples:
        >>> row_hash(1, "a", b"b") != row_hash(1, "a", b"c")
        True
    """
    return crc32(repr([crc32(value) if isinstance(value, bytes) else value for value in values]).encode())


def protect(connection: sqlite3.Connection) -> None:
    """Have the sums of every table kept from now on; inside a transaction."""
    connection.execute(_SCHEMA)
    kept = {name for (name,) in connection.execute("select name from checks")}
    for table in _tables(connection):
        if table in kept:
            continue
        columns = _columns(connection, table)
        new, old = (f"row_hash({', '.join(f'{side}.{column}' for column in columns)})" for side in ("new", "old"))
        for event, rows, hashes in (("insert", 1, new), ("update", 0, f"{new} - {old}"), ("delete", -1, f"-{old}")):
            keep = f"update checks set rows = rows + {rows}, hashes = hashes + ({hashes}) where name = '{table}'"  # noqa: S608
            name = f"check_{event}_{table}"
            connection.execute(f"create trigger {name} after {event} on {table} begin {keep}; end")
        connection.execute("insert into checks values (?, ?, ?)", (table, *_sums(connection, table)))


def verify(connection: sqlite3.Connection) -> None:
    """Compare a store with its sums; one that was never protected passes. Takes about 2 s per million rows.

    Raises:
        CorruptionError: Naming the table, or what SQLite found wrong.
    """
    if (found := connection.execute("pragma integrity_check(1)").fetchone()[0]) != "ok":
        raise CorruptionError(f"its pages do not hang together: {found}")
    if not connection.execute("select 1 from sqlite_schema where name = 'checks'").fetchone():
        return
    for table, *expected in connection.execute("select name, rows, hashes from checks").fetchall():
        if (sums := _sums(connection, table)) != tuple(expected):
            raise CorruptionError(f"table {table}: expected {expected[0]} rows that were written, found {sums[0]}")


def _sums(connection: sqlite3.Connection, table: str) -> tuple[int, int]:
    columns = ", ".join(_columns(connection, table))
    statement = f"select count(*), coalesce(sum(row_hash({columns})), 0) from {table}"  # noqa: S608 - names of ours
    rows, hashes = connection.execute(statement).fetchone()
    return rows, hashes


def _tables(connection: sqlite3.Connection) -> Iterable[str]:
    found = connection.execute("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'")
    return sorted({name for (name,) in found} - {"checks"})


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"pragma table_info({table})")]
