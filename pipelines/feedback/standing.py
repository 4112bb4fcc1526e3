"""What a partition has been through, and whether a log is the one that it has read (FBK-5)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.domain.errors import WrongLogError
from pipelines.runtime.log import LogFacts

COUNTS = ("consumed", "applied", "duplicate", "dead_lettered", "late", "waiting", "unjoined", "skipped", "holes")
"""What is told of partitions one by one and, added up, of all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """What a partition has been through, since its store was made.

    Attributes:
        consumed: Records read. Each of them has one fate: `applied`, `duplicate`, `dead_lettered` or `late`.
        waiting: Feedback whose impression has not come yet; it counts as applied.
        unjoined: Feedback that waited in vain, or turned out to be about a result that was not shown.
        holes: Offsets whose records the log has lost.
        skipped: Offsets that nobody will ever deliver: control records, aborted ones, and what compaction took.
        dropped: Events whose evidence came to nothing, because their session was abandoned, expired or was unlearned;
            they count as applied.
        version: Of the shared evidence: moves by one whenever a session is merged into it, or unlearned.
        open_sessions: Sessions that learn by themselves for now.
        republished: Dead letters before this offset were republished.
        reasons: Dead letters by reason.
    """

    partition: int
    topic: str
    topic_id: str
    partitions: int
    epoch: int
    first_offset: int
    next_offset: int
    clock_ms: int
    consumed: int
    applied: int
    duplicate: int
    dead_lettered: int
    late: int
    holes: int
    unjoined: int
    dropped: int
    version: int
    republished: int
    waiting: int
    open_sessions: int
    reasons: Mapping[str, int]
    skipped: int = 0  # a state that an earlier version left does not tell

    @property
    def counts(self) -> dict[str, int]:
        """Each of `COUNTS` by name."""
        return {name: getattr(self, name) for name in COUNTS}

    @property
    def balanced(self) -> bool:
        """Whether every record is accounted for: once by fate, once by offset, once by reason (FBK-5)."""
        return (
            self.consumed == self.applied + self.duplicate + self.dead_lettered + self.late
            and self.consumed == self.next_offset - self.first_offset - self.holes - self.skipped
            and self.dead_lettered == sum(self.reasons.values())
        )


def require_same_log(report: PartitionReport, facts: LogFacts, partition: int) -> None:
    """Check that a log is the one a store belongs to.

    Raises:
        WrongLogError: Naming what differs: the topic, its identity, how many partitions it has, or the partition.
    """
    stored = {
        "topic": report.topic,
        "topic id": report.topic_id,
        "partition count": report.partitions,
        "partition": report.partition,
    }
    found = {
        "topic": facts.topic,
        "topic id": facts.topic_id,
        "partition count": facts.partitions,
        "partition": partition,
    }
    if differing := [name for name, value in stored.items() if found[name] != value]:
        name = differing[0]
        raise WrongLogError(
            f"partition {partition}: expected {name} {stored[name]}, found {found[name]}: the topic was re-created or "
            f"repartitioned, and offset {report.next_offset} means nothing in it; nothing was applied. Use the old "
            "topic, or a new store for the new one: `jobs.consolidate --adopt` takes over there what was learned here"
        )


def require_still_there(report: PartitionReport, log_start: int) -> None:
    """Check that nothing unread was deleted from the log.

    Raises:
        WrongLogError: The log begins behind the stored offset.
    """
    if report.next_offset < log_start:
        raise WrongLogError(
            f"partition {report.partition}: expected offset {report.next_offset}, but the log starts at {log_start}: "
            "records were deleted unread; nothing was applied. Keep the topic's retention above the updaters' lag"
        )


def require_within(report: PartitionReport, highwater: int | None) -> None:
    """Check that the stored offset is not beyond the end of the log.

    Raises:
        WrongLogError: The log ends before the stored offset.
    """
    if highwater is not None and report.next_offset > highwater:
        raise WrongLogError(
            f"partition {report.partition}: expected a log of at least {report.next_offset} records, found an end at "
            f"{highwater}: it was truncated or replaced; nothing was applied"
        )


def read_report(connection: sqlite3.Connection) -> PartitionReport:
    """The report as the tables state it; inside the caller's transaction."""
    cursor = connection.execute("select * from progress")
    names = [description[0] for description in cursor.description]
    progress = dict(zip(names, cursor.fetchone(), strict=True))
    del progress["one"]
    (waiting,) = connection.execute("select count(*) from waiting").fetchone()
    (open_sessions,) = connection.execute(
        "select count(*) from sessions where phase in ('active', 'suspended')"
    ).fetchone()
    reasons = dict(connection.execute("select reason, count from dead_letter_reasons order by reason").fetchall())
    counts = {"waiting": waiting, "open_sessions": open_sessions}
    return PartitionReport(**progress, **counts, reasons=reasons)
