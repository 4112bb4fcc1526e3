"""Lessons as they are believed now, found for a tool use (LES-8)."""

from __future__ import annotations

from weft.catalog.catalog import Catalog
from weft.learning.evidence import day_of
from weft.learning.lessons.beliefs import LessonBeliefs, read_lessons
from weft.runtime.clock import Clock, system_clock
from weft.settings import Settings


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
