"""A batch of records: decoded, set in time, and what a partition remembers that they may meet (FBK-3). Values alone.

Two times are claimed for an event: its own `ts`, and that of its record. Where the broker sets the times of records,
they are believed. Where producers set them, one with a broken clock, or a malicious one, must not carry all others'
time away: what one principal alone claims moves the clock by at most a step beyond what others claim. Only a principal
that has the partition to itself is believed further, step by step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from weft.domain.errors import InvalidEventError
from weft.domain.events import Feedback, Impression, LessonChange, SessionPhase, ShownResult
from weft.domain.ids import principal_fingerprint
from weft.domain.ranking import ANONYMOUS
from weft.feedback.events.authenticity import Authenticity
from weft.feedback.events.codec import Decoded, decode_all
from weft.feedback.fold.credit import CountedSelection, EqualVerdicts, QuestionText, question_in
from weft.feedback.fold.names import NameTracker, SourceCounts
from weft.feedback.fold.sessions import SessionLifecycle, Sessions
from weft.feedback.settings import TimeSettings, milliseconds
from weft.learning.observe.outcomes import OutcomeScope
from weft.runtime.kafka.log import Record, Records

EARLIEST_MS, LATEST_MS = 1_577_836_800_000, 4_102_444_800_000
"""2020-01-01 and 2100-01-01: a time outside of them is an unset clock."""
NOBODY = ""
"""Who stands behind records that hold no event: all of them together are one principal."""


class _Answers(Struct, omit_defaults=True):
    chosen: tuple[int, ...]
    verdicts: dict[str, tuple[bool, int]]
    choices: dict[str, list[CountedSelection]] = msgspec.field(default_factory=dict)
    swept: list[str] = msgspec.field(default_factory=list)


_encoder, _answers = msgspec.json.Encoder(), msgspec.json.Decoder(_Answers)
_empty = blake2b(digest_size=16).copy  # made anew, its parameters are read anew


class Arrivals(NamedTuple):
    """A batch in columns, one element per record, in the order of their offsets."""

    records: Records
    events: Sequence[Decoded]  # what each record holds, or why it holds nothing
    sessions: Sequence[str | None]  # their sessions; None without an event
    principals: Sequence[str | None]  # who stands behind them; None without an event
    # sixteen bytes for the id of each event, however long that is; empty without an event
    fingerprints: Sequence[bytes]
    queries: Sequence[bytes]  # of the queries that they are about; empty for events that are about none

    def between(self, begin: int, end: int) -> Arrivals:
        """Those at some places of the batch."""
        records = self.records[begin:end]
        return Arrivals(
            records,
            self.events[begin:end],
            self.sessions[begin:end],
            self.principals[begin:end],
            self.fingerprints[begin:end],
            self.queries[begin:end],
        )


def arrived(records: Sequence[Record], *, max_bytes: int, authenticity: Authenticity | None = None) -> Arrivals:
    """Records decoded, checked for who they are by, and fingerprinted once for everything that follows."""
    columns = Records.of(records)
    events = decode_all(columns.values, max_bytes=max_bytes)
    if authenticity is not None:
        events = authenticity.checked(events, columns.values)
    sessions: list[str | None] = _column(events, "session_id", None)
    return Arrivals(
        columns,
        events,
        sessions,
        _column(events, "principal", None),
        [b"" if event_id is None else fingerprint(event_id) for event_id in _column(events, "event_id", None)],
        _queries(sessions, _column(events, "query_id", None)),
    )


def divided(arrivals: Arrivals) -> Iterator[Arrivals]:
    """A batch in parts, of which each begins with what takes words out: all that was said before is stored then."""
    events = arrivals.events
    places = [place for place, event in enumerate(events) if place and _takes_out(event)]
    edges = [place for place in places if not _takes_out(events[place - 1])]
    if not edges:
        yield arrivals
        return
    for begin, end in pairwise([0, *edges, len(events)]):
        yield Arrivals(*(column[begin:end] for column in arrivals))  # type: ignore[arg-type]


def without_person(impression: Impression) -> Impression:
    """What was shown, without who asked and what."""
    return msgspec.structs.replace(impression, principal=ANONYMOUS, question=None, signature=None)


def unlearns(event: Decoded) -> bool:
    """Whether all that its principal said is taken out."""
    return isinstance(event, SessionPhase) and event.phase == "unlearn_principal"


def forgets(event: Decoded) -> bool:
    """Whether the text of a lesson is taken out."""
    return type(event) is LessonChange and event.op == "forget"


def _takes_out(event: Decoded) -> bool:
    return unlearns(event) if type(event) is SessionPhase else forgets(event)


def _queries(sessions: Sequence[str | None], query_ids: Sequence[str | None]) -> list[bytes]:
    # Most queries have several events, which come close to each other.
    by_query = {
        (session_id, query_id): b""
        if query_id is None or session_id is None
        else query_fingerprint(session_id, query_id)
        for session_id, query_id in set(zip(sessions, query_ids, strict=True))
    }
    return [by_query[about] for about in zip(sessions, query_ids, strict=True)]


def _column(events: Sequence[Decoded], name: str, otherwise: object) -> list[Any]:
    """An attribute of every event, `otherwise` where there is none: nearly always all have it."""
    try:
        return list(map(attrgetter(name), events))
    except AttributeError:
        return [getattr(event, name, otherwise) for event in events]


def fingerprint(text: str) -> bytes:
    """Sixteen bytes that stand for a text."""
    digest = _empty()
    digest.update(text.encode())
    return digest.digest()


def query_fingerprint(session_id: str, query_id: str) -> bytes:
    """Sixteen bytes that stand for one query of one session: another session's feedback can never meet it."""
    # The length prefix keeps ("ab", "c") and ("a", "bc") apart.
    return fingerprint(f"{len(session_id)}:{session_id}{query_id}")


class LogMoment(NamedTuple):
    """When something was heard of: offset of its record, and the effective time of its event in milliseconds."""

    offset: int
    at_ms: int


@dataclass(slots=True)
class PendingImpression:
    """An impression in the join window, and what feedback said of it so far."""

    moment: LogMoment
    impression: Impression  # its results are included as whoever made the answer said last
    chosen: tuple[int, ...] = ()  # ranks that selections chose
    # the last word on a result and its time, by who gave it and the result
    verdicts: dict[str, tuple[bool, int]] = field(default_factory=dict)
    choices: dict[str, list[CountedSelection]] = field(
        default_factory=dict
    )  # the selections themselves, by whose they are
    swept: list[str] = field(default_factory=list)  # who opened the page rather than chose from it
    named: bool = False  # whether an inclusion said what was in the context
    under: dict[str, OutcomeScope] = field(default_factory=dict)  # what feedback on it is kept under, by who gives it
    # verdicts of the batch on its results, by who says what
    judged: dict[tuple[str, str | None, float, bool], EqualVerdicts] = field(default_factory=dict)
    _asked: QuestionText | None = None
    _best: float | None = None

    def asked(self) -> QuestionText:
        """What the search was asked."""
        if self._asked is None:
            self._asked = question_in(self.impression)
        return self._asked

    def share_of_best(self, result: ShownResult) -> float | None:
        """The share that a result's score is of the best one on its page; None where scores are not known."""
        if self._best is None:
            self._best = max((each.score for each in self.impression.results if each.score is not None), default=0.0)
        return None if result.score is None or self._best <= 0.0 else result.score / self._best

    def answers(self) -> str:
        """What was said, as one JSON object; `answers_of` reads it."""
        return _encoder.encode(_Answers(self.chosen, self.verdicts, self.choices, self.swept)).decode()

    def withdraw(self, principal: str) -> list[CountedSelection]:
        """Have the choices of a principal, by fingerprint, never been made: others may choose what they chose."""
        choices = self.choices.pop(principal, [])
        ranks = {self.impression.results[each.place].rank for each in choices if each.after is not None}
        self.chosen = tuple(rank for rank in self.chosen if rank not in ranks)
        return choices

    def forget(self, principal: str, fingerprint: str) -> bool:
        """Forget a principal, who asked or chose; whether there was anything to forget."""
        asked = self.impression.principal == principal
        if asked:
            self.impression = without_person(self.impression)
        chose = fingerprint in self.swept or fingerprint in self.choices
        self.withdraw(fingerprint)
        self.swept = [each for each in self.swept if each != fingerprint]
        return asked or chose


def answers_of(text: str) -> dict[str, Any]:
    """What `PendingImpression.answers` wrote, by the attributes that it goes to."""
    return msgspec.structs.asdict(_answers.decode(text))


class PendingFeedback(NamedTuple):
    """Feedback that came before its impression."""

    moment: LogMoment
    feedback: Feedback


@dataclass(slots=True)
class BatchState:
    """What a partition remembers of the ids and queries that a batch mentions; `fold` writes on in it."""

    clock: PartitionClock  # the partition's clock
    next_offset: int  # of the record that is expected next
    names: NameTracker  # those that the batch mentions
    # offset and effective time of applied events, by the fingerprints of their ids
    seen: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    shown: dict[bytes, PendingImpression] = field(default_factory=dict)  # impressions by query fingerprint
    stored_queries: set[bytes] = field(default_factory=set)  # those whose impression the state holds
    # feedback without impression by query fingerprint, in the order of its offsets
    waiting: dict[bytes, list[PendingFeedback]] = field(default_factory=dict)
    lifecycles: dict[str, SessionLifecycle] = field(default_factory=dict)


class RecordTimes(NamedTuple):
    """What records of one partition say about the time, one element per record."""

    offset: Sequence[int]  # ascending
    who: Sequence[str | None]  # the principal of the record's event; None without one
    record_ms: Sequence[int]  # the record's own time; any integer
    by_broker: Sequence[bool]  # whether the broker set it


class PartitionClock(NamedTuple):
    """A partition's clock after some record; milliseconds since the epoch."""

    now_ms: int = 0  # never goes back; 0 before the first record with a time
    leader: str = NOBODY  # who claimed the latest time so far, as a fingerprint
    leader_ms: int = 0  # that time; 0 where nobody claimed any
    others_ms: int = 0  # the latest time that anybody else claimed; 0 where nobody else did
    last: str = NOBODY  # who the newest record is by
    since: int = 0  # offset of the first record of the run that is by nobody else


def advance(clock: PartitionClock, claims: RecordTimes, rules: TimeSettings) -> tuple[list[int], PartitionClock]:
    """What the clock shows after each of some records, and the clock after the last one.

    A record moves it to max(now, min(record time, now + step)), and not beyond others' latest claim + step. A record
    time outside [earliest, latest] is an unset clock and moves nothing. The broker's times, and those of a principal
    that is alone, are bounded by the step only.

    Examples:
        >>> from weft.settings import load_settings
        >>> rules, noon, year = load_settings(environment={}).feedback.time, 1_790_000_000_000, 31_536_000_000
        >>> times = [noon, noon] + 100 * [noon + 36 * year]
        >>> claims = RecordTimes(range(102), ["a"] + 101 * ["b"], times, 102 * [False])
        >>> shown, clock = advance(PartitionClock(), claims, rules)
        >>> (clock.now_ms - noon) / 3_600_000
        1.0
    """
    now, leader, leader_ms, others_ms, last, since = clock
    step, alone, shown = milliseconds(rules.clock_step_s), rules.clock_alone_records, []
    fingerprints = {who: NOBODY if who is None else principal_fingerprint(who) for who in set(claims.who)}
    for offset, who, record_ms, by_broker in zip(*claims, strict=True):
        claimant = fingerprints[who]
        if claimant != last:
            last, since = claimant, offset
        if EARLIEST_MS <= record_ms <= LATEST_MS:
            if not by_broker and (record_ms > others_ms or (record_ms == leader_ms and claimant > leader)):
                leader, leader_ms, others_ms = _claimed(claimant, record_ms, leader, leader_ms, others_ms)
            if record_ms > now:
                reach = now + step if now else record_ms
                if now and others_ms and not by_broker and offset - since < alone:
                    reach = min(reach, max(now, others_ms + step))
                now = min(record_ms, reach)
        shown.append(now)
    return shown, PartitionClock(now, leader, leader_ms, others_ms, last, since)


def _claimed(claimant: str, record_ms: int, leader: str, leader_ms: int, others_ms: int) -> tuple[str, int, int]:
    """Who claims the latest time, that time, and the latest one of all others, after one more claim."""
    if claimant == leader or not leader_ms:
        return claimant, max(leader_ms, record_ms), others_ms
    # Of equal times the name decides, so that no order of claims makes a difference.
    if (record_ms, claimant) > (leader_ms, leader):
        return claimant, record_ms, leader_ms
    return leader, leader_ms, max(others_ms, record_ms)


def effective_ms(ts: int, record_ms: int, clock_ms: int, *, lead_ms: int) -> int:
    """When an event counts as having happened: its own time, never after the partition's clock.

    Raises:
        InvalidEventError: "too_old" before the earliest believable time; "too_new" when it leads its record by more
            than clocks differ.
    """
    if ts < EARLIEST_MS:
        raise InvalidEventError("too_old", f"expected a time from {EARLIEST_MS} ms on, found {ts}")
    ingested = record_ms if EARLIEST_MS <= record_ms <= LATEST_MS else clock_ms
    if ts > ingested + lead_ms:
        lead_s = lead_ms / 1000
        raise InvalidEventError("too_new", f"expected a time up to {lead_s:g} s after {ingested} ms, found {ts}")
    return min(ts, clock_ms)


# What a batch changes in a partition's state, and what became of each of its records (FBK-5).


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
    forgotten: set[str] = field(default_factory=set)  # lessons whose texts and notes of before the batch are taken out
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
