"""What one session has learned by itself, and how much sessions differ: the hierarchy's deepest level (LRN-5, LRN-14).

A session's prior is what its agent believes, worth κ observations. κ is learned like that of every level: from how much
the sessions that completed before it differed, and from the level above where those are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from weft.domain.arrays import Floats
from weft.learning.evidence import MICRO, Evidence
from weft.learning.parameters import FOR
from weft.learning.pooling.gathering import COLUMNS, Path, node_path
from weft.learning.pooling.shrinkage import Moments, moments_of


@dataclass(frozen=True, slots=True)
class SessionEvidence:
    """What a session reads beside what all read."""

    overlay: Evidence  # evidence that it alone has brought, and no other session reads yet
    moments: Moments  # how much sessions that completed before it started differ, by all of `COLUMNS`


def observed_by(overlay: Evidence) -> Mapping[Path, Floats]:
    """What a session observed at each node, float64 (2, columns): observations for, then against."""
    masses: dict[Path, Floats] = {}
    for key, micro in overlay.counts.items():
        column = COLUMNS.get(key.parameter)
        if column is not None:
            sides = masses.setdefault(node_path(key), np.zeros((2, len(COLUMNS))))
            sides[int(key.bin != FOR), column] += micro / MICRO
    return masses


def moments_among(sessions: Iterable[Mapping[Path, Floats]]) -> Moments:
    """How much sessions at the same nodes differ, by all of `COLUMNS`."""
    rows = [(path, sides) for session in sessions for path, sides in session.items()]
    families = {path: place for place, path in enumerate(sorted({path for path, _ in rows}))}
    if not rows:
        return Moments.none(len(COLUMNS))
    parent = np.array([families[path] for path, _ in rows], dtype=np.int64)
    hits, misses = np.stack([sides for _, sides in rows], axis=1)
    return moments_of(parent, len(families), prior_mean=np.zeros_like(hits), hits=hits, misses=misses)


def to_plain(moments: Moments) -> dict[str, list[float]]:
    """By the name of the parameter, those of which anything is known; for JSON."""
    table = np.stack([moments.beyond, moments.at_most, moments.freedom, moments.weight], axis=1)
    return {name: table[column].tolist() for name, column in COLUMNS.items() if table[column].any()}


def from_plain(stored: Mapping[str, list[float]]) -> Moments:
    """What `to_plain` wrote; parameters that no longer exist are left out."""
    table = np.zeros((len(COLUMNS), 4))
    for name, column in COLUMNS.items():
        if name in stored:
            table[column] = stored[name]
    return Moments(*table.T)
