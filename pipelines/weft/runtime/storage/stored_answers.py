"""The answers of a service, kept for whoever asks later why a result stands where it does (OPS-5)."""

from __future__ import annotations

import sqlite3
import threading
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from weft.domain.errors import StoreError
from weft.domain.ranking import Answer, principal_of
from weft.runtime.clock import Clock, system_clock

PLACE = Path("logs/answers.sqlite")
"""Below a store."""

MOST = 20_000
"""Answers that are kept, the newest: some 150 MB of ten results each."""

_PRUNED_EVERY = 500  # answers: taking out costs more than putting in
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Answer)
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
  query_id TEXT PRIMARY KEY, at REAL NOT NULL, principal TEXT NOT NULL, answer BLOB NOT NULL
) WITHOUT ROWID
"""


class StoredAnswers:
    """Answers by the id of their query. Processes and threads share the file; what a crash takes is never needed."""

    def __init__(self, root: Path, *, most: int = MOST, clock: Clock = system_clock) -> None:
        self._path = root / PLACE
        self._most = most
        self._clock = clock
        self._since_pruned = 0
        self._lock = threading.Lock()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(self._path, timeout=10.0, isolation_level=None, check_same_thread=False)
        self._path.chmod(0o600)
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=OFF", _TABLE):
            self._connection.execute(statement)

    def keep(self, answers: Sequence[Answer]) -> None:
        """Keep answers in place of any with the same ids; `StoreError` where they cannot be written."""
        now = self._clock()
        rows = [
            (each.query.query_id, now, principal_of(each.query), zlib.compress(_encoder.encode(each), 1))
            for each in answers
        ]
        with self._lock:
            try:
                self._write(rows)
            except sqlite3.Error as error:
                raise StoreError(f"{self._path}: expected to keep answers for explanations, found: {error}") from error

    def _write(self, rows: Sequence[tuple[str, float, str, bytes]]) -> None:
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", rows)
            self._since_pruned += len(rows)
            if self._since_pruned >= _PRUNED_EVERY:
                self._since_pruned = 0
                newest = "SELECT at FROM answers ORDER BY at DESC LIMIT 1 OFFSET ?"
                self._connection.execute(f"DELETE FROM answers WHERE at <= ({newest})", (self._most,))  # noqa: S608

    def of(self, query_id: str) -> Answer | None:
        """The answer to a query; None where it is not kept."""
        with self._lock:
            row = self._connection.execute("SELECT answer FROM answers WHERE query_id = ?", (query_id,)).fetchone()
        return None if row is None else _decoder.decode(zlib.decompress(row[0]))

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            self._connection.close()


def forget_answers(root: Path, principal: str) -> int:
    """Take the answers that a principal was given out of the file (OPS-13a); how many there were."""
    if not (root / PLACE).exists():
        return 0
    with closing(sqlite3.connect(root / PLACE, timeout=10.0, isolation_level=None)) as connection:
        count = connection.execute("DELETE FROM answers WHERE principal = ?", (principal,)).rowcount
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")  # pages that are free would still hold them
    return count
