"""How far around a result its context goes: by what is asked, and by how sure the result is (RET-16)."""

from __future__ import annotations

from pipelines.domain.context import Reach
from pipelines.domain.understanding import QueryType
from pipelines.retrieval.context_settings import ContextSettings


def reach_of(kind: QueryType, confidence: float, *, moved: float, settings: ContextSettings) -> Reach:
    """The reach of one result's context.

    Args:
        confidence: That the result is good, in [0, 1].
        moved: By how much the learned threshold of decisions stands above its prior: both bounds move with it.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> tuned = load_settings(environment={}).retrieval.context
        >>> [reach_of(QueryType.SPECIFIC, sure, moved=0.0, settings=tuned).value for sure in (0.9, 0.7, 0.3)]
        ['chunk', 'parent', 'level_up']
        >>> reach_of(QueryType.SPECIFIC, 0.9, moved=0.1, settings=tuned).value
        'parent'
    """
    if kind is QueryType.HOW:
        return Reach.REFERENCES
    if kind is QueryType.DEBUG:
        return Reach.HIERARCHY
    if confidence > min(1.0, max(0.0, settings.high + moved)):
        return Reach.SIBLINGS if kind is QueryType.EXPLORATORY else Reach.CHUNK
    return Reach.PARENT if confidence >= min(1.0, max(0.0, settings.low + moved)) else Reach.LEVEL_UP
