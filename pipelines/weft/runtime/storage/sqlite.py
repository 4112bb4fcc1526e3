"""SQLite files that many processes open: how a connection is set up, and bytes by key, which caches are made of."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from weft.runtime.storage.errors import code_of, is_damage, refused
from weft.runtime.storage.locks import Patience, locked

log = logging.getLogger(__name__)

Done = TypeVar("Done")

_ASK_EVERY_S = 0.01
_BUSY_S = 120.0
_PATIENCE = Patience(stopped_s=_BUSY_S, seconds=_BUSY_S)
_PRAGMAS = ("journal_mode = wal", "synchronous = normal")
_KEYS_AT_ONCE = 500  # SQLite takes 999 variables in one statement at least


def set_up(connection: sqlite3.Connection, pragmas: Iterable[str], *, wait_s: float) -> None:
    """Set pragmas in their order; whoever else is just doing the same is waited for, `wait_s` for each.

    Of two that turn on write-ahead logging of a new file, SQLite tells one at once that it is locked, whatever timeout
    the connection has: two that waited would wait for each other.

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


def blob_key(*parts: str) -> str:
    """SHA-256 over parts that together say what a blob was made from, 64 hex digits."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)  # the length keeps ("ab", "c") and ("a", "bc") apart
    return digest.hexdigest()


class BlobCache:
    """Keyed bytes on disk; the first blob put under a key stays, so that every reader sees the same one.

    Losing the file costs time and nothing else: one that is damaged is replaced by an empty one, whenever that shows.
    One that the disk refuses to write stays as it is. After a crash every `put` that returned is whole or absent.

    Raises:
        StoreError: From every method: the disk refuses, or another process holds the file all the time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection, self._inode = self._opened(0)

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The blobs of those keys that have one."""

        def read(connection: sqlite3.Connection) -> dict[str, bytes]:
            blobs: dict[str, bytes] = {}
            for start in range(0, len(keys), _KEYS_AT_ONCE):
                some = keys[start : start + _KEYS_AT_ONCE]
                marks = ",".join("?" * len(some))
                blobs.update(connection.execute(f"select key, blob from blobs where key in ({marks})", some))  # noqa: S608  # marks only
            return blobs

        return self._done(read)

    def put(self, blobs: Mapping[str, bytes]) -> None:
        """Keep blobs, all in one transaction; keys that have one already keep theirs."""
        # Sorted, so that pages fill the same way whatever the order of the work.
        insert, rows = "insert or ignore into blobs (key, blob) values (?, ?)", sorted(blobs.items())
        self._done(lambda connection: connection.executemany(insert, rows))

    def clear(self) -> None:
        """Forget every blob."""
        self._done(lambda connection: connection.execute("delete from blobs"))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __len__(self) -> int:
        return self._done(lambda connection: int(connection.execute("select count(*) from blobs").fetchone()[0]))

    def _done(self, work: Callable[[sqlite3.Connection], Done]) -> Done:
        """Work in a transaction; where the file proves damaged, on an empty one in its place."""
        try:
            with self._connection as connection:
                return work(connection)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise refused(self._path, error) from error
            log.warning("%s: %s; an empty cache takes its place", self._path, error)
        # Another thread may still use the former connection: it is closed once nobody does.
        self._connection, self._inode = self._opened(self._inode)
        try:
            with self._connection as connection:
                return work(connection)
        except sqlite3.Error as error:
            raise refused(self._path, error) from error

    def _opened(self, damaged: int) -> tuple[sqlite3.Connection, int]:
        """The file, and its inode; one that is damaged, or has that inode, is removed first."""
        with locked(self._path.with_name(f"{self._path.name}.opening"), _PATIENCE):
            if damaged and self._path.exists() and self._path.stat().st_ino == damaged:
                self._remove()
            try:
                connection = self._open()
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise refused(self._path, error) from error
                self._remove()
                connection = self._open()
            return connection, self._path.stat().st_ino

    def _remove(self) -> None:
        for beside in ("-wal", "-shm", ""):  # the file itself last: without it nobody knows what the others are
            self._path.with_name(f"{self._path.name}{beside}").unlink(missing_ok=True)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_BUSY_S, check_same_thread=False)
        try:
            set_up(connection, _PRAGMAS, wait_s=_BUSY_S)
            connection.execute("create table if not exists blobs (key text primary key, blob blob) without rowid")
        except sqlite3.Error:
            connection.close()
            raise
        return connection
