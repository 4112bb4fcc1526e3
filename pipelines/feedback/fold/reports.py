"""What is evidence by itself, without an impression: reviews, accuracy, model quality, trust, lessons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pipelines.domain.events import Accuracy, LessonOutcome, ModelQuality, Report, Review, Trust
from pipelines.domain.ranking import Scope
from pipelines.learning.binning import Bins
from pipelines.learning.evidence import MICRO, Evidence
from pipelines.learning.families.beta import BetaEvidence
from pipelines.learning.families.gaussian_process import QualityEvidence
from pipelines.learning.families.survival import SurvivalEvidence
from pipelines.learning.families.threshold import ThresholdEvidence
from pipelines.learning.observe.reports import (
    accuracy_evidence,
    lesson_evidence,
    quality_evidence,
    review_evidence,
    trust_evidence,
)


class _At(NamedTuple):
    """Where the evidence of a report goes."""

    day: int
    scope: Scope
    bins: Bins


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
    return _EVIDENCE[type(report)](report, _At(day, Scope(report.domain, report.model, report.agent), bins))


def _review(event: Review, at: _At) -> Evidence:
    seen = ThresholdEvidence.of(event.confidence, good=event.good, bins=at.bins.confidences)
    return review_evidence(at.day, at.scope, seen)


def _accuracy(event: Accuracy, at: _At) -> Evidence:
    seen = SurvivalEvidence.of(event.age_hours, accurate=event.accurate, per_doubling=at.bins.ages)
    return accuracy_evidence(at.day, at.scope, seen)


def _quality(event: ModelQuality, at: _At) -> Evidence:
    seen = QualityEvidence.of(event.turn, event.quality, turns=at.bins.turns)
    return quality_evidence(at.day, at.scope, seen, turns=at.bins.turns)


def _trust(event: Trust, at: _At) -> Evidence:
    return trust_evidence(at.day, at.scope, event.source, BetaEvidence.of(float(event.verified)))


def _lesson(event: LessonOutcome, at: _At) -> Evidence:
    return lesson_evidence(at.day, at.scope, event.lesson_id, event.outcome, MICRO)


_EVIDENCE: Mapping[type[Report], Callable[[Any, _At], Evidence]] = MappingProxyType(
    {Review: _review, Accuracy: _accuracy, ModelQuality: _quality, Trust: _trust, LessonOutcome: _lesson}
)
