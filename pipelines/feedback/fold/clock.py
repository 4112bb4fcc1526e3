"""A partition's clock, and when its events happened: decided from the log alone, whoever claims what (FBK-3).

Two times are claimed for an event: its own `ts`, and that of its record. Where the broker sets the times of records,
they are believed. Where producers set them, one with a broken clock, or a malicious one, must not carry all others'
time away: what one principal alone claims moves the clock by at most a step beyond what others claim. Only a principal
that has the partition to itself is believed further, step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipelines.domain.errors import InvalidEventError
from pipelines.feedback.fold.names import principal_fingerprint
from pipelines.feedback.settings import TimeSettings, milliseconds

EARLIEST_MS, LATEST_MS = 1_577_836_800_000, 4_102_444_800_000
"""2020-01-01 and 2100-01-01: a time outside of them is an unset clock."""
NOBODY = ""
"""Who stands behind records that hold no event: all of them together are one principal."""


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


def advance(clock: Clock, claims: Claims, rules: TimeSettings) -> tuple[list[int], Clock]:
    """What the clock shows after each of some records, and the clock after the last one.

    A record moves it to max(now, min(record time, now + step)), and not beyond others' latest claim + step. A record
    time outside [earliest, latest] is an unset clock and moves nothing. The broker's times, and those of a principal
    that is alone, are bounded by the step only.

    Args:
        clock: Before the records.
        claims: Their own.
        rules: The step, and for how many records in a row a principal is heard until it counts as alone.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> rules, noon, year = load_settings(environment={}).feedback.time, 1_790_000_000_000, 31_536_000_000
        >>> times = [noon, noon] + 100 * [noon + 36 * year]
        >>> shown, clock = advance(Clock(), Claims(range(102), ["a"] + 101 * ["b"], times, 102 * [False]), rules)
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
            if not by_broker:
                leader, leader_ms, others_ms = _claimed(claimant, record_ms, leader, leader_ms, others_ms)
            if record_ms > now:
                reach = now + step if now else record_ms
                if now and others_ms and not by_broker and offset - since < alone:
                    reach = min(reach, max(now, others_ms + step))
                now = min(record_ms, reach)
        shown.append(now)
    return shown, Clock(now, leader, leader_ms, others_ms, last, since)


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

    Args:
        ts: The event's own time.
        record_ms: Its record's timestamp.
        clock_ms: The partition's clock after that record.
        lead_ms: How far an event may lead its record.

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
