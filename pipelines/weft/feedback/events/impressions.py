"""What a search shows, as the event that says so (FBK-1)."""

from __future__ import annotations

from typing import Any

from weft.domain.documents import Domain
from weft.domain.event_fields import MOST_SHOWN
from weft.domain.events import Impression, ShownResult
from weft.domain.ids import question_hash
from weft.domain.ranking import Answer, RankedResult


def impression_of(answer: Answer, *, question_characters: int = 0, **stamp: Any) -> Impression:
    """The impression of an answer: what was shown, at which rank, with which signals.

    Of more results than an event tells of, the first.
    """
    query = answer.query
    return Impression(
        **stamp,
        domain=query.domain or Domain.GENERAL,
        model=query.model,
        agent=query.agent,
        query_id=query.query_id,
        query_hash=question_hash(query.text) if query.text.strip() else None,
        question=query.text.strip()[:question_characters] or None,
        intent=query.intent,
        results=[_shown(result) for result in answer.results[:MOST_SHOWN]],
    )


def _shown(result: RankedResult) -> ShownResult:
    return ShownResult(
        content_hash=result.content_hash,
        rank=result.rank,
        domain=result.domain,
        score=_share(result.relevance),
        signals={signal.value: _share(value) for signal, value in result.signals.items()},
        propensity=_share(result.propensity),
        examination=_share(result.examination),
        asked=_share(result.asked),
        made=result.made,
        match=result.match,
        precedent=None if result.precedent is None else _share(result.precedent),
    )


def _share(value: float) -> float:
    # Rounding may carry a sum of shares past its ends by a few ulps.
    return min(1.0, max(0.0, value))
