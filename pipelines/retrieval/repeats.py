"""What becomes of results that a session was given before (RET-19)."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.domain.ranking import Contribution, Query, Repeats
from pipelines.retrieval.candidates import Candidate, best_first

REPEATED = "repeated"
"""Name of the contribution that lowers what was given before."""


def without_repeats(candidates: Sequence[Candidate], query: Query, *, penalty: float) -> list[Candidate]:
    """Candidates less those that the query's session was given before, or with these lowered, as the query asks.

    Args:
        candidates: With their final scores.
        penalty: Share of its score, in [0, 1], that a repeated result loses.
    """
    given = frozenset(query.memory.shown) if query.memory is not None else frozenset()
    if not given or query.repeats is Repeats.KEEP:
        return list(candidates)
    if query.repeats is Repeats.SUPPRESS:
        return [candidate for candidate in candidates if candidate.content_hash not in given]
    return best_first(_lowered(each, penalty) if each.content_hash in given else each for each in candidates)


def _lowered(candidate: Candidate, penalty: float) -> Candidate:
    score = candidate.score
    return candidate.plus([Contribution(REPEATED, score, -penalty, score * -penalty)])
