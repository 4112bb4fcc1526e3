"""Setting up connections to SQLite files that many processes open, and what helps where SQLite refuses."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping

ADVICE: Mapping[int, str] = {
    sqlite3.SQLITE_FULL: "free space on that disk",
    sqlite3.SQLITE_READONLY: "give this user permission to write the file and its folder",
    sqlite3.SQLITE_PERM: "give this user permission to read and write there",
    sqlite3.SQLITE_CANTOPEN: "let this user read and write there; make its folder where that is missing",
    sqlite3.SQLITE_BUSY: "wait for the process that holds it, or end that process",
    sqlite3.SQLITE_LOCKED: "wait for the process that holds it, or end that process",
    sqlite3.SQLITE_IOERR: "look at that disk: it is full, beyond a quota, or fails",
    sqlite3.SQLITE_NOMEM: "free memory",
}
"""What helps against a refusal, by its primary code."""

_ASK_EVERY_S = 0.01
_PRIMARY = 0xFF  # the bits of an extended code that hold the primary one


def primary(code: int) -> int:
    """The primary code in an extended one."""
    return code & _PRIMARY


def is_damage(code: int) -> bool:
    """Whether a code says that the file itself is damaged, and not the place that it lies in."""
    return primary(code) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def set_up(connection: sqlite3.Connection, pragmas: Iterable[str], *, wait_s: float) -> None:
    """Set pragmas in their order; whoever else is just doing the same is waited for.

    Of two that turn on write-ahead logging of a new file, SQLite tells one at once that it is locked, whatever timeout
    the connection has: two that waited would wait for each other.

    Args:
        wait_s: For each pragma at most.

    Raises:
        sqlite3.Error: One cannot be set, or the file stayed locked.
    """
    for pragma in pragmas:
        until = time.monotonic() + wait_s
        while not _is_set(connection, pragma, until):
            time.sleep(_ASK_EVERY_S)


def _is_set(connection: sqlite3.Connection, pragma: str, until: float) -> bool:
    try:
        connection.execute(f"pragma {pragma}")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
            raise
        return False
    return True
