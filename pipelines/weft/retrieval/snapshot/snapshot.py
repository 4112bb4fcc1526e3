"""What one request reads from its first line to its last: a generation, and the beliefs of one time (ARC-2, FBK-7)."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from weft.catalog.catalog import Catalog
from weft.catalog.citations import CitationCounts
from weft.catalog.overlays import OpenSession, SessionListing
from weft.domain.errors import StoreError
from weft.domain.ids import GenerationId, SessionId, VersionName
from weft.domain.links import Relation
from weft.learning.beliefs import Beliefs, believed
from weft.learning.calibration.matching import Answering
from weft.learning.calibration.scores import ScoreCalibration
from weft.learning.parts import LearnedVersion, Part
from weft.learning.pooling.sessions import SessionEvidence
from weft.learning.priors import Priors
from weft.retrieval.snapshot.filters import RowFilter
from weft.retrieval.snapshot.ports import OpenGeneration

log = logging.getLogger(__name__)

SESSIONS_HELD = 256
"""Open sessions whose beliefs are held, those asked for last; each is as large as all beliefs."""


@dataclass(frozen=True, slots=True)
class BeliefReading:
    """What one request believes."""

    version: VersionName
    beliefs: Beliefs
    calibration: ScoreCalibration | None = None  # none while no learned version carries one
    # from when on a match counts as an answer, by the generation's own questions; None where it had too few
    built: Answering | None = None

    @property
    def answering(self) -> Answering | None:
        """From when on a match counts as an answer: by the generation's own questions, or else by a night's probes."""
        learned = None if self.calibration is None else self.calibration.match
        return self.built or (None if learned is None else learned.answering)


FindParts = Callable[[VersionName | None], tuple[VersionName, Mapping[str, Part]]]
"""The name that a learned version goes by, and its parts."""


class ReadingCache:
    """Readings of the sessions asked for last, shared by all snapshots.

    A reading depends on base and overlay alone: beliefs are those of the time of the fork (LRN-2).
    """

    def __init__(self, catalog: Catalog, priors: Priors, find_parts: FindParts, *, held: int) -> None:
        self._catalog = catalog
        self._priors = priors
        self._find_parts = find_parts
        self._size = held
        self._readings: OrderedDict[SessionId, tuple[OpenSession, BeliefReading]] = OrderedDict()
        self._lock = threading.Lock()

    def reading(self, session: OpenSession) -> BeliefReading:
        """What a session believes."""
        with self._lock:
            cached = self._readings.get(session.session_id)
        if cached is None or cached[0] != session:
            cached = (session, self._read(session))
        with self._lock:
            self._readings[session.session_id] = cached
            self._readings.move_to_end(session.session_id)
            while len(self._readings) > self._size:
                self._readings.popitem(last=False)
        return cached[1]

    def _read(self, session: OpenSession) -> BeliefReading:
        base = self._catalog.bases.read(session.base)
        version, parts = self._find_parts(base.learned)
        own, learned = (
            SessionEvidence(session.overlay, base.moments),
            LearnedVersion(base.evidence + session.overlay, parts),
        )
        beliefs = believed(self._priors, learned, now=base.at, session=own)
        return BeliefReading(version, beliefs, learned.part(ScoreCalibration))


@dataclass(frozen=True, slots=True)
class ListedSessions:
    """The sessions that were open at one time, and what they believe."""

    listing: SessionListing
    cache: ReadingCache

    def of(self, session_id: SessionId) -> BeliefReading | None:
        """What a session believes; None where it is not open, or its base cannot be read."""
        session = self.listing.find(session_id)
        try:
            return None if session is None else self.cache.reading(session)
        except StoreError as error:
            log.warning("a session reads what all read: %s", error)
            return None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An opened generation, and the beliefs as they were at one time."""

    generation_id: GenerationId
    generation: OpenGeneration
    filters: RowFilter  # row masks of the generation
    version: VersionName
    learned: LearnedVersion
    beliefs: Beliefs  # that follow from it
    sessions: ListedSessions | None = None  # what open sessions believe instead; None where there are none
    built: Answering | None = None  # see `BeliefReading.built`
    relations: tuple[Relation, ...] = ()  # declared in the store, beside those of the generation
    counted: CitationCounts = field(default_factory=dict)  # what providers say of works

    def reading(self, session_id: str | None) -> BeliefReading:
        """What a request of this session believes: base at its fork and its overlay, or what all believe (LRN-14)."""
        if session_id is None or self.sessions is None:
            return self._shared
        own = self.sessions.of(SessionId(session_id))
        return self._shared if own is None else replace(own, built=self.built)

    @property
    def _shared(self) -> BeliefReading:
        return BeliefReading(self.version, self.beliefs, self.learned.part(ScoreCalibration), self.built)


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
