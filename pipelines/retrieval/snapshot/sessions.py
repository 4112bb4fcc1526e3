"""What open sessions believe: the evidence at their fork, and on top of it what they alone have learned (LRN-14)."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from pipelines.catalog.catalog import Catalog
from pipelines.catalog.overlays import OpenSession, SessionListing
from pipelines.domain.errors import StoreError
from pipelines.domain.ids import LearnedVersion, SessionId
from pipelines.learning.beliefs import read_beliefs
from pipelines.learning.pooling.sessions import SessionEvidence
from pipelines.learning.priors import Priors
from pipelines.retrieval.snapshot.ports import Calibration
from pipelines.retrieval.snapshot.snapshot import BeliefReading

log = logging.getLogger(__name__)

Describe = Callable[[LearnedVersion | None], tuple[LearnedVersion, Calibration | None]]
"""The name and the calibration that a learned version goes by."""


@dataclass(frozen=True, slots=True)
class _Kept:
    session: OpenSession
    reading: BeliefReading


class ReadingCache:
    """Readings of the sessions asked for last; shared by all snapshots, so that unchanged overlays are read once.

    A reading depends on nothing but base and overlay: beliefs are those of the time of the fork, so that within a
    session nothing ages (LRN-2) and the same question gets the same answer whatever others merge meanwhile.
    """

    def __init__(self, catalog: Catalog, priors: Priors, describe: Describe, *, held: int) -> None:
        self._catalog = catalog
        self._priors = priors
        self._describe = describe
        self._size = held
        self._kept: OrderedDict[SessionId, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def reading(self, session: OpenSession) -> BeliefReading:
        """What a session believes.

        Raises:
            StoreError: What it forked from is gone, or damaged.
        """
        with self._lock:
            kept = self._kept.get(session.session_id)
        if kept is None or kept.session != session:
            kept = _Kept(session, self._read(session))
        with self._lock:
            self._kept[session.session_id] = kept
            self._kept.move_to_end(session.session_id)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return kept.reading

    def _read(self, session: OpenSession) -> BeliefReading:
        base = self._catalog.bases.read(session.base)
        learned, calibration = self._describe(base.learned)
        own = SessionEvidence(session.overlay, base.moments)
        beliefs = read_beliefs(self._priors, base.evidence + session.overlay, now=base.at, session=own)
        return BeliefReading(learned, beliefs, calibration)


@dataclass(frozen=True, slots=True)
class ListedSessions:
    """The sessions that were open at one time, and what they believe."""

    listing: SessionListing
    cache: ReadingCache

    def of(self, session_id: SessionId) -> BeliefReading | None:
        """What a session believes; None where it is not open, or its base cannot be read."""
        session = self.listing.find(session_id)
        if session is None:
            return None
        try:
            return self.cache.reading(session)
        except StoreError as error:
            log.warning("a session reads what all read: %s", error)
            return None
