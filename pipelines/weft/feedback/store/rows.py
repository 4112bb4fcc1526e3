"""Rows of a partition's tables: looked up by many keys, and written with a sum that tells whether they are unchanged.

SQLite checks what lies in its write-ahead log, and how pages hang together, but not what stands in a page: a flipped
bit there would be read as it is. So every table has a sum of hashes of its rows: adding a row adds its hash, deleting
one takes it away, both exactly, since sums of integers know no order.

Triggers keep the sums of most tables, whoever writes. Tables that take many rows per batch are written through
`add_masses`, `insert_rows` and `delete_rows`, which hash many rows at once. A mass weighs the hash of its key: the sum
then follows from what is added, whatever was there before.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

from weft.domain.errors import CorruptionError, DiskError
from weft.runtime.storage.errors import is_damage, refused

MASSES = (
    "allowances",
    "evidence",
    "heard",
    "merged_evidence",
    "overlay_draws",
    "overlay_evidence",
    "overlay_usage",
    "usage",
)
"""Tables whose last column is a mass under the key that the other columns are."""

_WRITTEN = ("shown",)  # with rows that are hashed as a whole

_encode = msgspec.json.Encoder().encode
Row = Sequence[Any]


def define_row_hash(connection: sqlite3.Connection) -> None:
    """Make a connection able to write to a protected store; it can always read one."""
    connection.create_function("row_hash", -1, row_hash, deterministic=True)
    connection.execute("pragma recursive_triggers = on")  # rows that `insert or replace` replaces are deleted rows, too


def row_hash(*values: object) -> int:
    """CRC-32 over the columns of a row: any flipped bit in one of them changes it."""
    return crc32(repr([crc32(value) if isinstance(value, bytes) else value for value in values]).encode())


def add_masses(connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    """Add masses, each the last value of its row, to what lies under their keys in a table of `MASSES`."""
    if not rows:
        return
    columns = columns_of(connection, table)
    places, mass = ", ".join("?" * len(columns)), columns[-1]
    connection.executemany(
        f"insert into {table} ({', '.join(columns)}) values ({places})"  # noqa: S608 - names of ours
        f" on conflict do update set {mass} = {mass} + excluded.{mass}",
        rows,
    )
    _move(connection, table, _total(table, rows))


def insert_rows(connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    """Write new rows, with all columns, into a table whose rows are hashed as a whole."""
    if rows:
        places = ", ".join("?" * len(rows[0]))
        connection.executemany(f"insert into {table} values ({places})", rows)  # noqa: S608 - a name of ours
        _move(connection, table, _total(table, rows))


def delete_rows(connection: sqlite3.Connection, table: str, condition: str, values: Sequence[Any]) -> int:
    """Delete rows of a table that is written through this module; how many there were."""
    statement = f"delete from {table} where {condition} returning *"  # noqa: S608 - names of ours
    gone = connection.execute(statement, values).fetchall()
    if gone:
        _move(connection, table, -_total(table, gone))
    return len(gone)


def protect(connection: sqlite3.Connection) -> None:
    """Have the sums of every table kept from now on; inside the transaction that makes the tables."""
    connection.execute("create table checks (name text primary key, rows integer not null, hashes integer not null)")
    connection.execute("create table sums (name text primary key, total integer not null)")
    summed = (*MASSES, *_WRITTEN)
    connection.executemany("insert into sums values (?, 0)", [(table,) for table in summed])
    for table in _tables(connection) - {*summed, "checks", "sums"}:
        columns = columns_of(connection, table)
        new, old = (f"row_hash({', '.join(f'{side}.{column}' for column in columns)})" for side in ("new", "old"))
        for event, rows, hashes in (("insert", 1, new), ("update", 0, f"{new} - {old}"), ("delete", -1, f"-{old}")):
            keep = f"update checks set rows = rows + {rows}, hashes = hashes + ({hashes}) where name = '{table}'"  # noqa: S608
            name = f"check_{event}_{table}"
            connection.execute(f"create trigger {name} after {event} on {table} begin {keep}; end")
        connection.execute("insert into checks values (?, 0, 0)", (table,))


def verify(connection: sqlite3.Connection) -> None:
    """Compare a store with its sums; one without tables passes. Takes about 2 s per million rows."""
    if (damage := connection.execute("pragma integrity_check(1)").fetchone()[0]) != "ok":
        raise CorruptionError(f"its pages do not hang together: {damage}")
    if not {"sums", "checks"} <= _tables(connection):
        return
    for table, total in connection.execute("select name, total from sums").fetchall():
        if _stored(connection, table) != total:
            raise CorruptionError(f"table {table}: its rows are not the ones that were written")
    for table, *expected in connection.execute("select name, rows, hashes from checks").fetchall():
        if (sums := _sums(connection, table)) != tuple(expected):
            raise CorruptionError(f"table {table}: expected {expected[0]} rows that were written, found {sums[0]}")


def copy_store(stored: sqlite3.Connection, target: sqlite3.Connection, path: Path) -> None:
    """Copy a store into the empty one at `path`, a single file afterwards, and read that again."""
    try:
        stored.backup(target)
        target.execute("pragma journal_mode = delete")  # one file, with nothing beside it
        define_row_hash(target)
        verify(target)
    except (sqlite3.Error, CorruptionError) as error:
        if isinstance(error, sqlite3.Error) and not is_damage(error):
            raise refused(path, error) from error
        define_row_hash(stored)
        verify(stored)  # only where the copy inherited its damage, the store is to blame
        raise DiskError(
            f"{path}: expected a copy of an intact state, found: {error}; look into the system's log for what the disk"
            " reports"
        ) from error


def _total(table: str, rows: Iterable[Row]) -> int:
    if table in MASSES:
        return sum(_hash(key) * mass for *key, mass in rows)
    return sum(map(_hash, rows))


def _hash(values: Row) -> int:
    """An odd number: whichever bit of a mass is flipped, the product changes, modulo 2⁶⁴ as well."""
    return 2 * crc32(_encode(values)) + 1


def _move(connection: sqlite3.Connection, table: str, by: int) -> None:
    (total,) = connection.execute("select total from sums where name = ?", (table,)).fetchone()
    connection.execute("update sums set total = ? where name = ?", (_wrapped(total + by), table))


def _stored(connection: sqlite3.Connection, table: str) -> int:
    return _wrapped(_total(table, connection.execute(f"select * from {table}")))  # noqa: S608 - a name of ours


def _wrapped(total: int) -> int:
    """A sum modulo 2⁶⁴, as SQLite keeps integers."""
    return (total + 2**63) % 2**64 - 2**63


def _sums(connection: sqlite3.Connection, table: str) -> tuple[int, int]:
    columns = ", ".join(columns_of(connection, table))
    statement = f"select count(*), coalesce(sum(row_hash({columns})), 0) from {table}"  # noqa: S608 - names of ours
    rows, hashes = connection.execute(statement).fetchone()
    return rows, hashes


def _tables(connection: sqlite3.Connection) -> set[str]:
    names = connection.execute("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'")
    return {name for (name,) in names}


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """Names of a table's columns."""
    return [row[1] for row in connection.execute(f"pragma table_info({table})")]


_VARIABLES = 30_000  # SQLite takes 32,766 in one statement


def matching(
    connection: sqlite3.Connection, select: str, keys: Iterable[bytes | int | str], *before: bytes | int | str
) -> Iterator[Any]:
    """Rows whose column is one of some keys."""
    rest = iter(keys)
    while some := list(islice(rest, _VARIABLES)):
        yield from connection.execute(f"{select} ({','.join('?' * len(some))})", (*before, *some))
