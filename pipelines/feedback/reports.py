"""What is evidence by itself, without an impression: reviews, accuracy, model quality, trust, lessons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pipelines.domain.events import Accuracy, LessonOutcome, ModelQuality, Report, Review, Trust
from pipelines.domain.ranking import Scope
from pipelines.learning.beta import BetaEvidence
from pipelines.learning.binning import Bins
from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.gaussian_process import QualityEvidence
from pipelines.learning.reports import (
    accuracy_evidence,
    lesson_evidence,
    quality_evidence,
    review_evidence,
    trust_evidence,
)
from pipelines.learning.survival import SurvivalEvidence
from pipelines.learning.threshold import ThresholdEvidence


def report_evidence(report: Report, *, day: int, bins: Bins) -> Evidence:
    """The evidence of one report, one observation each, under the scope that the event names.

    Args:
        day: Bucket of the event's effective time.

    Examples:
        >>> held = Trust(event_id="e", ts=0, session_id="s", principal="p", source="blog", verified=True)
        >>> found = report_evidence(held, day=3, bins=Bins(20, 4, 20, 64))
        >>> [(key.parameter, key.bin, mass) for key, mass in found.counts.items()]
        [('trust.blog', 'verified', 1000000)]
    """
    return _EVIDENCE[type(report)](report, day, Scope(report.domain, report.model, report.agent), bins)


def _review(event: Review, day: int, scope: Scope, bins: Bins) -> Evidence:
    return review_evidence(day, scope, ThresholdEvidence.of(event.confidence, good=event.good, bins=bins.confidences))


def _accuracy(event: Accuracy, day: int, scope: Scope, bins: Bins) -> Evidence:
    seen = SurvivalEvidence.of(event.age_hours, accurate=event.accurate, per_doubling=bins.ages)
    return accuracy_evidence(day, scope, seen)


def _quality(event: ModelQuality, day: int, scope: Scope, bins: Bins) -> Evidence:
    seen = QualityEvidence.of(event.turn, event.quality, turns=bins.turns)
    return quality_evidence(day, scope, seen, turns=bins.turns)


def _trust(event: Trust, day: int, scope: Scope, bins: Bins) -> Evidence:
    return trust_evidence(day, scope, event.source, BetaEvidence.of(float(event.verified)))


def _lesson(event: LessonOutcome, day: int, scope: Scope, bins: Bins) -> Evidence:
    return lesson_evidence(day, scope, event.lesson_id, event.outcome, MICRO)


_EVIDENCE: Mapping[type[Report], Callable[[Any, int, Scope, Bins], Evidence]] = MappingProxyType(
    {Review: _review, Accuracy: _accuracy, ModelQuality: _quality, Trust: _trust, LessonOutcome: _lesson}
)
