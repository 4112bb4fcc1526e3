"""Setting up connections to SQLite files that many processes open."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable

_ASK_EVERY_S = 0.01


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
