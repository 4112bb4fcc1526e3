"""Evidence about lessons, as events leave it."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.feedback_events import NOON, SETTINGS
from weft.domain.events import LessonEvent
from weft.domain.ids import principal_fingerprint
from weft.feedback.fold.lessons import lesson_usage
from weft.learning.evidence import Evidence
from weft.learning.lessons.beliefs import LessonBeliefs, read_lessons
from weft.learning.uses import UsageKey

DAY_MS = 86_400_000
TODAY = NOON // DAY_MS


def evidence_of(events: Iterable[LessonEvent]) -> Evidence:
    """What events about lessons come to, each at its own time."""
    usage: dict[UsageKey, int] = {}
    for event in events:
        for key, micro in lesson_usage(event, event.ts, principal=principal_fingerprint(event.principal)):
            usage[key] = usage.get(key, 0) + micro
    return Evidence(usage=usage)


def believed(evidence: Evidence | Iterable[LessonEvent], *, today: int = TODAY) -> LessonBeliefs:
    """What is believed of lessons under the base settings."""
    whole = evidence if isinstance(evidence, Evidence) else evidence_of(evidence)
    priors = SETTINGS.priors
    cap, level = priors.robustness.effective_cap, priors.interval.level
    return read_lessons(priors.lessons, whole, today, effective_cap=cap, level=level)
