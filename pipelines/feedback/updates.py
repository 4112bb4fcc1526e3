"""Events to changes: what a batch of one partition does to its state. Pure: no clock, no store, no broker.

Every record meets exactly one fate. Which one depends on the records before it in the log and on nothing else: not
on where batches begin, nor on when or how often an updater ran. That is what makes a replay give the same bits.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from pipelines.domain.errors import InvalidEventError
from pipelines.domain.events import AnyEvent, Feedback, Impression, Selection, SessionPhase
from pipelines.feedback.credit import chosen_rank, credits_of, tally_click, tally_credits, tally_shown
from pipelines.feedback.names import Names
from pipelines.feedback.reports import report_evidence
from pipelines.feedback.sessions import Life, Sessions
from pipelines.feedback.settings import MS, FeedbackSettings
from pipelines.feedback.sources import Heard, note
from pipelines.feedback.timing import advance, effective_ms
from pipelines.learning.binning import Bins
from pipelines.learning.evidence import MICRO, day_of
from pipelines.learning.observations import Tally
from pipelines.runtime.log import Record

_AboutAQuery = Feedback | Impression


class Arrival(Struct, frozen=True, gc=False):
    """A record and what it holds, with the fingerprints that the state knows it by.

    Attributes:
        event: What the record holds, or why it holds nothing.
        fingerprint: Of the event's id; empty without an event.
        query: Of the query it is about; empty for events that are about none.
    """

    record: Record
    event: AnyEvent | InvalidEventError
    fingerprint: bytes = b""
    query: bytes = b""


class Fate(StrEnum):
    """What became of a record; each has exactly one."""

    APPLIED = "applied"
    DUPLICATE = "duplicate"
    DEAD_LETTERED = "dead_lettered"
    LATE = "late"


class Moment(NamedTuple):
    """When something was heard of: offset of its record, and the effective time of its event in milliseconds."""

    offset: int
    at_ms: int


class Shown(NamedTuple):
    """An impression in the join window, and the ranks chosen from it so far."""

    moment: Moment
    impression: Impression
    chosen: tuple[int, ...] = ()


class Waiting(NamedTuple):
    """Feedback that came before its impression."""

    moment: Moment
    feedback: Feedback


class DeadLetter(NamedTuple):
    """A record that could not become an event, or an event that means nothing."""

    record: Record
    reason: str
    detail: str


@dataclass(slots=True)
class Known:
    """What a partition remembers of the ids and queries that a batch mentions; `fold` writes on in it.

    Attributes:
        clock_ms: The partition's clock.
        next_offset: Of the record that is expected next.
        seen: Event ids by fingerprint.
        shown: Impressions by query fingerprint.
        waiting: Feedback without impression by query fingerprint, in the order of its offsets.
        lives: Sessions by id.
        names: Those that the batch mentions.
    """

    clock_ms: int
    next_offset: int
    names: Names
    seen: dict[bytes, Moment] = field(default_factory=dict)
    shown: dict[bytes, Shown] = field(default_factory=dict)
    waiting: dict[bytes, list[Waiting]] = field(default_factory=dict)
    lives: dict[str, Life] = field(default_factory=dict)


@dataclass(slots=True)
class Change:
    """What a batch adds to a partition's state; all of it is committed in one transaction, or none.

    Attributes:
        sessions: Those the batch mentions; evidence of isolated ones is in here, not in `tally`.
        holes: Offsets that the log skipped: transaction markers, compaction, or records lost by a broker.
        unjoined: Feedback that was waiting and turned out to answer nothing.
        joined: Offsets of feedback that waits no longer.
    """

    clock_ms: int
    next_offset: int
    sessions: Sessions
    names: Names
    heard: Heard = field(default_factory=Counter)
    consumed: int = 0
    holes: int = 0
    unjoined: int = 0
    fates: Counter[Fate] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    seen: dict[bytes, Moment] = field(default_factory=dict)
    shown: dict[bytes, Shown] = field(default_factory=dict)
    waiting: dict[int, tuple[bytes, Waiting]] = field(default_factory=dict)
    joined: list[int] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)

    def tally_of(self, session_id: str) -> Tally:
        """Where the evidence of one event goes; every event that has some asks here, once.

        The shared tally; or, where the session is isolated, its overlay; or nowhere, where it has ended without
        completing (LRN-14, LRN-15).

        Args:
            session_id: Of the event that is being consumed.
        """
        return self.sessions.tally_of(session_id, self.tally)


def event_fingerprint(event_id: str) -> bytes:
    """Sixteen bytes that stand for an event id: short to keep, whatever producers choose."""
    return hashlib.blake2b(event_id.encode(), digest_size=16).digest()


def query_fingerprint(session_id: str, query_id: str) -> bytes:
    """Sixteen bytes that stand for one query of one session: another session's feedback can never meet it."""
    # The length prefix keeps ("ab", "c") and ("a", "bc") apart.
    return hashlib.blake2b(f"{len(session_id)}:{session_id}{query_id}".encode(), digest_size=16).digest()


def arrived(record: Record, event: AnyEvent | InvalidEventError) -> Arrival:
    """A record with what it holds, fingerprinted once for everything that follows."""
    if isinstance(event, InvalidEventError):
        return Arrival(record, event)
    fingerprint = event_fingerprint(event.event_id)
    if isinstance(event, _AboutAQuery):
        return Arrival(record, event, fingerprint, query_fingerprint(event.session_id, event.query_id))
    return Arrival(record, event, fingerprint)


def fold(known: Known, arrivals: Sequence[Arrival], rules: FeedbackSettings, bins: Bins) -> Change:
    """What a batch changes.

    Args:
        known: The state as far as the batch mentions it; it is used up.
        arrivals: The batch, in the order of its offsets, none of them consumed before.
        rules: Times, limits and weights.
        bins: How finely evidence is kept.
    """
    batch = _Batch(known, rules, bins)
    for arrival in arrivals:
        batch.consume(arrival)
    return batch.change


class _Batch:
    """One pass over a batch: `known` is read and kept current, `change` collects what is to be written."""

    def __init__(self, known: Known, rules: FeedbackSettings, bins: Bins) -> None:
        self.known = known
        self.change = Change(known.clock_ms, known.next_offset, Sessions(rules, known.lives), known.names)
        self._rules = rules
        self._bins = bins
        self._names = known.names
        self._window_ms = rules.time.window_ms

    def consume(self, arrival: Arrival) -> None:
        change, record = self.change, arrival.record
        change.consumed += 1
        change.holes += record.offset - change.next_offset
        change.next_offset = record.offset + 1
        change.clock_ms = advance(change.clock_ms, record.timestamp, self._rules.time)
        try:
            fate = self._fate(arrival)
        except InvalidEventError as error:
            change.dead_letters.append(DeadLetter(record, error.reason, str(error)))
            fate = Fate.DEAD_LETTERED
        change.fates[fate] += 1

    def _fate(self, arrival: Arrival) -> Fate:
        record, event = arrival.record, arrival.event
        if isinstance(event, InvalidEventError):
            raise event
        at_ms = effective_ms(event.ts, record.timestamp, self.change.clock_ms, self._rules.time)
        moment = Moment(record.offset, at_ms)
        if not self._within(moment, self._window_ms):
            return Fate.LATE
        before = self.known.seen.get(arrival.fingerprint)
        if before and self._remembered(before, self._rules.limits.event_id_records, self._window_ms):
            return Fate.DUPLICATE
        fate = self._apply(event, arrival.query, moment)
        if fate is Fate.APPLIED:
            note(self.change.heard, event, self._names.agent(event.agent), self._names.principal(event.principal))
            self.known.seen[arrival.fingerprint] = self.change.seen[arrival.fingerprint] = moment
        return fate

    def _apply(self, event: AnyEvent, query: bytes, moment: Moment) -> Fate:
        self.change.sessions.hear(event.session_id, moment.offset, self.change.clock_ms)
        if isinstance(event, Feedback):
            return self._answer(query, event, moment)
        if isinstance(event, SessionPhase):
            self._turn(event, moment)
        elif isinstance(event := self._names.bounded(event), Impression):
            self._show(query, event, moment)
        else:
            day = day_of(moment.at_ms / MS)
            within = self._names.draw(self._names.principal(event.principal), day, MICRO)
            found = report_evidence(event, day=day, bins=self._bins)
            self.change.tally_of(event.session_id).note_report(found, surplus=not within)
        return Fate.APPLIED

    def _turn(self, event: SessionPhase, moment: Moment) -> None:
        self.change.sessions.turn(
            event.session_id,
            event.phase,
            principal=event.principal,
            offset=moment.offset,
            clock_ms=self.change.clock_ms,
        )

    def _show(self, query: bytes, impression: Impression, moment: Moment) -> None:
        before = self.known.shown.get(query)
        if before and self._remembered(before.moment, self._rules.limits.impression_records, self._window_ms):
            # The first one stands: whoever answers later may not change what was shown.
            raise InvalidEventError("repeated_impression", f"query {impression.query_id!r} was shown before")
        self._keep(query, Shown(moment, impression))
        day = day_of(moment.at_ms / MS)
        tally_shown(self.change.tally_of(impression.session_id), impression, self._rules.credit, day=day)
        for waiting in self.known.waiting.pop(query, ()):
            self._join_waiting(query, waiting)

    def _join_waiting(self, query: bytes, waiting: Waiting) -> None:
        if self.change.waiting.pop(waiting.moment.offset, None) is None:
            self.change.joined.append(waiting.moment.offset)
        try:
            if not self._remembered(waiting.moment, self._rules.limits.waiting_records, self._window_ms):
                self.change.unjoined += 1
            else:
                self._credit(query, waiting.feedback, waiting.moment)
        except InvalidEventError:
            # It was consumed, and counted, when it came; all that is left to say is that it answers nothing.
            self.change.unjoined += 1

    def _answer(self, query: bytes, feedback: Feedback, moment: Moment) -> Fate:
        shown = self.known.shown.get(query)
        limit = self._rules.limits.impression_records
        if shown is None or not self._remembered(shown.moment, limit, 2 * self._window_ms):
            waiting = Waiting(moment, feedback)
            self.known.waiting.setdefault(query, []).append(waiting)
            self.change.waiting[moment.offset] = (query, waiting)
        elif not self._within(shown.moment, self._window_ms):
            return Fate.LATE
        else:
            self._credit(query, feedback, moment)
        return Fate.APPLIED

    def _credit(self, query: bytes, feedback: Feedback, moment: Moment) -> None:
        shown = self.known.shown[query]
        found = credits_of(feedback, shown.impression, chosen=shown.chosen, rules=self._rules)
        day = day_of(moment.at_ms / MS)
        # Whose session it is says the search service, in the impression; a producer could say anything.
        principal = self._names.principal(shown.impression.principal)
        within = self._names.draw(principal, day, sum(round(credit.weight * MICRO) for credit in found))
        tally = self.change.tally_of(shown.impression.session_id)
        tally_credits(
            tally, found, shown.impression, day=day, bins=self._bins.relevance, principal=principal, surplus=not within
        )
        if found and isinstance(feedback, Selection):
            if within:
                # Counted on the day it was shown, as the results it stands among are.
                shown_on = day_of(shown.moment.at_ms / MS)
                tally_click(tally, feedback, shown.impression, self._rules.credit, day=shown_on)
            self._keep(query, shown._replace(chosen=(*shown.chosen, chosen_rank(feedback, shown.impression))))

    def _keep(self, query: bytes, shown: Shown) -> None:
        self.known.shown[query] = self.change.shown[query] = shown

    def _within(self, moment: Moment, window_ms: int) -> bool:
        return moment.at_ms >= self.change.clock_ms - window_ms

    def _remembered(self, moment: Moment, records: int, window_ms: int) -> bool:
        return self._within(moment, window_ms) and moment.offset >= self.change.next_offset - records
