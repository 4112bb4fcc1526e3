"""Everything a search reads, held together: one snapshot serves a request from its first line to its last (ARC-2)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

from pipelines.domain.ids import GenerationId, LearnedVersion, SessionId
from pipelines.retrieval.snapshot.filters import RowFilter
from pipelines.retrieval.snapshot.ports import Calibration, OpenGeneration, ReadableBeliefs


@dataclass(frozen=True, slots=True)
class BeliefReading:
    """What one request believes.

    Attributes:
        calibration: None while no learned version carries one.
    """

    learned: LearnedVersion
    beliefs: ReadableBeliefs
    calibration: Calibration | None = None


class SessionReadings(Protocol):
    """What open sessions believe, as of one time; asked by any thread."""

    def of(self, session_id: SessionId) -> BeliefReading | None:
        """What a session believes; None where it is not open, and believes what all believe."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An opened generation, and the beliefs as they were at one time.

    Attributes:
        filters: Row masks of the generation.
        calibration: None while no learned version carries one.
        sessions: What open sessions believe instead; None where there are none.
    """

    generation_id: GenerationId
    generation: OpenGeneration
    filters: RowFilter
    learned: LearnedVersion
    beliefs: ReadableBeliefs
    calibration: Calibration | None = None
    sessions: SessionReadings | None = None

    def reading(self, session_id: str | None) -> BeliefReading:
        """What a request of this session believes: base at its fork and its overlay, or what all believe (LRN-14)."""
        if (
            session_id is not None
            and self.sessions is not None
            and (own := self.sessions.of(SessionId(session_id))) is not None
        ):
            return own
        return BeliefReading(self.learned, self.beliefs, self.calibration)


class SnapshotSource(Protocol):
    """Says what is live; a `Searcher` asks it at most every `refresh_s`, from any thread, one at a time."""

    def token(self) -> Hashable:
        """A value that changes whenever the live generation, learned version or evidence does."""

    def take(self, previous: Snapshot | None) -> Snapshot:
        """What is live now; a generation that `previous` already has open is not opened again."""


class OneSnapshot:
    """A source of one snapshot, whatever is published meanwhile."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def token(self) -> Hashable:
        """Never another."""
        return 0

    def take(self, _previous: Snapshot | None) -> Snapshot:
        """The snapshot."""
        return self._snapshot
