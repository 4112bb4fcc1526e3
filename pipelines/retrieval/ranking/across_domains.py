"""What counts beside the score where an agent asks across domains (RET-5).

Scores of different domains stand on weights of their own. What speaks for a result in any of them is that words and
meaning agree on it, and that it is the best its own domain has to say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipelines.domain.ranking import Query, Signal
from pipelines.retrieval.ranking.table import Candidates, best_first

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
