"""The multiplicative rule that confidence was read by before (LES-4): for comparison alone."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.domain.lesson import LessonResult
from pipelines.learning.lesson_priors import LegacyLessonRule


def legacy_confidence(first: float, outcomes: Iterable[LessonResult], rule: LegacyLessonRule) -> float:
    """Confidence after some outcomes, in their order, each a factor; always within the rule's bounds.

    Examples:
        >>> from pipelines.settings import load_settings
        >>> rule = load_settings(environment={}).priors.lessons.legacy
        >>> round(legacy_confidence(0.65, [LessonResult.SUCCESS, LessonResult.FAILURE], rule), 4)
        0.4485
    """
    confidence = first
    for outcome in outcomes:
        confidence = min(rule.highest, max(rule.lowest, confidence * rule.factors[outcome]))
    return confidence
