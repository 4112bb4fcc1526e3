"""Sessions as a partition sees them: what one learns stays its own until it completes (LRN-14 to LRN-17). Pure.

A session that sent `start` is isolated. Its evidence is *pending*: an overlay that only the session itself reads.
`complete` makes it *settled*: part of what all share, and remembered as this session's, so that `unlearn` can take
exactly it out again. So does silence for too long: it is no reason to forget what somebody said. `abandon` alone drops
what is pending.

A session expires by the partition's clock: when its next event comes, and by the same rule for all sessions at the end
of each batch. The clock never goes back, so both decide alike, and batch boundaries change nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from weft.domain.errors import InvalidEventError
from weft.domain.ids import principal_fingerprint
from weft.feedback.fold.names import Draw
from weft.feedback.settings import FeedbackSettings, milliseconds
from weft.learning.observe.tallies import Tallies, Tally


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
MERGED = (Phase.COMPLETED, Phase.EXPIRED)
"""Phases in which it is everybody's, what comes later too."""


class SessionLifecycle(NamedTuple):
    """One session of a partition."""

    offset: int  # of the record that started it; the session's rows are kept under it
    session: str
    principal: str
    phase: Phase
    started_ms: int
    heard: int  # offset of the newest record about it
    heard_ms: int  # the partition's clock at that record
    pending: int = 0  # events whose evidence is in its overlay
    settled: int = 0  # events whose evidence it brought into what all share
    merged: int | None = None  # offset of the record that merged it first of what is settled; None where nothing is


@dataclass(slots=True)
class OverlayTallies:
    """What a batch adds to the overlay of one session."""

    free: Tally  # what draws on no allowance
    drawing: dict[tuple[str, str], Tally] = field(default_factory=dict)  # what does, by payer and allowance
    drawn: dict[Draw, int] = field(default_factory=dict)  # how much, in micro-units


@dataclass(slots=True)
class SessionChanges:
    """What a batch does to one session; applied in the order of the attributes."""

    # the session as the batch leaves it, but for what was heard since it last turned: see `caught_up`
    life: SessionLifecycle
    unlearn: bool = False  # take out of the shared evidence what it had settled before the batch
    drop: bool = False  # drop what was pending before the batch
    settle: bool = False  # settle what was pending before the batch
    settled: list[OverlayTallies] = field(
        default_factory=list
    )  # what the batch itself brought into the shared evidence
    pending: OverlayTallies | None = None  # what the batch leaves pending; None where that is nothing
    heard: int = field(init=False)
    heard_ms: int = field(init=False)
    events: int = 0

    def __post_init__(self) -> None:
        self.heard, self.heard_ms = self.life.heard, self.life.heard_ms

    def caught_up(self) -> SessionLifecycle:
        """The session with everything that was heard of it; events in between turns only count."""
        life, events = self.life, self.events
        pending, settled = (events, 0) if life.phase in OPEN else (0, events)
        self.life = life._replace(
            heard=self.heard, heard_ms=self.heard_ms, pending=life.pending + pending, settled=life.settled + settled
        )
        self.events = 0
        return self.life


class Timeline(NamedTuple):
    """The clock of a batch: offsets of its records, and what the partition's clock showed after each, ascending."""

    offsets: Sequence[int] = ()
    clocks_ms: Sequence[int] = ()

    def first_after(self, ms: int) -> int:
        """Offset of the first record after which it was later than that; there is one."""
        return self.offsets[bisect_right(self.clocks_ms, ms)]


@dataclass(slots=True)
class Sessions:
    """The sessions that a batch mentions, kept current record by record."""

    rules: FeedbackSettings
    lifecycles: dict[str, SessionLifecycle] = field(default_factory=dict)
    works: dict[str, SessionChanges] = field(default_factory=dict)  # what the batch does to those that it touches
    # sessions that had been forgotten by the time they were heard of again; their rows go
    forgotten: list[SessionChanges] = field(default_factory=list)
    tallies: Tallies = field(default_factory=Tallies)  # what the batch noted, of sessions and shared
    timeline: Timeline = field(default_factory=Timeline)  # of the batch
    shared: Tally = field(init=False)  # what goes to all at once
    merges: int = 0  # how often the shared evidence took a session in, or let one go
    dropped: int = 0  # events whose evidence came to nothing with their session
    _nowhere: Tally = field(default_factory=Tally)
    _patience_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self.shared = self.tallies.open()
        time = self.rules.time
        self._patience_ms = milliseconds(min(time.session_idle_s, time.session_suspended_s, time.session_remembered_s))

    def __bool__(self) -> bool:
        """Whether any session is isolated, or was."""
        return bool(self.works or self.lifecycles)

    def ended(self) -> list[SessionLifecycle]:
        """Every session that the batch touched, as it leaves it."""
        return [work.caught_up() for work in self.works.values()]

    def touch(self, session: str, offset: int, clock_ms: int) -> None:
        """Note that a record is about a session; one that had been silent for too long has expired by then."""
        work = self.works.get(session)
        if work is None:
            if session not in self.lifecycles:
                return
            life = self.lifecycles.pop(session)
            work = self.works[session] = SessionChanges(life)
        if clock_ms - work.heard_ms > self._patience_ms or offset - work.heard >= self.rules.limits.session_records:
            life = work.caught_up()
            if is_forgotten(life, offset + 1, clock_ms, self.rules):
                self.forget(self.works.pop(session))
                return
            if is_silent(life, clock_ms, self.rules):
                self.expire(work)
        work.heard, work.heard_ms = offset, clock_ms

    def expire(self, work: SessionChanges) -> None:
        """Merge a session that has fallen silent, at the record with which it had."""
        silent_ms = work.life.heard_ms + silence_ms(work.life.phase, self.rules)
        self._settle(work, Phase.EXPIRED, self.timeline.first_after(silent_ms))

    def forget(self, work: SessionChanges) -> None:
        """Remember a session no longer; one that is open is merged, and cannot be unlearned any more."""
        if work.life.phase in OPEN:
            self._settle(work, Phase.EXPIRED, work.life.heard)
        self.forgotten.append(work)

    def turn(self, session: str, phase: str, *, principal: str, offset: int, clock_ms: int) -> None:
        """Apply a phase of a session that was just heard; one that has no meaning where it stands changes nothing."""
        work = self.works.get(session)
        if work is not None:
            if work.life.principal not in {principal, principal_fingerprint(principal)}:
                raise InvalidEventError("foreign_principal", f"session {session!r} was started by another principal")
            work.caught_up()
        if phase in {"start", "resume"}:
            self._open(work, SessionLifecycle(offset, session, principal, Phase.ACTIVE, clock_ms, offset, clock_ms))
        elif work is not None:
            _TURNS[phase](self, work, offset)

    def unlearn_all(self, principal: str, offset: int, clock_ms: int) -> None:
        """Unlearn every session that a principal started and that is remembered; the batch mentioned none before.

        It stays its own, by its fingerprint: what comes late is still dropped.
        """
        mine = [*self.lifecycles.values(), *(work.life for work in self.works.values())]
        for session in [life.session for life in mine if life.principal == principal]:
            self.touch(session, offset, clock_ms)
            if session in self.works:
                self.turn(session, "unlearn", principal=principal, offset=offset, clock_ms=clock_ms)
                work = self.works[session]
                work.life = work.life._replace(principal=principal_fingerprint(principal))
        self.merges += 1

    def tally_of(self, session: str) -> Tally:
        """Where the evidence of one event goes, whose session was just heard; each event with some asks here once."""
        work = self.works.get(session)
        if work is None:
            return self.shared
        phase = work.life.phase
        if phase in OPEN:
            work.events += 1
            if work.pending is None:
                work.pending = OverlayTallies(self.tallies.open())
            return work.pending.free
        if phase in MERGED:
            work.events += 1
            if not work.settled:
                work.settled.append(OverlayTallies(self.tallies.open()))
            return work.settled[-1].free
        self.dropped += 1
        return self._nowhere

    def life_of(self, session: str) -> int:
        """When a session that was just heard began, or began again; 0 of one that did neither.

        What it noted since is still there; what it noted before may have been dropped. No two such times are equal.
        """
        work = self.works.get(session)
        return 0 if work is None else work.life.started_ms

    def drawing(self, session: str, free: Tally, draw: Draw, micro: int) -> Tally:
        """Where evidence of an isolated session goes that draws on an allowance, of which `free` is the session's."""
        if free is self._nowhere:
            return free
        work = self.works[session]
        overlay = work.pending if work.pending is not None and work.pending.free is free else work.settled[-1]
        overlay.drawn[draw] = overlay.drawn.get(draw, 0) + micro
        if (tally := overlay.drawing.get(draw[:2])) is None:
            tally = overlay.drawing[draw[:2]] = self.tallies.open()
        return tally

    def _open(self, work: SessionChanges | None, begun: SessionLifecycle) -> None:
        if work is None:
            self.works[begun.session] = SessionChanges(begun)
        elif work.life.phase not in OPEN:
            started_ms = max(begun.started_ms, work.life.started_ms + 1)
            work.life = work.life._replace(phase=Phase.ACTIVE, started_ms=started_ms)
        else:
            work.life = work.life._replace(phase=Phase.ACTIVE)

    def _suspend(self, work: SessionChanges, _offset: int) -> None:
        if work.life.phase in OPEN:
            work.life = work.life._replace(phase=Phase.SUSPENDED)

    def _complete(self, work: SessionChanges, offset: int) -> None:
        if work.life.phase in OPEN:
            self._settle(work, Phase.COMPLETED, offset)

    def _settle(self, work: SessionChanges, phase: Phase, offset: int) -> None:
        work.settle = not work.drop
        if work.pending is not None:
            work.settled.append(work.pending)
            work.pending = None
        life = work.life
        merged = offset if life.merged is None else life.merged
        work.life = life._replace(phase=phase, settled=life.settled + life.pending, pending=0, merged=merged)
        self.merges += 1

    def _abandon(self, work: SessionChanges, _offset: int) -> None:
        if work.life.phase in OPEN:
            self._drop(work, Phase.ABANDONED)

    def _unlearn(self, work: SessionChanges, _offset: int) -> None:
        self.merges += work.life.settled > 0
        self.dropped += work.life.settled
        work.settled.clear()
        work.settle = False
        work.unlearn = True
        self._drop(work, Phase.UNLEARNED)
        work.life = work.life._replace(settled=0, merged=None)

    def _drop(self, work: SessionChanges, phase: Phase) -> None:
        self.dropped += work.life.pending
        work.drop = not work.settle
        work.pending = None
        work.life = work.life._replace(phase=phase, pending=0)


_TURNS: Mapping[str, Callable[[Sessions, SessionChanges, int], None]] = {
    "suspend": Sessions._suspend,
    "complete": Sessions._complete,
    "abandon": Sessions._abandon,
    "unlearn": Sessions._unlearn,
}


def is_silent(life: SessionLifecycle, clock_ms: int, rules: FeedbackSettings) -> bool:
    """Whether an open session expires: nothing was heard of it for longer than its phase allows."""
    if life.phase not in OPEN:
        return False
    return clock_ms - life.heard_ms > silence_ms(life.phase, rules)


def is_forgotten(life: SessionLifecycle, next_offset: int, clock_ms: int, rules: FeedbackSettings) -> bool:
    """Whether too much time, or too many records, lie behind the last word about a session to remember it."""
    return life.heard < next_offset - rules.limits.session_records or clock_ms - life.heard_ms > milliseconds(
        rules.time.session_remembered_s
    )


def silence_ms(phase: Phase, rules: FeedbackSettings) -> int:
    """How long an open session may be silent, in milliseconds of the partition's clock."""
    time = rules.time
    return milliseconds(time.session_suspended_s if phase is Phase.SUSPENDED else time.session_idle_s)
