"""Score changes after the learned weights: agreement across domains (RET-5), and repeats of a session (RET-19)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipelines.domain.ranking import Query, Repeats, Signal
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


ACROSS = "across_domains"
"""Name of the contribution of agreement and diversity."""


def with_domains_weighed(candidates: Candidates, queries: Sequence[Query], *, weight: float) -> Candidates:
    """Candidates with weight · (agreement + 1 / rank within their own domain) / 2 added, where their query asks for it.

    Args:
        candidates: Best first by their scores.
        weight: In [0, 1]; 0 leaves everything as it is.
    """
    if weight == 0.0 or not any(query.across_domains for query in queries):
        return candidates
    agreement = np.nan_to_num(candidates.signal(Signal.CROSS_VALIDATION), nan=0.0)
    values = np.full(len(candidates), np.nan)
    for query, lines in candidates.queries:
        if queries[query].across_domains:
            values[lines] = (agreement[lines] + 1.0 / _ranks(candidates.domain[lines])) / 2.0
    return best_first(candidates.add_term(ACROSS, values, weight))


def _ranks(domains: np.ndarray) -> np.ndarray:
    """Of each candidate among those of its domain, from 1."""
    ranks = np.zeros(len(domains))
    for domain in np.unique(domains):
        own = domains == domain
        ranks[own] = np.arange(1, own.sum() + 1)
    return ranks
