"""What one outcome says about the signals that spoke for a result, about its score, and about its content (LRN-4)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

from pipelines.domain.documents import Domain
from pipelines.domain.ids import ContentHash
from pipelines.domain.matching import MatchFeatures
from pipelines.domain.ranking import Scope
from pipelines.domain.sizing import MadeBy
from pipelines.learning.evidence import Evidence
from pipelines.learning.observe.outcomes import Under
from pipelines.learning.observe.tallies import Tally
from pipelines.learning.parameters import (
    AGAINST,
    FOR,
    INCLUSION,
    NEGATIVE,
    PAIRS,
    POSITIVE,
    PRODUCT,
    REFERENCE,
    RELEVANCE,
    RETRIEVAL,
    SURPLUS,
    product_parameter,
    relevance_bin,
    signal_parameter,
)

__all__ = [
    "AGAINST",
    "FOR",
    "INCLUSION",
    "NEGATIVE",
    "PAIRS",
    "POSITIVE",
    "PRODUCT",
    "REFERENCE",
    "RELEVANCE",
    "RETRIEVAL",
    "SURPLUS",
    "Tally",
    "observe_outcome",
    "outcome_evidence",
    "product_parameter",
    "relevance_bin",
    "signal_parameter",
]


class _Seen(Struct, frozen=True, gc=False):
    """A result as an outcome by itself knows it."""

    domain: Domain
    content_hash: str
    score: float | None
    signals: Mapping[str, float]
    made: MadeBy | None
    rank: int = 1
    match: MatchFeatures | None = None
    asked: float = 0.0


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
    bins: int,
    made: MadeBy | None = None,
) -> None:
    """Add one outcome of one shown result to `tally`.

    A signal of value s agreed with a good outcome by s and with a bad one by 1 − s; the agreement is mass for, the
    rest mass against, in the Beta of that kind of outcome. Masses are rounded to micro-units here, per observation,
    so that any order of observations sums to the same.

    Args:
        day: Bucket of the event's own time.
        signals: Value in [0, 1] of each signal as it was shown; names that are no `Signal` are passed over.
        score: The ranking score in [0, 1] it was shown with; None where it is not known, and no bin gets the mass.
        weight: |satisfaction| times the confidence of attribution, >= 0.
        bins: How many bins of equal width the score falls in.
        made: The size of the chunk and what made it so, where that is known: evidence about sizes (LRN-9).

    Raises:
        ValueError: A value is out of its range or not a number; nothing was added.
    """
    _check(signals, score, weight)
    result = _Seen(scope.domain, content_hash, score, signals, made)
    tally.note(result, Under(scope.model, scope.agent, intent, "", bins), day=day, good=good, weight=weight)


def outcome_evidence(
    *,
    day: int,
    scope: Scope,
    intent: str,
    signals: Mapping[str, float],
    score: float | None,
    content_hash: ContentHash,
    good: bool,
    weight: float,
    bins: int,
    made: MadeBy | None = None,
) -> Evidence:
    """The evidence of one outcome of one shown result, as a value; see `observe_outcome`.

    Examples:
        >>> from pipelines.domain.documents import Domain
        >>> seen = outcome_evidence(day=0, scope=Scope(Domain.CODE), intent="*", signals={"vector": 0.8}, score=0.37,
        ...     content_hash="ab" * 32, good=True, weight=0.5, bins=20)
        >>> [(key.parameter, key.bin, mass) for key, mass in sorted(seen.counts.items())]  # .8 · .8 of .5
        [('product.vector.good', 'against', 100000), ('product.vector.good', 'for', 400000),
         ('product.vector.vector.good', 'against', 180000), ('product.vector.vector.good', 'for', 320000),
         ('relevance', '07/20.good', 500000),
         ('signal.vector.good', 'against', 100000), ('signal.vector.good', 'for', 400000)]
    """
    tally = Tally()
    observe_outcome(
        tally,
        day=day,
        scope=scope,
        intent=intent,
        signals=signals,
        score=score,
        content_hash=content_hash,
        good=good,
        weight=weight,
        bins=bins,
        made=made,
    )
    return tally.freeze()


def _check(signals: Mapping[str, float], score: float | None, weight: float) -> None:
    if (score is not None and not 0.0 <= score <= 1.0) or not 0.0 <= weight < math.inf:
        raise ValueError(f"expected a score in [0, 1] and a finite weight >= 0, got {score}, {weight}")
    for name, value in signals.items():
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"expected signal {name!r} in [0, 1], got {value}")
