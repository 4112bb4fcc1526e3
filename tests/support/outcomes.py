"""Outcomes of single results, checked and stated value by value, as the evidence that they make (LRN-4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from weft.domain.chunks import MadeBy
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import Scope
from weft.learning.evidence import Evidence
from weft.learning.observe.outcomes import OutcomeScope
from weft.learning.observe.tallies import Tally


class _Result(Struct, frozen=True, gc=False):
    domain: Domain
    content_hash: str
    score: float | None
    signals: Mapping[str, float]
    made: MadeBy | None
    rank: int = 1
    match: MatchFeatures | None = None
    asked: float = 0.0
    precedent: float | None = None


def observe_outcome(
    tally: Tally,
    *,
    day: int,
    scope: Scope,
    intent: str,
    signals: Mapping[str, float],
    score: float | None,
    content_hash: ContentHash,
    good: bool,
    weight: float,
    made: MadeBy | None = None,
) -> None:
    """Add one outcome of one shown result to `tally`.

    Raises:
        ValueError: A value is out of its range or not a number; nothing was added.
    """
    if (score is not None and not 0.0 <= score <= 1.0) or not 0.0 <= weight < math.inf:
        raise ValueError(f"expected a score in [0, 1] and a finite weight >= 0, got {score}, {weight}")
    for name, value in signals.items():
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"expected signal {name!r} in [0, 1], got {value}")
    result = _Result(scope.domain, content_hash, score, signals, made)
    tally.note(result, OutcomeScope(scope.model, scope.agent, intent, ""), day=day, good=good, weight=weight)


def outcome_evidence(**facts: Any) -> Evidence:
    """The evidence of one outcome of one shown result; see `observe_outcome`.

    Examples:
        >>> seen = outcome_evidence(day=0, scope=Scope(Domain.CODE), intent="*", signals={"vector": 0.8}, score=0.37,
        ...     content_hash="ab" * 32, good=True, weight=0.5)
        >>> [(key.parameter, key.bin, mass) for key, mass in sorted(seen.counts.items())]  # .8 · .8 of .5
        [('product.vector.good', 'against', 100000), ('product.vector.good', 'for', 400000),
         ('product.vector.vector.good', 'against', 180000), ('product.vector.vector.good', 'for', 320000),
         ('relevance', '07/20.good', 500000),
         ('signal.vector.good', 'against', 100000), ('signal.vector.good', 'for', 400000)]
    """
    tally = Tally()
    observe_outcome(tally, **facts)
    return tally.freeze()
