"""What is evidence by itself, without an impression: reviews, accuracy, model quality, trust."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from weft.domain.events import Accuracy, ModelQuality, Report, Review, Trust
from weft.domain.ranking import Scope
from weft.learning.evidence import MICRO, Evidence
from weft.learning.families.gaussian_process import quality_masses
from weft.learning.families.survival import survival_masses
from weft.learning.families.threshold import threshold_masses
from weft.learning.observe.accuracy import accuracy_use
from weft.learning.parameters import (
    DECAY,
    QUALITY,
    REFUTED,
    SPEAKER,
    THRESHOLD,
    TRUST,
    VERIFIED,
    Masses,
    reported_evidence,
)


def report_evidence(report: Report, *, day: int, principal: str = "") -> Evidence:
    """The evidence of one report, one observation each, under the scope that the event names.

    What was accurate or not is evidence about its content, too, where the event names one.

    Examples:
        >>> held = Trust(event_id="e", ts=0, session_id="s", principal="p", source="blog", verified=True)
        >>> found = report_evidence(held, day=3)
        >>> [(key.parameter, key.bin, mass) for key, mass in found.counts.items()]
        [('trust.blog', 'verified', 1000000)]
    """
    parameter, masses = _MASSES[type(report)](report)
    reported = reported_evidence(day, Scope(report.domain, report.model, report.agent), parameter, masses)
    if not isinstance(report, Accuracy) or report.content_hash is None:
        return reported
    return replace(reported, usage=accuracy_use(day, report.content_hash, principal, accurate=report.accurate))


def allowance_of(report: Report) -> str:
    """The allowance that a report draws on: of its type of event; where it is about a source, of that one.

    Examples:
        >>> allowance_of(Trust(event_id="e", ts=0, session_id="s", principal="p", source="blog", verified=True))
        'trust.blog'
    """
    tag = str(type(report).__struct_config__.tag)
    return f"{tag}.{report.source}" if isinstance(report, Trust) else tag


def speaker_evidence(report: Report, *, day: int, principal: str) -> Evidence:
    """That somebody reported something, by fingerprint: whom there is to be protected from others (LRN-20)."""
    return reported_evidence(day, Scope(report.domain), SPEAKER, {principal: MICRO})


def _review(event: Review) -> tuple[str, Masses]:
    return THRESHOLD, threshold_masses(event.confidence, good=event.good)


def _accuracy(event: Accuracy) -> tuple[str, Masses]:
    return DECAY, survival_masses(event.age_hours, accurate=event.accurate)


def _quality(event: ModelQuality) -> tuple[str, Masses]:
    return QUALITY, quality_masses(event.turn, event.quality)


def _trust(event: Trust) -> tuple[str, Masses]:
    return f"{TRUST}.{event.source}", {VERIFIED if event.verified else REFUTED: MICRO}


_MASSES: Mapping[type[Report], Callable[[Any], tuple[str, Masses]]] = MappingProxyType(
    {Review: _review, Accuracy: _accuracy, ModelQuality: _quality, Trust: _trust}
)
