"""Which time an event happened at, decided from the log alone, so that a replay decides the same (hazard of clocks).

Two clocks are claimed for an event: its own `ts`, by the producer, and its record's timestamp, by the broker where
the topic is set up as weft sets it up. Neither is trusted blindly. A partition keeps a clock of its own: the largest
record time seen, moved by at most `clock_step_s` per record, so that no single record carries it away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.domain.errors import InvalidEventError
from pipelines.feedback.settings import TimeSettings


def advance(clock_ms: int, record_ms: int, rules: TimeSettings) -> int:
    """The partition's clock after a record: max(clock, min(record time, clock + step)).

    Args:
        clock_ms: The clock before it, milliseconds since the epoch; 0 before the first record.
        record_ms: The record's timestamp; one outside [earliest, latest] is an unset clock and moves nothing.
        rules: Bounds and step.
    """
    if not rules.earliest_ms <= record_ms <= rules.latest_ms:
        return clock_ms
    if clock_ms == 0:
        return record_ms
    if record_ms <= clock_ms:
        return clock_ms
    return min(record_ms, clock_ms + rules.clock_step_ms)


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
    if ts < rules.earliest_ms:
        raise InvalidEventError("too_old", f"expected a time from {rules.earliest_ms} ms on, found {ts}")
    ingested = record_ms if rules.earliest_ms <= record_ms <= rules.latest_ms else clock_ms
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


def times_of(clock_ms: int, records_ms: Sequence[int], events_ms: Sequence[int], rules: TimeSettings) -> Times:
    """What `advance` and `effective_ms` say of one record after the other, all at once.

    Args:
        clock_ms: The partition's clock before the batch.
        records_ms: The records' timestamps; any integers.
        events_ms: The events' own times; any integers.
        rules: Bounds and step.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> rules, now = load_settings(environment={}).feedback.time, 1_790_000_000_000
        >>> times = times_of(now, [now + 5, -1, now + 9], [now, now, now + 7], rules)
        >>> [each - now for each in times.clock_ms], [each - now for each in times.at_ms]
        ([5, 5, 9], [0, 0, 7])
    """
    recorded, said = _int64(records_ms), _int64(events_ms)
    plausible = (recorded >= rules.earliest_ms) & (recorded <= rules.latest_ms)
    clock = _clock(clock_ms, np.where(plausible, recorded, 0), rules)
    ingested = np.where(plausible, recorded, clock)
    believed = (said >= rules.earliest_ms) & (said <= ingested + rules.lead_ms)
    return Times(clock.tolist(), np.minimum(said, clock).tolist(), believed.tolist())


def _clock(clock_ms: int, recorded: NDArray[np.int64], rules: TimeSettings) -> NDArray[np.int64]:
    """The clock after every record; a record that moves nothing has the time 0."""
    if clock_ms:
        reached = np.maximum.accumulate(np.maximum(recorded, clock_ms))
        if int(np.diff(reached, prepend=clock_ms).max(initial=0)) <= rules.clock_step_ms:
            return reached
    # A first record, or one that leaps ahead: from there on, each one counts for those behind it.
    clocks = np.empty_like(recorded)
    for place, record_ms in enumerate(recorded.tolist()):
        clocks[place] = clock_ms = advance(clock_ms, record_ms, rules)
    return clocks


def _int64(values: Sequence[int]) -> NDArray[np.int64]:
    """Integers as an array; what lies beyond int64 is as unbelievable at its ends."""
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array([max(-(2**63), min(value, 2**63 - 1)) for value in values], dtype=np.int64)
