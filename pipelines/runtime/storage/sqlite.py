"""Setting up connections to SQLite files that many processes open, and what its errors speak of.

Few errors speak of what a file holds. All others speak of the place: a full disk, a lock, a permission. Whoever takes
one of those for damage gives up an intact file.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from pipelines.domain.errors import DiskError, StoreError
from pipelines.runtime.storage import disk

_ASK_EVERY_S = 0.01
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""Pages, the header, and names in the schema that statements no longer find."""
_HELD = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_DISK = frozenset(
    {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_NOLFS,
    }
)
"""Codes for which SQLite keeps the system's reason to itself."""


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
"""What helps against a refusal, by its primary code, where nobody knows at which path."""


def code_of(error: sqlite3.Error) -> int:
    """Primary result code, without what SQLite adds to tell its variants apart; 0 where Python raised it by itself.

    Examples:
        >>> error = sqlite3.OperationalError("disk I/O error")
        >>> error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
        >>> code_of(error) == sqlite3.SQLITE_IOERR
        True
    """
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Whether an error says that a file does not hold what was written into it."""
    # Python itself raises an operational error without a code where a text is no UTF-8.
    return code_of(error) in _DAMAGE or (type(error) is sqlite3.OperationalError and code_of(error) == 0)


def refused(path: Path, error: sqlite3.Error) -> StoreError:
    """What to raise for an error that is no damage: the cause in the system's words, and what helps.

    SQLite does not say why it could not write; the disk is asked for that.
    """
    code = code_of(error)
    if code == sqlite3.SQLITE_FULL:
        return disk.refused(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    if code in _DISK and (cause := disk.cause_at(path)) is not None:
        return disk.refused(path, cause)
    if code in _HELD:
        return StoreError(f"{path}: expected its lock, found it held by another process; {ADVICE[code]}")
    kind, advice = DiskError if code in _DISK else StoreError, ADVICE.get(code, "look at what the log says before")
    named = getattr(error, "sqlite_errorname", "no code")
    return kind(f"{path}: expected SQLite to read and write it, found: {error} ({named}); {advice}")


def refusal_behind(path: Path, error: BaseException) -> StoreError | None:
    """What the disk under a database refused, where an error of a library began with that; None where it did not."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, sqlite3.Error) and not is_damage(cause):
            return refused(path, cause)
        if isinstance(cause, OSError) and disk.advice(cause, path):
            return disk.refused(Path(cause.filename or path), cause)
        cause = cause.__cause__ or cause.__context__
    return None


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
        if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
            raise
        return False
    return True
