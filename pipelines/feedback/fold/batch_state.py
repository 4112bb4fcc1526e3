"""What a partition remembers that the events of a batch may meet. Values; who reads and writes them is elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pipelines.domain.events import Feedback, Impression
from pipelines.feedback.fold.clock import Clock
from pipelines.feedback.fold.names import Names
from pipelines.feedback.fold.quota import Parts
from pipelines.feedback.fold.sessions import Life
from pipelines.learning.observe.outcomes import Under


class LogMoment(NamedTuple):
    """When something was heard of: offset of its record, and the effective time of its event in milliseconds."""

    offset: int
    at_ms: int


@dataclass(slots=True)
class PendingImpression:
    """An impression in the join window, and the ranks chosen from it so far.

    Attributes:
        under: What feedback on it is kept under, once there was some.
    """

    moment: LogMoment
    impression: Impression
    chosen: tuple[int, ...] = ()
    under: Under | None = None


class Waiting(NamedTuple):
    """Feedback that came before its impression."""

    moment: LogMoment
    feedback: Feedback


@dataclass(slots=True)
class BatchState:
    """What a partition remembers of the ids and queries that a batch mentions; `fold` writes on in it.

    Attributes:
        clock: The partition's clock.
        next_offset: Of the record that is expected next.
        seen: Offset and effective time of applied events, by the fingerprints of their ids.
        shown: Impressions by query fingerprint.
        stored: Queries whose impression the state holds.
        waiting: Feedback without impression by query fingerprint, in the order of its offsets.
        lives: Sessions by id.
        parts: What they draw on allowances, by their offsets.
        names: Those that the batch mentions.
    """

    clock: Clock
    next_offset: int
    names: Names
    seen: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    shown: dict[bytes, PendingImpression] = field(default_factory=dict)
    stored: set[bytes] = field(default_factory=set)
    waiting: dict[bytes, list[Waiting]] = field(default_factory=dict)
    lives: dict[str, Life] = field(default_factory=dict)
    parts: dict[int, Parts] = field(default_factory=dict)
