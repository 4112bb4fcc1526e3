"""Records that the log lost before they were read: nothing goes on without them until a person says so (FBK-14).

Retention deletes records; a topic that was deleted and made again begins at 0. Either way a partition reads on where
the log begins. Everything in its state is ordered by offsets that never repeat. So after a topic was made again, the
partition's offsets are the topic's plus `offset_base`, and go on behind the last one that is known of the old topic.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from pipelines.feedback.store.report import PartitionReport
from pipelines.runtime.kafka.log import LogFacts

RETENTION, MADE_AGAIN = "retention", "topic made again"


class Acceptance(NamedTuple):
    """Who gives lost records up, such as "ada@host", and when, in milliseconds since the epoch."""

    by: str
    at_ms: int


class Loss(NamedTuple):
    """Unread records that were given up.

    Attributes:
        offset: Of the first.
        records: How many; of a topic that was made again, as many as were known of.
        reason: `RETENTION` or `MADE_AGAIN`.
    """

    offset: int
    records: int
    reason: str
    accepted_ms: int
    accepted_by: str

    def __str__(self) -> str:
        return (
            f"{self.records} records from offset {self.offset} on lost ({self.reason}), accepted by {self.accepted_by}"
        )


def accept_loss(
    connection: sqlite3.Connection, report: PartitionReport, facts: LogFacts, log_start: int, acceptance: Acceptance
) -> None:
    """Have a partition read on where the log begins, and count what it misses; inside the claiming transaction.

    Where nothing is missing, or the log is another one than the same topic with as many partitions, nothing changes.

    Args:
        report: The partition's.
        facts: The log as it is now.
        log_start: Its oldest offset, as the topic counts.
    """
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
    if not connection.execute("select 1 from sqlite_schema where name = 'losses'").fetchone():
        return []  # an updater of an earlier version left it
    rows = connection.execute("select offset, records, reason, accepted_ms, accepted_by from losses order by rowid")
    return [Loss(*row) for row in rows]
