"""What becomes of results that a session was given before (RET-19)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipelines.domain.ranking import Query, Repeats
from pipelines.retrieval.ranking.table import Candidates, Flags, best_first

REPEATED = "repeated"
"""Name of the contribution that lowers what was given before."""


def without_repeats(candidates: Candidates, queries: Sequence[Query], *, penalty: float) -> Candidates:
    """Candidates less those that their query's session was given before, or with these lowered, as the query asks.

    Args:
        candidates: With their final scores.
        penalty: Share of its score, in [0, 1], that a repeated result loses.
    """
    if all(query.memory is None or query.repeats is Repeats.KEEP for query in queries):
        return candidates
    left, lowered = (np.zeros(len(candidates), dtype=bool) for _ in range(2))
    for at, lines in candidates.queries:
        repeats = queries[at].repeats
        if repeats is not Repeats.KEEP:
            repeated = _given_before(candidates.take(lines), queries[at])
            (left if repeats is Repeats.SUPPRESS else lowered)[lines] = repeated
    if lowered.any():
        values = np.where(lowered, candidates.total, np.nan)
        candidates = candidates.add_term(REPEATED, values, -penalty)
    return best_first(candidates.take(~left))


def _given_before(candidates: Candidates, query: Query) -> Flags:
    """Which candidates the query's session was given, (n,)."""
    given = frozenset(query.memory.shown) if query.memory is not None else frozenset()
    return np.array([content in given for content in candidates.hashes], dtype=bool)
