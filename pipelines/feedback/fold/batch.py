"""A batch of records, decoded, and what a partition remembers that they may meet. Values; who reads and writes them is
elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import attrgetter
from typing import Any, NamedTuple

from pipelines.domain.events import Feedback, Impression
from pipelines.feedback.events.codec import Decoded, decode_all
from pipelines.feedback.fold.clock import Clock
from pipelines.feedback.fold.names import Names
from pipelines.feedback.fold.quota import Parts
from pipelines.feedback.fold.sessions import Life
from pipelines.learning.observe.outcomes import Under
from pipelines.runtime.kafka.log import Record, Records

_empty = blake2b(digest_size=16).copy  # made anew, its parameters are read anew


class Arrivals(NamedTuple):
    """A batch in columns, one element per record, in the order of their offsets.

    Attributes:
        events: What each record holds, or why it holds nothing.
        sessions: Their sessions; None without an event.
        principals: Who stands behind them; None without an event.
        fingerprints: Sixteen bytes for the id of each event, however long that is; empty without an event.
        queries: Of the queries that they are about; empty for events that are about none.
    """

    records: Records
    events: Sequence[Decoded]
    sessions: Sequence[str | None]
    principals: Sequence[str | None]
    fingerprints: Sequence[bytes]
    queries: Sequence[bytes]


def arrived(records: Sequence[Record], *, max_bytes: int) -> Arrivals:
    """Records decoded, and fingerprinted once for everything that follows.

    Args:
        records: Of one partition.
        max_bytes: Longer values are refused unparsed.
    """
    columns = Records.of(records)
    events = decode_all(columns.values, max_bytes=max_bytes)
    sessions: list[str | None] = _column(events, "session_id", None)
    return Arrivals(
        columns,
        events,
        sessions,
        _column(events, "principal", None),
        [b"" if event_id is None else fingerprint(event_id) for event_id in _column(events, "event_id", None)],
        _queries(sessions, _column(events, "query_id", None)),
    )


def _queries(sessions: Sequence[str | None], query_ids: Sequence[str | None]) -> list[bytes]:
    # Most queries have several events, which come close to each other.
    known = {
        (session_id, query_id): b""
        if query_id is None or session_id is None
        else query_fingerprint(session_id, query_id)
        for session_id, query_id in set(zip(sessions, query_ids, strict=True))
    }
    return [known[about] for about in zip(sessions, query_ids, strict=True)]


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
