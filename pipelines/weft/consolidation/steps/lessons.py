"""The step `lessons`: what lessons came to, and those that say the same become one (LES-11, LES-13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from weft.consolidation.night import NightContext, StepResult, When
from weft.learning.beliefs import Beliefs
from weft.learning.evidence import Evidence
from weft.learning.lessons.beliefs import LessonBelief, LessonBeliefs
from weft.learning.lessons.measures import GOALS, success_measures
from weft.learning.uses import Uses

_EXAMPLES = 10  # that a report shows

TendLessons = Callable[[LessonBeliefs, bool], Mapping[str, float]]
"""Says which lessons are one, given what is believed and whether nothing may change; counts what came of it."""


class MeasureLessons:
    """Measures what lessons came to, and has those merged that say the same, where something can."""

    name: ClassVar[str] = "lessons"
    says: ClassVar[str] = "measuring what lessons came to, and merging those that say the same"
    when: ClassVar[When] = When.JUDGED

    def __init__(self, tend: TendLessons | None = None) -> None:
        self._tend = tend

    def run(self, context: NightContext) -> StepResult:
        """See `NightStep`."""
        lessons = context.after.lessons
        measures = dict(success_measures(lessons, active=context.settings.priors.lessons.active))
        if self._tend is not None:
            measures |= self._tend(lessons, context.dry_run)
        return StepResult(
            counts={"proposed": 0, "applied": 0, **measures},
            examples=lesson_changes(context.candidate.fresh, context.before, context.after),
            note=_note_of(measures),
            outcome=LessonMeasures(measures),
        )


class LessonMeasures(dict[str, float]):
    """What lessons came to, by measure."""


def _note_of(lessons: Mapping[str, float]) -> str:
    if not lessons.get("lessons"):
        return ""
    measures = [
        f"{name.replace('_', ' ')} {lessons[name]:.2f} ({'at least' if more else 'at most'} {goal:g})"
        + ("" if (lessons[name] >= goal if more else lessons[name] <= goal) else " ⚠")
        for name, (goal, more) in GOALS.items()
        if name in lessons
    ]
    note = f"{lessons['lessons']:,.0f} lessons: {'; '.join(measures)}"
    if lessons.get("proposed"):
        waiting = f"{lessons['to_review']:,.0f} to review, {lessons['in_conflict']:,.0f} of them in conflict"
        note += f"; pairs of lessons: {lessons['applied']:,.0f} merged, {waiting}; see `weft lessons review`"
    return note


def lesson_changes(fresh: Evidence, before: Beliefs, after: Beliefs) -> list[dict[str, Any]]:
    """Lessons that something new was heard of, those whose status changed first, then by how far P(good) moved."""
    places = after.lessons.counts.place
    named = sorted({name for name in Uses.of(fresh.usage).columns().content.values if name in places})
    both = [(each, before.lessons.of(name)) for name in named if (each := after.lessons.of(name)) is not None]
    changed = [(now, was) for now, was in both if was is None or _state_of(now) != _state_of(was)]
    changed.sort(
        key=lambda pair: (not _is_other(*pair), -abs(pair[0].p_good - (pair[1] or pair[0]).p_good), pair[0].id)
    )
    return [_lesson_row(now, was, after) for now, was in changed[:_EXAMPLES]]


def _state_of(lesson: LessonBelief) -> tuple[object, ...]:
    return lesson.status, lesson.representative, lesson.p_good, lesson.observations


def _is_other(now: LessonBelief, was: LessonBelief | None) -> bool:
    return was is None or (now.status, now.representative) != (was.status, was.representative)


def _lesson_row(now: LessonBelief, was: LessonBelief | None, after: Beliefs) -> dict[str, Any]:
    lesson = after.lessons.lesson(now.id)
    return {
        "lesson": now.id,
        "status_before": "new" if was is None else was.status.value,
        "status": now.status.value,
        "reason": now.reason,
        "p_good_before": None if was is None else was.p_good,
        "p_good": now.p_good,
        "observations": now.observations,
        "merged_into": "" if now.representative == now.id else now.representative,
        "text": "" if lesson is None else lesson.content,
    }
