"""A partition's state: one SQLite file, in which evidence and offset move in one transaction (ARC-3).

The order of the steps of one batch is the argument for "exactly once":

1. records are polled from the stored offset on, and decoded; nothing is kept of that;
2. `begin immediate` takes the only write lock; the epoch is read, and a newer one ends this updater (`FencedError`);
3. the offset of the first record is compared with the stored one: a batch read before a restart cannot be applied;
4. evidence, window, seen ids, dead letters, counters and the next offset are written;
5. `commit` makes them durable together (WAL, synchronous FULL), or a crash leaves all of them as they were.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from weft.domain.errors import CorruptionError, FencedError, WrongLogError
from weft.feedback.fold.batch import Arrivals, BatchState, Change
from weft.feedback.settings import EVENT_ID_RECORDS, MS, FeedbackSettings
from weft.feedback.store import tables
from weft.feedback.store.deduplication import SeenIndex, index_of_seen
from weft.feedback.store.overlays import SessionVariance
from weft.feedback.store.report import (
    FORMAT,
    Acceptance,
    PartitionReport,
    accept_loss,
    read_report,
    require_same_log,
    require_still_there,
    was_claimed,
)
from weft.feedback.store.rows import copy_store, define_row_hash, protect, verify
from weft.runtime.kafka.log import LogFacts
from weft.runtime.storage.errors import code_of, is_damage, refused
from weft.runtime.storage.locks import await_lock
from weft.runtime.storage.sqlite import set_up

STATE_FILE = "state.sqlite"

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_PRAGMAS = (
    "page_size = 8192",
    "journal_mode = wal",
    "synchronous = full",
    "temp_store = memory",
    "cache_size = -16384",
    "wal_autocheckpoint = 4096",
)
"""Durable when a commit returns. A batch touches most pages of a table: of larger ones it touches fewer, 16 MiB of them
are at hand and are not read again, and 32 MiB of log are written before any of them is copied into its place."""

_SCHEMA = (Path(__file__).parent / "schema.sql").read_text(encoding="utf-8")


@dataclass(slots=True)
class Batch:
    """One transaction under way: `stored` is what the batch needs, `commit` takes what it changes."""

    stored: BatchState
    _connection: sqlite3.Connection
    _rules: FeedbackSettings
    written: Change | None = None

    def commit(self, change: Change) -> None:
        """Write the change; it is durable when the surrounding block is left."""
        tables.write(self._connection, change, self._rules)
        self.written = change


class PartitionState:
    """The store of one partition, owned by whoever claimed it last."""

    def __init__(self, folder: Path, partition: int, rules: FeedbackSettings) -> None:
        self.partition = partition
        self.folder = folder
        self.rules = rules
        self._epoch = 0
        self._seen = SeenIndex()
        self.session_variance = SessionVariance()
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / STATE_FILE
        with self._errors():
            self._connection = self._connected()
        self._inode = self._path.stat().st_ino

    def claim(
        self, facts: LogFacts, *, log_start: int, acceptance: Acceptance | None = None, epoch: int | None = None
    ) -> int:
        """Become the owner: the epoch moves on, to `epoch` if given, and whoever owned the partition is fenced."""
        with self._errors(), self._transaction() as connection:
            verify(connection)
            if not was_claimed(connection):
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                protect(connection)
            connection.execute(
                "insert or ignore into progress"
                " (one, format, topic, topic_id, partitions, partition, epoch, first_offset, next_offset, clock_ms)"
                " values (1, ?, ?, ?, ?, ?, 0, ?, ?, 0)",
                (FORMAT, facts.topic, facts.topic_id, facts.partitions, self.partition, log_start, log_start),
            )
            if acceptance is not None:
                accept_loss(connection, read_report(connection), facts, log_start, acceptance)
            report = read_report(connection)
            require_same_log(report, facts, self.partition)
            require_still_there(report, report.offset_base + log_start)
            connection.execute("update progress set epoch = coalesce(?, epoch + 1)", (epoch,))
            report = read_report(connection)
            self._seen = index_of_seen(connection)
        self._epoch = report.epoch
        return report.next_offset

    @contextlib.contextmanager
    def batch(
        self, facts: LogFacts, first_offset: int, arrivals: Arrivals, *, log_end: int | None = None
    ) -> Iterator[Batch]:
        """A transaction for one batch; leaving the block commits it, an error leaves the state as it was.

        Raises:
            FencedError: Another updater owns the partition; nothing was written.
            WrongLogError: The records come from another log, or from before the stored offset.
        """
        with self.owned() as (connection, report):
            require_same_log(report, facts, self.partition)
            if first_offset < report.next_offset:
                raise WrongLogError(
                    f"{self._path}: expected records from offset {report.next_offset} on, found {first_offset}"
                )
            batch = Batch(tables.read_batch_state(connection, self._seen, arrivals, self.rules), connection, self.rules)
            yield batch
            if log_end is not None:
                connection.execute("update progress set log_end = ?", (log_end,))
        if batch.written is not None:
            self._remember(batch.written)
            if batch.written.unlearned or batch.written.forgotten:
                with self._errors():  # what was deleted lies in the log beside the file, too
                    self._connection.execute("pragma wal_checkpoint(truncate)")

    def pass_over(self, facts: LogFacts, offset: int) -> None:
        """Read on from `offset`: nobody will ever deliver what lies before it; durable when this returns (FBK-14)."""
        with self.owned() as (connection, report):
            require_same_log(report, facts, self.partition)
            connection.execute(
                "update progress set skipped = skipped + ?1 - next_offset, next_offset = ?1 where next_offset < ?1",
                (offset,),
            )

    def read(
        self,
        query: Callable[Concatenate[sqlite3.Connection, Arguments], Result],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """What a function of the store's rooms reads from the tables; anybody may, whoever owns the partition."""
        with self._errors():
            return query(self._connection, *args, **options)

    def write(
        self,
        change: Callable[Concatenate[sqlite3.Connection, Arguments], None],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> None:
        """Have a function write into the tables; durable when this returns."""
        with self.owned() as (connection, _):
            change(connection, *args, **options)

    @contextlib.contextmanager
    def owned(self) -> Iterator[tuple[sqlite3.Connection, PartitionReport]]:
        """A transaction of the partition's owner: until the block is left no other updater can commit or claim."""
        with self._errors(), self._transaction() as connection:
            report = read_report(connection)
            self._require_ownership(report)
            yield connection, report

    def report(self) -> PartitionReport:
        """What the partition has been through; readable by anyone."""
        return self.read(read_report)

    def copy_to(self, path: Path) -> None:
        """Write the state into a file of its own, and read that again; inside of `owned`."""
        # SQLite copies nothing out of a connection that holds the write lock.
        connect, closing = sqlite3.connect, contextlib.closing
        with closing(connect(self._path)) as stored, closing(connect(path)) as copy:
            self._require_same_file()
            copy_store(stored, copy, path)

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def _connected(self) -> sqlite3.Connection:
        wait_s = self.rules.patience.stopped_s
        connection = sqlite3.connect(self._path, timeout=wait_s, isolation_level=None)
        try:
            set_up(connection, _PRAGMAS, wait_s=wait_s)
            define_row_hash(connection)
        except BaseException:
            connection.close()  # before anybody puts another file in its place
            raise
        return connection

    def _remember(self, change: Change) -> None:
        """Follow the table in the index, now that the change is durable."""
        self._seen.add(list(change.seen), [offset for offset, _ in change.seen.values()])
        self._seen.forget_before(change.next_offset - EVENT_ID_RECORDS)

    def _require_same_file(self) -> None:
        if not self._path.exists() or self._path.stat().st_ino != self._inode:
            raise FencedError(
                f"{self._path}: expected the file that was opened, found another: an updater restored it; stop this one"
            )

    def _require_ownership(self, report: PartitionReport) -> None:
        self._require_same_file()
        if report.epoch != self._epoch:
            raise FencedError(
                f"{self._path}: expected epoch {self._epoch}, found {report.epoch}: another updater took partition "
                f"{self.partition}; stop this one"
            )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        await_lock(self._begun, self._path.with_name(f"{STATE_FILE}-shm"), self.rules.patience)
        try:
            yield self._connection
            self._connection.execute("commit")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("rollback")

    def _begun(self, seconds: float) -> bool:
        """Take the only write lock within so many seconds; it lies in a file of its own, beside the store."""
        self._connection.execute(f"pragma busy_timeout = {round(seconds * MS)}")
        try:
            self._connection.execute("begin immediate")
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if is_damage(error):
                raise self._damage(str(error)) from error
            raise refused(self._path, error) from error
        except (CorruptionError, UnicodeDecodeError) as error:
            # What SQLite finds wrong may quote the damaged bytes themselves.
            raise self._damage(str(error)) from error

    def _damage(self, damage: str) -> CorruptionError:
        return CorruptionError(
            f"{self._path}: expected a partition's state, found: {damage}; an updater that opens it restores it"
        )
