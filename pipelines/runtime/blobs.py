"""Bytes kept by key in one SQLite file that many processes read and write: what caches are made of."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pipelines.domain.errors import StoreError
from pipelines.runtime.advice import advice_on
from pipelines.runtime.locks import Patience, locked
from pipelines.runtime.sqlite import set_up

_BUSY_S = 120.0
_PATIENCE = Patience(stopped_s=_BUSY_S, seconds=_BUSY_S)
_PRAGMAS = ("journal_mode = wal", "synchronous = normal")
_KEYS_AT_ONCE = 500  # SQLite takes 999 variables in one statement at least


def blob_key(*parts: str) -> str:
    """SHA-256 over parts that together say what a blob was made from, 64 hex digits.

    Examples:
        >>> blob_key("ab", "c") == blob_key("a", "bc")
        False
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)  # the length keeps ("ab", "c") and ("a", "bc") apart
    return digest.hexdigest()


class BlobCache:
    """Keyed bytes on disk; the first blob put under a key stays, so that every reader sees the same one.

    Losing the file costs time and nothing else: a file that is not SQLite's is replaced by an empty one. After a
    crash every `put` that returned is whole or absent.

    Args:
        path: The file; its folder is made. It must lie on a disk of this machine: SQLite's locks need that.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # One at a time, so that nobody takes away what another one has just made in the place of a damaged file.
        with locked(path.with_name(f"{path.name}.opening"), _PATIENCE):
            try:
                self._connection = self._open()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise StoreError(
                        f"{path}: expected a cache file that can be written, found: {error}: {advice_on(error)}"
                    ) from error
                path.unlink()
                self._connection = self._open()

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The blobs of those keys that have one."""
        found: dict[str, bytes] = {}
        with self._mapped():
            for start in range(0, len(keys), _KEYS_AT_ONCE):
                some = keys[start : start + _KEYS_AT_ONCE]
                marks = ",".join("?" * len(some))
                found.update(self._connection.execute(f"select key, blob from blobs where key in ({marks})", some))  # noqa: S608  # marks only
        return found

    def put(self, blobs: Mapping[str, bytes]) -> None:
        """Keep blobs, all in one transaction; keys that have one already keep theirs."""
        with self._mapped(), self._connection:
            # Sorted, so that pages fill the same way whatever the order of the work.
            self._connection.executemany("insert or ignore into blobs (key, blob) values (?, ?)", sorted(blobs.items()))

    def clear(self) -> None:
        """Forget every blob."""
        with self._mapped(), self._connection:
            self._connection.execute("delete from blobs")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __len__(self) -> int:
        with self._mapped():
            return int(self._connection.execute("select count(*) from blobs").fetchone()[0])

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_BUSY_S, check_same_thread=False)
        try:
            set_up(connection, _PRAGMAS, wait_s=_BUSY_S)
            connection.execute("create table if not exists blobs (key text primary key, blob blob) without rowid")
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _mapped(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            advice = advice_on(error, damaged="delete the file, it is only a cache")
            raise StoreError(f"{self._path}: expected a cache to read and write, found: {error}: {advice}") from error
