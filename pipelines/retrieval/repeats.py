"""What becomes of results that a session was given before (RET-19)."""

from __future__ import annotations

import numpy as np

from pipelines.domain.ranking import Query, Repeats
from pipelines.retrieval.candidates import Candidates, best_first

REPEATED = "repeated"
"""Name of the contribution that lowers what was given before."""


def without_repeats(candidates: Candidates, query: Query, *, penalty: float) -> Candidates:
    """Candidates less those that the query's session was given before, or with these lowered, as the query asks.

    Args:
        candidates: With their final scores.
        penalty: Share of its score, in [0, 1], that a repeated result loses.
    """
    given = frozenset(query.memory.shown) if query.memory is not None else frozenset()
    if not given or query.repeats is Repeats.KEEP:
        return candidates
    repeated = np.array([content in given for content in candidates.hashes], dtype=bool)
    if query.repeats is Repeats.SUPPRESS:
        return candidates.take(np.flatnonzero(~repeated))
    lowered = np.where(repeated, candidates.total, np.nan)
    return best_first(candidates.plus_one(REPEATED, lowered, -penalty))
