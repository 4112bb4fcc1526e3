"""Sessions as a partition sees them: what one learns stays its own until it completes (LRN-14 to LRN-17). Pure.

A session that sent `start` is isolated. Its evidence is *pending*: an overlay that only the session itself reads.
`complete` makes it *settled*: part of what all share, and remembered as this session's, so that `unlearn` can take
exactly it out again. `abandon`, or silence for too long, drops what is pending.

Whether a session has fallen silent is decided from the partition's clock when the session is next heard of, and by
the same rule for all sessions whenever a batch ends: the clock never goes back, so both decide alike, and where
batches begin changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from pipelines.feedback.settings import FeedbackSettings
from pipelines.learning.evidence import Evidence
from pipelines.learning.observations import Tally


class Phase(StrEnum):
    """Where a session stands."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    ABANDONED = "abandoned"
    EXPIRED = "expired"
    UNLEARNED = "unlearned"


OPEN = (Phase.ACTIVE, Phase.SUSPENDED)
"""Phases in which a session's evidence is its own."""


class Life(NamedTuple):
    """One session of a partition.

    Attributes:
        offset: Of the record that started it; the session's rows are kept under it.
        heard: Offset of the newest record about it.
        heard_ms: The partition's clock at that record.
        pending: Events whose evidence is in its overlay.
        settled: Events whose evidence it brought into what all share.
        merged: Offset of the record that merged it first of what is settled; None where nothing is.
    """

    offset: int
    session: str
    principal: str
    phase: Phase
    started_ms: int
    heard: int
    heard_ms: int
    pending: int = 0
    settled: int = 0
    merged: int | None = None


@dataclass(slots=True)
class Work:
    """What a batch does to one session; applied in the order of the attributes.

    Attributes:
        life: The session as the batch leaves it.
        unlearn: Take out of the shared evidence what it had settled before the batch.
        drop: Drop what was pending before the batch.
        settle: Settle what was pending before the batch.
        settled: What the batch itself brought into the shared evidence.
        pending: What the batch leaves pending.
    """

    life: Life
    unlearn: bool = False
    drop: bool = False
    settle: bool = False
    settled: list[Tally] = field(default_factory=list)
    pending: Tally = field(default_factory=Tally)

    def settled_evidence(self) -> Evidence:
        """What the batch itself brought into the shared evidence, as a value."""
        return Evidence.sum(tally.freeze() for tally in self.settled)


@dataclass(slots=True)
class Sessions:
    """The sessions that a batch mentions, kept current record by record.

    Attributes:
        lives: As the state has them before the batch; used up.
        works: What the batch does to those that it touches.
        forgotten: Sessions that had been forgotten by the time they were heard of again; their rows go.
        merges: How often the shared evidence took a session in, or let one go.
        dropped: Events whose evidence came to nothing with their session.
    """

    rules: FeedbackSettings
    lives: dict[str, Life] = field(default_factory=dict)
    works: dict[str, Work] = field(default_factory=dict)
    forgotten: list[Work] = field(default_factory=list)
    merges: int = 0
    dropped: int = 0

    def hear(self, session: str, offset: int, clock_ms: int) -> None:
        """Note that a record is about a session; one that had been silent for too long has expired by then."""
        work = self._known(session)
        if work is None:
            return
        if is_forgotten(work.life, offset + 1, clock_ms, self.rules):
            self._drop(work, work.life.phase)
            self.forgotten.append(self.works.pop(session))
            return
        if is_silent(work.life, clock_ms, self.rules):
            self._drop(work, Phase.EXPIRED)
        work.life = work.life._replace(heard=offset, heard_ms=clock_ms)

    def turn(self, session: str, phase: str, *, principal: str, offset: int, clock_ms: int) -> None:
        """Apply a phase of a session that was just heard; one that has no meaning where it stands changes nothing."""
        work = self.works.get(session)
        if phase in {"start", "resume"}:
            self._open(work, Life(offset, session, principal, Phase.ACTIVE, clock_ms, offset, clock_ms))
        elif work is not None:
            _TURNS[phase](self, work)
            if work.life.phase is Phase.COMPLETED and work.life.merged is None:
                work.life = work.life._replace(merged=offset)

    def tally_of(self, session: str, shared: Tally) -> Tally:
        """Where the evidence of one event goes; its session was just heard."""
        work = self.works.get(session)
        if work is None:
            return shared
        life = work.life
        if life.phase in OPEN:
            work.life = life._replace(pending=life.pending + 1)
            return work.pending
        if life.phase is Phase.COMPLETED:
            work.life = life._replace(settled=life.settled + 1)
            if not work.settled:
                work.settled.append(Tally())
            return work.settled[-1]
        self.dropped += 1
        return Tally()

    def _known(self, session: str) -> Work | None:
        if (life := self.lives.pop(session, None)) is not None:
            self.works[session] = Work(life)
        return self.works.get(session)

    def _open(self, work: Work | None, begun: Life) -> None:
        if work is None:
            self.works[begun.session] = Work(begun)
        elif work.life.phase not in OPEN:
            work.life = work.life._replace(phase=Phase.ACTIVE, principal=begun.principal, started_ms=begun.started_ms)
        else:
            work.life = work.life._replace(phase=Phase.ACTIVE)

    def _suspend(self, work: Work) -> None:
        if work.life.phase in OPEN:
            work.life = work.life._replace(phase=Phase.SUSPENDED)

    def _complete(self, work: Work) -> None:
        life = work.life
        if life.phase not in OPEN:
            return
        work.settle = not work.drop
        work.settled.append(work.pending)
        work.pending = Tally()
        work.life = life._replace(phase=Phase.COMPLETED, settled=life.settled + life.pending, pending=0)
        self.merges += 1

    def _abandon(self, work: Work) -> None:
        if work.life.phase in OPEN:
            self._drop(work, Phase.ABANDONED)

    def _unlearn(self, work: Work) -> None:
        self.merges += work.life.settled > 0
        self.dropped += work.life.settled
        work.settled.clear()
        work.settle = False
        work.unlearn = True
        self._drop(work, Phase.UNLEARNED)
        work.life = work.life._replace(settled=0, merged=None)

    def _drop(self, work: Work, phase: Phase) -> None:
        self.dropped += work.life.pending
        work.drop = not work.settle
        work.pending = Tally()
        work.life = work.life._replace(phase=phase, pending=0)


_TURNS: Mapping[str, Callable[[Sessions, Work], None]] = {
    "suspend": Sessions._suspend,
    "complete": Sessions._complete,
    "abandon": Sessions._abandon,
    "unlearn": Sessions._unlearn,
}


def is_silent(life: Life, clock_ms: int, rules: FeedbackSettings) -> bool:
    """Whether an open session expires: nothing was heard of it for longer than its phase allows."""
    if life.phase not in OPEN:
        return False
    return clock_ms - life.heard_ms > silence_ms(life.phase, rules)


def is_forgotten(life: Life, next_offset: int, clock_ms: int, rules: FeedbackSettings) -> bool:
    """Whether too much time, or too many records, lie behind the last word about a session to remember it."""
    return (
        life.heard < next_offset - rules.limits.session_records or clock_ms - life.heard_ms > rules.time.session_kept_ms
    )


def silence_ms(phase: Phase, rules: FeedbackSettings) -> int:
    """How long an open session may be silent, in milliseconds of the partition's clock."""
    return rules.time.session_suspended_ms if phase is Phase.SUSPENDED else rules.time.session_idle_ms
