"""A partition's clock, and when its events happened: decided from the log alone, whoever claims what (FBK-3).

Two times are claimed for an event: its own `ts`, and that of its record. Where the broker sets the times of records,
they are believed. Where producers set them, one with a broken clock, or a malicious one, must not carry all others'
time away: what one principal alone claims moves the clock by at most a step beyond what others claim. Only a principal
that has the partition to itself is believed further, step by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.errors import InvalidEventError
from pipelines.feedback.fold.names import principal_fingerprint
from pipelines.feedback.settings import TimeSettings

EARLIEST_MS, LATEST_MS = 1_577_836_800_000, 4_102_444_800_000
"""2020-01-01 and 2100-01-01: a time outside of them is an unset clock."""

_Ints = NDArray[np.int64]

_FEW = 64  # records that are looked at one by one before the rest is looked at together once more
NOBODY = ""
"""Who stands behind records that hold no event: all of them together are one principal."""
_fingerprint = lru_cache(maxsize=4096)(principal_fingerprint)


class Claims(NamedTuple):
    """What records of one partition say about the time, one element per record.

    Attributes:
        offset: Ascending.
        who: The principal of the record's event; None without one.
        record_ms: The record's own time; any integer.
        by_broker: Whether the broker set it.
    """

    offset: Sequence[int]
    who: Sequence[str | None]
    record_ms: Sequence[int]
    by_broker: Sequence[bool]


class Clock(NamedTuple):
    """A partition's clock after some record; milliseconds since the epoch.

    Attributes:
        now_ms: Never goes back; 0 before the first record with a time.
        leader: Who claimed the latest time so far, as a fingerprint.
        leader_ms: That time; 0 where nobody claimed any.
        others_ms: The latest time that anybody else claimed; 0 where nobody else did.
        last: Who the newest record is by.
        since: Offset of the first record of the run that is by nobody else.
    """

    now_ms: int = 0
    leader: str = NOBODY
    leader_ms: int = 0
    others_ms: int = 0
    last: str = NOBODY
    since: int = 0

    def heard(self, offset: int, who: str) -> Clock:
        """The clock after a record by somebody, whatever time it claims."""
        return self if who == self.last else self._replace(last=who, since=offset)

    def claimed(self, who: str, record_ms: int) -> Clock:
        """The clock after somebody claimed a time; what it shows does not move by that."""
        if who == self.leader or not self.leader_ms:
            return self._replace(leader=who, leader_ms=max(self.leader_ms, record_ms))
        # Of equal times the name decides, so that no order of claims makes a difference.
        if (record_ms, who) > (self.leader_ms, self.leader):
            return self._replace(leader=who, leader_ms=record_ms, others_ms=self.leader_ms)
        return self._replace(others_ms=max(self.others_ms, record_ms))

    def is_alone(self, offset: int, rules: TimeSettings) -> bool:
        """Whether nobody but who is heard now has been heard: ever, or for so many records."""
        return not self.others_ms or offset - self.since >= rules.clock_alone_records


def advance(
    clock: Clock, offset: int, who: str | None, record_ms: int, *, by_broker: bool, rules: TimeSettings
) -> Clock:
    """The clock after one record: max(now, min(record time, now + step)), and not beyond others' latest claim + step.

    Args:
        record_ms: One outside [earliest, latest] is an unset clock and moves nothing.
        by_broker: The broker's times, and those of a principal that is alone, are bounded by the step only.
        rules: Bounds, step, and when a principal is alone.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> rules, noon, year = load_settings(environment={}).feedback.time, 1_790_000_000_000, 31_536_000_000
        >>> clock = Clock()
        >>> for offset, (who, ms) in enumerate([("a", noon), ("b", noon)] + 100 * [("b", noon + 36 * year)]):
        ...     clock = advance(clock, offset, who, ms, by_broker=False, rules=rules)
        >>> (clock.now_ms - noon) / 3_600_000
        1.0
    """
    claimant = _claimant(who)
    clock = clock.heard(offset, claimant)
    if not EARLIEST_MS <= record_ms <= LATEST_MS:
        return clock
    if not by_broker:
        clock = clock.claimed(claimant, record_ms)
    if not clock.now_ms:
        return clock._replace(now_ms=record_ms)
    if record_ms <= clock.now_ms:
        return clock
    reach = clock.now_ms + rules.clock_step_ms
    if not (by_broker or clock.is_alone(offset, rules)):
        reach = min(reach, max(clock.now_ms, clock.others_ms + rules.clock_step_ms))
    return clock._replace(now_ms=min(record_ms, reach))


def run(clock: Clock, claims: Claims, rules: TimeSettings) -> tuple[_Ints, Clock]:
    """What `advance` says after each of some records, int64 (n,), and the clock after the last one."""
    found = _at_once(clock, claims, rules)
    if found is not None:
        return found
    # A partition's first records, or a leap: behind a few of them, others have claimed a time as well.
    offset, who, record_ms, by_broker = claims
    few = Claims(offset[:_FEW], who[:_FEW], record_ms[:_FEW], by_broker[:_FEW])
    rest = Claims(offset[_FEW:], who[_FEW:], record_ms[_FEW:], by_broker[_FEW:])
    shown, clock = _one_by_one(clock, few, rules)
    more, clock = _at_once(clock, rest, rules) or _one_by_one(clock, rest, rules)
    return np.concatenate([shown, more]), clock


def _at_once(clock: Clock, claims: Claims, rules: TimeSettings) -> tuple[_Ints, Clock] | None:
    """The same where no bound applies to any of the records; None where one may."""
    times = believable(claims.record_ms)
    top = int(times.max(initial=0))
    if not clock.now_ms or top > clock.now_ms + rules.clock_step_ms or not _unbounded(clock, claims, top, rules):
        return None
    return np.maximum.accumulate(np.maximum(times, clock.now_ms)), _after(clock, claims, times)


def _one_by_one(clock: Clock, claims: Claims, rules: TimeSettings) -> tuple[_Ints, Clock]:
    shown = np.empty(len(claims.offset), dtype=np.int64)
    for place, (offset, who, record_ms, by_broker) in enumerate(zip(*claims, strict=True)):
        clock = advance(clock, offset, who, record_ms, by_broker=by_broker, rules=rules)
        shown[place] = clock.now_ms
    return shown, clock


def believable(record_ms: Sequence[int]) -> _Ints:
    """Record times, 0 for those outside [earliest, latest]."""
    recorded = int64(record_ms)
    return np.where((recorded >= EARLIEST_MS) & (recorded <= LATEST_MS), recorded, 0)


def int64(values: Sequence[int]) -> _Ints:
    """Integers as an array; what lies beyond int64 is as unbelievable at its ends."""
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array([max(-(2**63), min(value, 2**63 - 1)) for value in values], dtype=np.int64)


def _unbounded(clock: Clock, claims: Claims, top: int, rules: TimeSettings) -> bool:
    """Whether none of the records can claim more than others allow it."""
    if all(claims.by_broker) or top <= clock.others_ms + rules.clock_step_ms:
        return True
    return not clock.others_ms and set(map(_claimant, set(claims.who))) <= {clock.leader}


def _claimant(who: str | None) -> str:
    return NOBODY if who is None else _fingerprint(who)


def _after(clock: Clock, claims: Claims, times: _Ints) -> Clock:
    """The clock after all of the records, but for what it shows."""
    if not all(claims.by_broker):
        for who, record_ms in _latest(claims, times):
            clock = clock.claimed(who, record_ms)
    begun = len(claims.who)
    while begun and claims.who[begun - 1] == claims.who[-1]:
        begun -= 1
    if claims.who and (begun or _claimant(claims.who[-1]) != clock.last):
        clock = clock._replace(last=_claimant(claims.who[-1]), since=claims.offset[begun])
    return clock._replace(now_ms=max(clock.now_ms, int(times.max(initial=0))))


def _latest(claims: Claims, times: _Ints) -> Iterator[tuple[str, int]]:
    """The latest times that two principals claim, with all who claim the second; nothing else changes anything."""
    numbers: dict[str | None, int] = {}
    who = [numbers.setdefault(name, len(numbers)) for name in claims.who]
    latest = np.zeros(len(numbers), dtype=np.int64)
    np.maximum.at(latest, who, np.where(np.array(claims.by_broker, dtype=bool), 0, times))
    least = int(np.sort(latest)[-2:][0])
    for name, record_ms in zip(numbers, latest.tolist(), strict=True):
        if record_ms and record_ms >= least:
            yield _claimant(name), record_ms


def effective_ms(ts: int, record_ms: int, clock_ms: int, rules: TimeSettings) -> int:
    """When an event counts as having happened: its own time, never after the partition's clock.

    Args:
        ts: The event's own time.
        record_ms: Its record's timestamp.
        clock_ms: The partition's clock after that record.
        rules: Bounds, and how far an event may lead its record.

    Raises:
        InvalidEventError: "too_old" before the earliest believable time; "too_new" when it leads its record by more
            than clocks differ.
    """
    if ts < EARLIEST_MS:
        raise InvalidEventError("too_old", f"expected a time from {EARLIEST_MS} ms on, found {ts}")
    ingested = record_ms if EARLIEST_MS <= record_ms <= LATEST_MS else clock_ms
    if ts > ingested + rules.lead_ms:
        raise InvalidEventError("too_new", f"expected a time up to {rules.lead_s:g} s after {ingested} ms, found {ts}")
    return min(ts, clock_ms)


class Times(NamedTuple):
    """When the events of a batch happened, one element per record.

    Attributes:
        clock_ms: The partition's clock after each record.
        at_ms: When its event counts as having happened.
        believed: Whether the event's own time can be believed; where it cannot, `effective_ms` says why.
    """

    clock_ms: Sequence[int]
    at_ms: Sequence[int]
    believed: Sequence[bool]


def times_of(clock: Clock, claims: Claims, events_ms: Sequence[int], rules: TimeSettings) -> tuple[Times, Clock]:
    """What the clock and `effective_ms` say of one record after the other, all at once; and the clock after them.

    Args:
        clock: Before the batch.
        claims: What its records say about the time.
        events_ms: The events' own times; any integers.
        rules: Bounds and step.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> rules, now = load_settings(environment={}).feedback.time, 1_790_000_000_000
        >>> claims = Claims([0, 1, 2], ["a", "b", "a"], [now + 5, -1, now + 9], [False] * 3)
        >>> times, clock = times_of(Clock(now), claims, [now, now, now + 7], rules)
        >>> [each - now for each in times.clock_ms], [each - now for each in times.at_ms], clock.now_ms - now
        ([5, 5, 9], [0, 0, 7], 9)
    """
    shown, after = run(clock, claims, rules)
    said, recorded = int64(events_ms), believable(claims.record_ms)
    ingested = np.where(recorded > 0, recorded, shown)
    believed = (said >= EARLIEST_MS) & (said <= ingested + rules.lead_ms)
    return Times(shown.tolist(), np.minimum(said, shown).tolist(), believed.tolist()), after
