"""Lessons as they are believed now, found for a tool use (LES-8)."""

from __future__ import annotations

from pipelines.catalog.catalog import Catalog
from pipelines.learning.evidence import day_of
from pipelines.learning.lessons.beliefs import LessonBeliefs, read_lessons
from pipelines.runtime.clock import Clock, system_clock
from pipelines.settings import Settings


def live_lessons(catalog: Catalog, settings: Settings, *, clock: Clock = system_clock) -> LessonBeliefs:
    """What is believed of lessons, from the evidence that is live now."""
    priors = settings.priors
    return read_lessons(
        priors.lessons,
        catalog.live.evidence(),
        day_of(clock()),
        effective_cap=priors.robustness.effective_cap,
        level=priors.interval.level,
    )
