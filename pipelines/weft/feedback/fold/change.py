"""What a batch changes in a partition's state, and what became of each of its records (FBK-5). Values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from weft.feedback.fold.batch import PartitionClock, PendingFeedback, PendingImpression
from weft.feedback.fold.names import NameTracker, SourceCounts
from weft.feedback.fold.sessions import Sessions
from weft.runtime.kafka.log import Record


class Fate(StrEnum):
    """What became of a record; each has exactly one."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    DEAD_LETTERED = "dead_lettered"
    LATE = "late"


class DeadLetter(NamedTuple):
    """A record that could not become an event, or an event that means nothing."""

    record: Record
    reason: str
    detail: str


@dataclass(slots=True)
class Change:
    """What a batch adds to a partition's state; all of it is committed in one transaction, or none."""

    clock: PartitionClock
    next_offset: int
    sessions: Sessions  # those the batch mentions, with all its evidence, theirs and shared
    names: NameTracker
    stored_queries: set[bytes] = field(default_factory=set)  # those whose impression the state holds before the batch
    # principals whose words of before the batch are taken out, with their fingerprints
    unlearned: dict[str, str] = field(default_factory=dict)
    sources: SourceCounts = field(default_factory=Counter)
    consumed: int = 0
    holes: int = 0  # offsets whose records the log has lost
    skipped: int = 0  # offsets that the log explains: control records, aborted ones, and what compaction took
    unjoined: int = 0  # feedback that was waiting and turned out to answer nothing
    fates: Counter[Fate] = field(default_factory=Counter)
    seen: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    shown: dict[bytes, PendingImpression] = field(default_factory=dict)
    waiting: dict[int, tuple[bytes, PendingFeedback]] = field(default_factory=dict)
    joined: list[int] = field(default_factory=list)  # offsets of feedback that waits no longer
    dead_letters: list[DeadLetter] = field(default_factory=list)
