"""What a partition has been through, whether a log is the one that it has read (FBK-5), and what the log lost (FBK-14).

Retention deletes records; a topic that was deleted and made again begins at 0. Nothing goes on until a person accepts
the loss; then the partition reads on where the log begins. Its state is ordered by offsets that never repeat: after a
topic was made again they are the topic's plus `offset_base`, and go on behind the last one known of the old topic.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple

from weft.domain.errors import StoreError, WrongLogError
from weft.runtime.kafka.log import LogFacts

COUNTS = (
    *("consumed", "applied", "duplicate", "dead_lettered", "late", "waiting", "unjoined", "skipped"),
    *("holes", "lost", "dead_letters_waiting"),
)
"""What is told of partitions one by one and, added up, of all of them."""

FORMAT = 2
"""Of a state's tables: it moves with every change of `schema.sql`."""

_COUNTED = {"waiting", "open_sessions", "reasons"}  # are read from other tables than `progress`
_NEW_STORE = "a new store for the new one: `weft consolidate --adopt` takes over there what was learned here"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """What a partition has been through, since its store was made."""

    partition: int
    topic: str
    topic_id: str
    partitions: int
    epoch: int
    first_offset: int
    next_offset: int
    clock_ms: int
    consumed: int  # records read. Each of them has one fate: `applied`, `duplicate`, `dead_lettered` or `late`
    applied: int
    duplicate: int
    dead_lettered: int
    late: int
    holes: int  # offsets whose records the log has lost
    unjoined: int  # feedback that waited in vain, or turned out to be about a result that was not shown
    # events whose evidence came to nothing, because their session was abandoned or unlearned; they count as
    # applied
    dropped: int
    version: int  # of the shared evidence: moves by one whenever a session is merged into it, or unlearned
    republished: int  # dead letters before this offset were republished
    dead_letters_waiting: int  # dead letters that were not, and are kept
    lost: int  # records that the log lost unread, and that a person gave up
    offset_base: int  # what is added to the topic's offsets: 0 until it is made again, and that is accepted
    log_end: int  # where the log ended when it was read last
    waiting: int  # feedback whose impression has not come yet; it counts as applied
    open_sessions: int  # sessions that learn by themselves for now
    reasons: Mapping[str, int]  # dead letters by reason
    skipped: int  # offsets that nobody will ever deliver: control records, aborted ones, and what compaction took

    @property
    def counts(self) -> dict[str, int]:
        """Each of `COUNTS` by name."""
        return {name: getattr(self, name) for name in COUNTS}

    @property
    def balanced(self) -> bool:
        """Whether every record is accounted for: once by fate, once by offset, once by reason (FBK-5)."""
        return (
            self.consumed == self.applied + self.duplicate + self.dead_lettered + self.late
            and self.consumed == self.next_offset - self.first_offset - self.skipped - self.holes - self.lost
            and self.dead_lettered == sum(self.reasons.values())
        )


def require_same_log(report: PartitionReport, facts: LogFacts, partition: int) -> None:
    """Check that a log is the one a store belongs to."""
    expected = LogFacts(report.topic, report.topic_id, report.partitions)
    if expected != facts and (expected.topic, expected.partitions) == (facts.topic, facts.partitions):
        raise WrongLogError(
            f"partition {partition}: expected topic id {report.topic_id}, found {facts.topic_id}: the topic was "
            f"re-created, without {_unread(report)}; nothing was applied. If it is the right topic, "
            "`weft update --accept-loss` counts them as lost and reads on from where it starts"
        )
    for name, stored, present in (
        ("topic", report.topic, facts.topic),
        ("topic id", report.topic_id, facts.topic_id),
        ("partition count", report.partitions, facts.partitions),
        ("partition", report.partition, partition),
    ):
        if stored != present:
            raise WrongLogError(
                f"partition {partition}: expected {name} {stored}, found {present}: it is another topic, or a "
                f"repartitioned one, and offset {report.next_offset} means nothing in it; nothing was applied. Use the "
                f"old topic, or {_NEW_STORE}"
            )


def require_still_there(report: PartitionReport, log_start: int) -> None:
    """Check that nothing unread was deleted from the log."""
    if (lost := log_start - report.next_offset) > 0:
        first = report.next_offset - report.offset_base
        raise WrongLogError(
            f"partition {report.partition}: expected offset {first} next, found that the log starts at {first + lost}: "
            f"{lost} records were deleted unread; nothing was applied. `weft update --accept-loss` counts them as lost "
            "and reads on. Keep the topic's retention above the updaters' lag"
        )


def require_within(report: PartitionReport, highwater: int | None) -> None:
    """Check that the stored offset is not beyond the end of the log."""
    if highwater is not None and report.next_offset > highwater:
        expected, end = report.next_offset - report.offset_base, highwater - report.offset_base
        raise WrongLogError(
            f"partition {report.partition}: expected a log of at least {expected} records, found an end at {end}: it "
            "was truncated, and other records will get the offsets of those that were read; nothing was applied. Use "
            f"a new topic, and {_NEW_STORE}"
        )


def deleted(topic: str, topic_id: str, answer: str) -> WrongLogError:
    """What to say of a topic that is gone for good."""
    identity = f" (id {topic_id})" if topic_id else ""
    return WrongLogError(
        f"expected topic {topic}{identity}, found it deleted: {answer}; nothing was applied. Restore it, or make it "
        "again with as many partitions: `weft update --accept-loss` then counts what it held unread as lost and reads "
        "on"
    )


def _unread(report: PartitionReport) -> str:
    unread, first = report.log_end - report.next_offset, report.next_offset - report.offset_base
    if unread > 0:
        return f"offsets {first} to {first + unread - 1} and what came after them, {unread} unread records or more"
    return f"what came at offset {first} and after it, an unknown number of unread records"


def read_report(connection: sqlite3.Connection) -> PartitionReport:
    """The report as the tables state it; inside the caller's transaction."""
    cursor = connection.execute("select * from progress")
    names = [description[0] for description in cursor.description]
    row = dict(zip(names, cursor.fetchone(), strict=True))
    numbers = {each.name: row[each.name] for each in fields(PartitionReport) if each.name not in _COUNTED}
    (waiting,) = connection.execute("select count(*) from waiting").fetchone()
    (open_sessions,) = connection.execute(
        "select count(*) from sessions where phase in ('active', 'suspended')"
    ).fetchone()
    reasons = dict(connection.execute("select reason, count from dead_letter_reasons order by reason").fetchall())
    return PartitionReport(**numbers, waiting=waiting, open_sessions=open_sessions, reasons=reasons)


RETENTION, MADE_AGAIN = "retention", "topic made again"


class Acceptance(NamedTuple):
    """Who gives lost records up, such as "ada@host", and when, in milliseconds since the epoch."""

    by: str
    at_ms: int


class Loss(NamedTuple):
    """Unread records that were given up."""

    offset: int  # of the first
    records: int  # how many; of a topic that was made again, as many as were known of
    reason: str  # `RETENTION` or `MADE_AGAIN`
    accepted_ms: int
    accepted_by: str

    def __str__(self) -> str:
        return (
            f"{self.records} records from offset {self.offset} on lost ({self.reason}), accepted by {self.accepted_by}"
        )


def accept_loss(
    connection: sqlite3.Connection, report: PartitionReport, facts: LogFacts, log_start: int, acceptance: Acceptance
) -> None:
    """Have a partition read on where the log begins, and count what it misses; inside the claiming transaction."""
    base = report.offset_base
    if facts.topic_id != report.topic_id:
        if (facts.topic, facts.partitions) != (report.topic, report.partitions):
            return
        base = max(report.next_offset, report.log_end)
    elif base + log_start <= report.next_offset:
        return
    lost = base + log_start - report.next_offset
    reason = RETENTION if facts.topic_id == report.topic_id else MADE_AGAIN
    connection.execute(
        "insert into losses values (?, ?, ?, ?, ?)", (report.next_offset, lost, reason, acceptance.at_ms, acceptance.by)
    )
    connection.execute(
        "update progress set next_offset = ?, lost = lost + ?, topic_id = ?, offset_base = ?, log_end = 0",
        (base + log_start, lost, facts.topic_id, base),
    )


def losses_in(connection: sqlite3.Connection) -> list[Loss]:
    """Those of a partition, the oldest first."""
    rows = connection.execute("select offset, records, reason, accepted_ms, accepted_by from losses order by rowid")
    return [Loss(*row) for row in rows]


def was_claimed(connection: sqlite3.Connection) -> bool:
    """Whether there is anything to read: the first owner makes the tables."""
    if not connection.execute("pragma table_info(progress)").fetchall():
        return False
    # It stands among the rows that are verified: damage to it is damage, and no other version's state.
    (version,) = connection.execute("select format from progress").fetchone()
    if version != FORMAT:
        _, _, file = connection.execute("pragma database_list").fetchone()
        raise StoreError(
            f"{file}: expected a partition's state of format {FORMAT}, found {version}: another version left it. "
            "Go back to that version, or begin a new store, where `weft consolidate --adopt` takes over what was "
            "learned here"
        )
    return True
