"""Which time an event happened at, decided from the log alone, so that a replay decides the same (hazard of clocks).

Two clocks are claimed for an event: its own `ts`, by the producer, and its record's timestamp, by the broker where
the topic is set up as weft sets it up. Neither is trusted blindly. A partition keeps a clock of its own: the largest
record time seen, moved by at most `clock_step_s` per record, so that no single record carries it away.
"""

from __future__ import annotations

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
