"""What no proposal passes, whoever made it: secrets and personal data, vague directives, what was injected (LES-6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.domain.errors import InvalidLessonError
from pipelines.domain.lesson import Lesson
from pipelines.lessons.atomicity import atomicity
from pipelines.lessons.duplicates.comparison import LessonRelation, compare, parse_lesson
from pipelines.lessons.sensitive.parts import require_storable
from pipelines.lessons.wording import LessonWords

if TYPE_CHECKING:
    from pipelines.lessons.settings import LessonSettings


@dataclass(frozen=True, slots=True)
class RejectedLesson:
    """A lesson that is not taken, and why: never with its text, which may hold a secret.

    Attributes:
        reason: Short stable code: "sensitive", "not_atomic", "injected" or "invalid".
        detail: What was expected, what was found, and what to do.
    """

    reason: str
    detail: str


def problem_of(lesson: Lesson, settings: LessonSettings) -> RejectedLesson | None:
    """What keeps a lesson out: anything that must not be stored, vagueness, several instructions in one."""
    try:
        require_storable(lesson)
    except InvalidLessonError as error:
        return RejectedLesson("sensitive", str(error))
    measure = atomicity(lesson.content, settings)
    if measure.score < settings.atomicity.least:
        return RejectedLesson("not_atomic", f"expected one exact instruction, found: {'; '.join(measure.reasons)}")
    return None


def pass_gate(
    lessons: Iterable[Lesson], injected: Sequence[Lesson], words: LessonWords, settings: LessonSettings
) -> tuple[tuple[Lesson, ...], tuple[RejectedLesson, ...]]:
    """Proposals that are lessons, each once, and why the others are none."""
    shown = [parse_lesson(lesson, words) for lesson in injected]
    passed: dict[str, Lesson] = {}
    refused: list[RejectedLesson] = []
    for lesson in lessons:
        problem = problem_of(lesson, settings)
        parsed = parse_lesson(lesson, words)
        relations = {compare(parsed, each, words, settings).relation for each in shown}
        if problem is None and relations & {LessonRelation.SAME, LessonRelation.PROPOSED}:
            problem = RejectedLesson(
                "injected", "expected something new, found what an injected lesson says: confirm that"
            )
        if problem is None:
            passed.setdefault(lesson.id, lesson)
        else:
            refused.append(problem)
    return tuple(passed.values()), tuple(refused)
