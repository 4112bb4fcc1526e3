"""What is believed of lessons before any evidence (LES-2 to LES-4, LES-8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self, get_args

from pydantic import Field, model_validator

from weft.domain.event_fields import LessonOrigin
from weft.domain.lesson import LessonPriority, LessonSource
from weft.domain.sections import Positive, Section, Share, one_for_each

_ORIGINS = frozenset(get_args(LessonOrigin))


class LessonRelevancePrior(Section):
    """How much each condition that a tool use meets says that a lesson is of use (LES-8)."""

    tool: Share  # Of a tool that is named, and by a pattern
    tool_wildcard: Share
    file: Share  # Of the other conditions, where they are fully met
    actions: Share
    words: Share
    meaning: Share  # of a question of the same meaning, times the cosine
    near: Share  # cosine below which no lesson is shown for its meaning alone
    everyday: Share  # share of everyday questions for which none is
    enough_words: Annotated[int, Field(ge=1)]  # so many words of a condition that are met count as all
    least: Share  # relevance of conditions below which a lesson is not shown
    # factor of each priority on the rank
    priorities: Annotated[dict[LessonPriority, Positive], one_for_each(LessonPriority)]


class LessonPrior(Section):
    """Beta beliefs about the share of a lesson's outcomes that are good (LES-2, LES-3, LES-4)."""

    sources: Annotated[Mapping[LessonSource, Annotated[float, Field(gt=0.0, lt=1.0)]], one_for_each(LessonSource)]
    repetition: Share
    most_repetitions: Annotated[int, Field(ge=0)]
    critical: Positive
    conflicting: Share
    lowest: Annotated[float, Field(gt=0.0, lt=1.0)]
    highest: Annotated[float, Field(gt=0.0, lt=1.0)]
    strength: Positive
    source_strength: Positive
    root_spread: Positive
    per_lesson: Positive
    revised: Share
    half_life_days: Positive
    weights: Mapping[str, Annotated[float, Field(ge=0.0)]]  # observations that one outcome counts, by who tells it
    daily: Positive  # observations of one principal on one lesson and day that count at most
    newcomers: Annotated[int, Field(ge=1)]
    active: Share
    active_urgent: Share
    dormant: Share
    retired: Share
    failures: Annotated[float, Field(ge=1.0)]
    lone_failures: Annotated[float, Field(gt=0.0)]  # observations against it, of a store that one person alone teaches
    lone_share: Share  # of the same, of good ones beside them at most
    relevance: LessonRelevancePrior

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.weights.keys() != _ORIGINS:
            raise ValueError(
                f"lessons.weights: expected one for each of {sorted(_ORIGINS)}, found {sorted(self.weights)}"
            )
        if not self.dormant <= self.active_urgent <= self.active:
            raise ValueError("lessons: expected dormant <= active_urgent <= active")
        return self
