"""How much the sessions of a partition that completed last differ: what the next one's prior is worth (LRN-5)."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pipelines.feedback.overlays import SETTLED
from pipelines.learning.alikeness import Moments
from pipelines.learning.evidence import Evidence, EvidenceKey
from pipelines.learning.gathering import Path
from pipelines.learning.parameters import SIGNAL
from pipelines.learning.sessions import moments_among, said_by

Floats = NDArray[np.float64]

_ROWS = (
    f"select {', '.join(EvidenceKey._fields)}, micro from overlay_evidence"  # noqa: S608 - names of ours
    " where session = ? and settled = ? and parameter >= ? and parameter < ?"
)
_NEWEST = "select offset, settled from sessions where settled > 0 order by heard desc limit ?"


class Alike:
    """What was read of completed sessions, so that each is read once; not a function of the log, as bases are not."""

    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._said: dict[tuple[int, int], Mapping[Path, Floats]] = {}

    def moments(self, connection: sqlite3.Connection) -> Moments:
        """Of the newest sessions that the shared evidence holds; inside the caller's transaction."""
        newest = connection.execute(_NEWEST, (self._at_most,)).fetchall()
        known = self._said
        self._said = {key: known[key] if key in known else _said(connection, key[0]) for key in newest}
        return moments_among(self._said.values())


def _said(connection: sqlite3.Connection, session: int) -> Mapping[Path, Floats]:
    # "/" follows "." in ASCII: the range holds every parameter of a signal and nothing else.
    rows = connection.execute(_ROWS, (session, SETTLED, f"{SIGNAL}.", f"{SIGNAL}/"))
    return said_by(Evidence({EvidenceKey(*key): micro for *key, micro in rows}))
