"""How much the sessions of a partition that completed last differ: what the next one's prior is worth (LRN-5)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pipelines.feedback.store.overlays import SETTLED
from pipelines.learning.evidence import Evidence, EvidenceKey
from pipelines.learning.parameters import SIGNAL
from pipelines.learning.pooling.gathering import Path
from pipelines.learning.pooling.sessions import moments_among, said_by
from pipelines.learning.pooling.shrinkage import Moments

Floats = NDArray[np.float64]

_KEY = ", ".join(EvidenceKey._fields)
_SIGNALS = f"{SIGNAL}.", f"{SIGNAL}/"
"""What lies between holds every parameter of a signal and nothing else: "/" follows "." in ASCII."""
_ROWS = (
    f"select {_KEY}, micro from overlay_evidence"  # noqa: S608 - names of ours
    " where session = ? and settled = ? and parameter >= ? and parameter < ?"
)
_KEY_OF_PART = ", ".join(f"part_evidence.{name}" for name in EvidenceKey._fields)
_COUNTED = (
    f"select {_KEY_OF_PART}, sum(part_evidence.micro) from draws join part_evidence using (session, part)"  # noqa: S608
    " where session = ? and settled = ? and counted = 1 and parameter >= ? and parameter < ?"
    f" group by {_KEY_OF_PART}"
)
_NEWEST = (
    "select offset, settled, (select coalesce(sum(micro), 0) from draws where session = offset and counted = 1)"
    " from sessions where settled > 0 order by heard desc limit ?"
)


class Alike:
    """What was read of completed sessions, so that each is read once; not a function of the log, as bases are not."""

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._said: dict[tuple[int, int, int], Mapping[Path, Floats]] = {}

    def moments(self, connection: sqlite3.Connection) -> Moments:
        """Of the newest sessions that the shared evidence holds; inside the caller's transaction."""
        newest = connection.execute(_NEWEST, (self._at_most,)).fetchall()
        known = self._said
        self._said = {key: known[key] if key in known else _said(connection, key[0]) for key in newest}
        return moments_among(self._said.values())


def _said(connection: sqlite3.Connection, session: int) -> Mapping[Path, Floats]:
    rows = [connection.execute(select, (session, SETTLED, *_SIGNALS)) for select in (_ROWS, _COUNTED)]
    return said_by(Evidence.sum(Evidence({EvidenceKey(*key): micro for *key, micro in some}) for some in rows))
