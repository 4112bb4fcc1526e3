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
import math
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from pipelines.catalog.overlays import SessionRows
from pipelines.domain.errors import CorruptionError, FencedError, WrongLogError
from pipelines.feedback.fold.batch import Arrivals, BatchState
from pipelines.feedback.fold.sessions import Life
from pipelines.feedback.fold.sources import Heard
from pipelines.feedback.fold.updates import Change
from pipelines.feedback.settings import MS, FeedbackSettings
from pipelines.feedback.store import tables as ledger
from pipelines.feedback.store.deduplication import SeenIndex, index_of_seen
from pipelines.feedback.store.migrations import make_tables
from pipelines.feedback.store.overlays import (
    Alike,
    Fork,
    bases_in,
    forks_in,
    has_forks,
    held_sessions,
    life_of,
    overlay_in,
    select_lives,
    write_forks,
)
from pipelines.feedback.store.report import (
    Acceptance,
    Loss,
    PartitionReport,
    accept_loss,
    losses_in,
    read_report,
    require_same_log,
    require_still_there,
)
from pipelines.feedback.store.rows import copy_store, define_row_hash, protect, verify
from pipelines.feedback.store.tables import KeptDeadLetter, heard_in
from pipelines.learning.evidence import Evidence
from pipelines.learning.pooling.shrinkage import Moments
from pipelines.runtime.kafka.log import LogFacts
from pipelines.runtime.storage.errors import code_of, is_damage, refused
from pipelines.runtime.storage.locks import await_lock
from pipelines.runtime.storage.sqlite import set_up

STATE_FILE = "state.sqlite"

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


class SearchableState(NamedTuple):
    """A partition's state as far as searches read it.

    Attributes:
        evidence: The table of `Evidence.to_table`.
        bases: What its open sessions forked from.
        sessions: Those, one at a time.
        alike: How much its sessions that completed last differ.
    """

    report: PartitionReport
    evidence: pa.Table
    bases: Sequence[str]
    sessions: Iterator[SessionRows]
    alike: Moments


class Still(NamedTuple):
    """A partition's state that nothing changes meanwhile.

    Attributes:
        copy_to: Writes all of it into a file of its own, and reads that again: a copy that the disk did not keep is a
            `DiskError`, a state that is damaged itself is a `CorruptionError`.
    """

    report: PartitionReport
    copy_to: Callable[[Path], None]


@dataclass(slots=True)
class Batch:
    """One transaction under way: `known` is what the batch needs, `commit` takes what it changes."""

    known: BatchState
    _connection: sqlite3.Connection
    _rules: FeedbackSettings
    written: Change | None = None

    def commit(self, change: Change) -> None:
        """Write the change; it is durable when the surrounding block is left."""
        ledger.write(self._connection, change, self._rules)
        self.written = change


class PartitionState:
    """The store of one partition, owned by whoever claimed it last.

    A caller opens it, claims it for the log it reads, and closes it; all from one thread. After a crash at any
    instant a new owner finds exactly the batches that were committed.
    """

    def __init__(self, folder: Path, partition: int, rules: FeedbackSettings) -> None:
        self.partition = partition
        self.folder = folder
        self.rules = rules
        self._epoch = 0
        self._seen = SeenIndex()
        self._alike = Alike(rules.merge.alike_sessions)
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / STATE_FILE
        with self._errors():
            self._connection = self._connected()
        self._inode = self._path.stat().st_ino

    def claim(self, facts: LogFacts, *, log_start: int, acceptance: Acceptance | None = None) -> int:
        """Become the owner: the epoch moves on, and whoever owned the partition before is fenced.

        Args:
            facts: The log that is going to be read.
            log_start: Its oldest offset; a new store begins there.
            acceptance: By whom unread records that the log lost are given up, and counted, now.

        Returns:
            The offset to read on from.

        Raises:
            WrongLogError: The store belongs to another log, or the log lost what it has not read.
            CorruptionError: It is damaged.
        """
        with self._errors(), self._transaction() as connection:
            verify(connection)
            make_tables(connection, _SCHEMA)
            protect(connection)
            connection.execute(
                "insert or ignore into progress"
                " (one, topic, topic_id, partitions, partition, epoch, first_offset, next_offset, clock_ms)"
                " values (1, ?, ?, ?, ?, 0, ?, ?, 0)",
                (facts.topic, facts.topic_id, facts.partitions, self.partition, log_start, log_start),
            )
            if acceptance is not None:
                accept_loss(connection, read_report(connection), facts, log_start, acceptance)
            report = read_report(connection)
            require_same_log(report, facts, self.partition)
            require_still_there(report, report.offset_base + log_start)
            connection.execute("update progress set epoch = epoch + 1")
            report = read_report(connection)
            self._seen = index_of_seen(connection)
        self._epoch = report.epoch
        return report.next_offset

    @contextlib.contextmanager
    def batch(
        self, facts: LogFacts, first_offset: int, arrivals: Arrivals, *, log_end: int | None = None
    ) -> Iterator[Batch]:
        """A transaction for one batch; leaving the block commits it, an error leaves the state as it was.

        Args:
            facts: The log as it was after the batch had been read from it.
            first_offset: Of the batch's first record.
            arrivals: Its records and what they hold.
            log_end: Where the log ended then, as far as that is known.

        Raises:
            FencedError: Another updater owns the partition; nothing was written.
            WrongLogError: The records come from another log, or from before the stored offset.
        """
        with self._errors(), self._owned() as (connection, report):
            require_same_log(report, facts, self.partition)
            if first_offset < report.next_offset:
                raise WrongLogError(
                    f"{self._path}: expected records from offset {report.next_offset} on, found {first_offset}"
                )
            batch = Batch(ledger.known_to(connection, self._seen, arrivals, self.rules), connection, self.rules)
            yield batch
            if log_end is not None:
                connection.execute("update progress set log_end = ?", (log_end,))
        if batch.written is not None:
            self._remember(batch.written)

    def pass_over(self, facts: LogFacts, offset: int) -> None:
        """Read on from `offset`: nobody will ever deliver what lies before it; durable when this returns (FBK-14).

        Raises:
            FencedError: Another updater owns the partition; nothing was written.
            WrongLogError: The offset is one of another log.
        """
        with self._errors(), self._owned() as (connection, report):
            require_same_log(report, facts, self.partition)
            connection.execute(
                "update progress set skipped = skipped + ?1 - next_offset, next_offset = ?1 where next_offset < ?1",
                (offset,),
            )

    @contextlib.contextmanager
    def owned(self) -> Iterator[SearchableState]:
        """The whole state, held still until the block is left: no other updater can commit or claim meanwhile.

        Raises:
            FencedError: Another updater owns the partition.
        """
        with self._errors(), self._owned() as (connection, report):
            evidence, moments = ledger.evidence_table_in(connection), self._alike.moments(connection)
            yield SearchableState(report, evidence, bases_in(connection), held_sessions(connection), moments)

    def merge_report(self, session_id: str) -> str | None:
        """What the last merge of a session met, as JSON; None where nobody said. Readable by anyone."""
        with self._errors():
            row = self._connection.execute(
                "select report from session_forks join sessions on sessions.offset = session_forks.session"
                " where sessions.session = ?",
                (session_id,),
            ).fetchone()
        return row[0] if row else None

    def has_forks(self) -> bool:
        """Whether a session is open, or was when the last snapshot was published."""
        with self._errors():
            return has_forks(self._connection)

    def bases(self) -> list[str]:
        """What open sessions forked from, sorted."""
        with self._errors():
            return bases_in(self._connection)

    def forks(self, lost: Sequence[str], *, at_most: int) -> list[Fork]:
        """Sessions that started or ended since `note_forks`, or whose base was lost; see `overlays.forks_in`."""
        with self._errors():
            return forks_in(self._connection, lost, at_most=at_most)

    def note_forks(self, forks: Sequence[Fork]) -> None:
        """Keep what changed about forks; durable when this returns.

        Raises:
            FencedError: Another updater owns the partition.
        """
        if not forks:
            return
        with self._errors(), self._owned() as (connection, _):
            write_forks(connection, forks)

    def was_claimed(self) -> bool:
        """Whether anything can be asked of it: the first owner makes its tables."""
        with self._errors():
            found = self._connection.execute("select 1 from sqlite_schema where name = 'progress'").fetchone()
        return found is not None

    def report(self) -> PartitionReport:
        """What the partition has been through; readable by anyone."""
        with self._errors():
            return read_report(self._connection)

    def evidence(self) -> Evidence:
        """All evidence of the partition; readable by anyone."""
        with self._errors():
            return ledger.evidence_in(self._connection)

    def sessions(self) -> list[Life]:
        """Every session that the partition remembers, the one heard of longest ago first; readable by anyone."""
        with self._errors():
            return [life_of(row) for row in self._connection.execute(select_lives("order by heard"))]

    def session(self, session_id: str) -> Life | None:
        """A session, None where the partition does not remember it; readable by anyone."""
        with self._errors():
            row = self._connection.execute(select_lives("where session = ?"), (session_id,)).fetchone()
        return None if row is None else life_of(row)

    def overlay(self, session_id: str, kind: int) -> Evidence:
        """What a session has `PENDING`, or `SETTLED`: nothing where it is not remembered; readable by anyone."""
        life = self.session(session_id)
        with self._errors():
            return Evidence() if life is None else overlay_in(self._connection, life, kind)

    def losses(self) -> list[Loss]:
        """What the log lost before it was read, as it was accepted, the oldest first; readable by anyone."""
        with self._errors():
            return losses_in(self._connection)

    def heard(self) -> Heard:
        """Applied events by source and type; readable by anyone."""
        with self._errors():
            return heard_in(self._connection)

    def dead_letters(self, *, from_offset: int, at_most: int, most_bytes: float = math.inf) -> list[KeptDeadLetter]:
        """The oldest dead letters from an offset on, until their originals exceed so many bytes; readable by anyone."""
        with self._errors():
            return ledger.dead_letters_in(self._connection, from_offset, at_most, most_bytes)

    def note_republished(self, offset: int) -> None:
        """Note that all dead letters before `offset` were republished.

        Raises:
            FencedError: Another updater owns the partition.
        """
        with self._errors(), self._owned() as (connection, report):
            ledger.write_republished(connection, report.republished, offset)

    @contextlib.contextmanager
    def still(self) -> Iterator[Still]:
        """The state for whoever copies it: until the block is left no other updater can commit or claim.

        Raises:
            FencedError: Another updater owns the partition.
        """
        with self._errors(), self._owned() as (_, report):
            yield Still(report, self._copy_to)

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def _copy_to(self, path: Path) -> None:
        # SQLite copies nothing out of a connection that holds the write lock.
        connect, closing = sqlite3.connect, contextlib.closing
        with closing(connect(self._path)) as stored, closing(connect(path)) as copy:
            self._require_same_file()
            copy_store(stored, copy, path)

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
        self._seen.forget_before(change.next_offset - self.rules.limits.event_id_records)

    def _require_same_file(self) -> None:
        if not self._path.exists() or self._path.stat().st_ino != self._inode:
            raise FencedError(
                f"{self._path}: expected the file that was opened, found another: an updater restored it; stop this one"
            )

    @contextlib.contextmanager
    def _owned(self) -> Iterator[tuple[sqlite3.Connection, PartitionReport]]:
        """A transaction of the partition's owner: while it lasts no other updater can commit or claim."""
        with self._transaction() as connection:
            report = read_report(connection)
            self._require_ownership(report)
            yield connection, report

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

    def _damage(self, found: str) -> CorruptionError:
        return CorruptionError(
            f"{self._path}: expected a partition's state, found: {found}; an updater that opens it restores it"
        )
