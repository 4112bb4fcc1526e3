"""What counts beside the score where an agent asks across domains (RET-5).

Scores of different domains stand on weights of their own. What speaks for a result in any of them is that words and
meaning agree on it, and that it is the best its own domain has to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pipelines.domain.documents import Domain
from pipelines.domain.ranking import Contribution, Query, Signal
from pipelines.retrieval.candidates import Candidate, best_first

ACROSS = "across_domains"
"""Name of the contribution of agreement and diversity."""


def with_domains_weighed(candidates: Sequence[Candidate], query: Query, *, weight: float) -> list[Candidate]:
    """Candidates with weight · (agreement + 1 / rank within their own domain) / 2 added, where a query asks for it.

    Args:
        candidates: Best first by their scores.
        weight: In [0, 1]; 0 leaves everything as it is.
    """
    if not query.across_domains or weight == 0.0:
        return list(candidates)
    ranks: Counter[Domain] = Counter()
    weighed = []
    for candidate in candidates:
        ranks[candidate.domain] += 1
        agreement = candidate.signals.get(Signal.CROSS_VALIDATION, 0.0)
        value = (agreement + 1.0 / ranks[candidate.domain]) / 2.0
        weighed.append(candidate.plus([Contribution(ACROSS, value, weight, value * weight)]))
    return best_first(weighed)
