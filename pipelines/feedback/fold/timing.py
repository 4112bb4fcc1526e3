"""Which time an event happened at, decided from the log alone, so that a replay decides the same (hazard of clocks).

Two clocks are claimed for an event: its own `ts`, by the producer, and its record's timestamp, by the broker where
the topic is set up as weft sets it up. Neither is trusted blindly: see `partition_clock`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipelines.domain.errors import InvalidEventError
from pipelines.feedback.fold.clock import Claims, Clock, believable, int64, run
from pipelines.feedback.settings import TimeSettings


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
    said, recorded = int64(events_ms), believable(claims.record_ms, rules)
    ingested = np.where(recorded > 0, recorded, shown)
    believed = (said >= rules.earliest_ms) & (said <= ingested + rules.lead_ms)
    return Times(shown.tolist(), np.minimum(said, shown).tolist(), believed.tolist()), after
