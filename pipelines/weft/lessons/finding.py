"""Which lessons are put before an agent: active ones where they fit, and now and then one in need of validation."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Protocol

from weft.domain.lesson import Lesson, LessonId
from weft.domain.lesson_match import BelievedLesson, ChosenLesson
from weft.lessons.duplicates import ConflictChecker
from weft.lessons.relevance import ConditionIndex, RelevanceWeights, ToolUse
from weft.lessons.settings import DuplicateSettings

_FURTHER = 3  # times as many are looked at as are wanted: some are not drawn


class Uniform(Protocol):
    """Draws numbers, as `random.Random` does."""

    def random(self) -> float:
        """One in [0, 1)."""


class LessonFinder:
    """Finds lessons for tool uses; built once for what is believed at one time, and shared by threads."""

    def __init__(
        self,
        lessons: Sequence[BelievedLesson],
        propensities: Mapping[LessonId, float],
        weights: RelevanceWeights,
        opposed: ConflictChecker,
    ) -> None:
        self.lessons = lessons
        self._index = ConditionIndex(lessons, weights)
        self._propensities = propensities
        self._opposed = opposed

    def find(
        self, use: ToolUse, *, limit: int, rng: Uniform, cosines: Sequence[float] = (), near: float = 1.0
    ) -> list[ChosenLesson]:
        """The best `limit` lessons for a tool use, best first; of those in need of validation, whichever are drawn.

        Of two that contradict one another, the better one alone: the other is left for `weft lessons review`.
        """
        chosen: list[ChosenLesson] = []
        for match in self._index.find(use, limit=_FURTHER * limit, cosines=cosines, near=near):
            lesson = match.believed.lesson
            propensity = self._propensities[lesson.id]
            drawn = propensity >= 1.0 or rng.random() < propensity
            if drawn and not any(self._opposed(each.match.believed.lesson, lesson) for each in chosen):
                chosen.append(ChosenLesson(match, propensity))
                if len(chosen) == limit:
                    break
        return chosen


def meanings_of(lesson: Lesson) -> tuple[str, str]:
    """The texts that a lesson is embedded by: as advice, and as what goes wrong without it, which questions name, too.

    Examples:
        >>> meanings_of(Lesson(section="db", content="Vacuum after bulk deletes"))
        ('You should Vacuum after bulk deletes', 'Problem when you do not: Vacuum after bulk deletes')
    """
    content, words = lesson.content, lesson.conditions.words
    return f"You should {content}", " ".join((f"Problem when you do not: {content}", *words))


class LessonBeliefSource(Protocol):
    """What is believed of lessons."""

    @property
    def separate(self) -> Container[frozenset[str]]:
        """Pairs of ids that somebody keeps apart: both hold, whatever they look like."""

    def injectable(self) -> list[BelievedLesson]:
        """Those that may be shown."""

    def propensity(self, lesson_id: str) -> float:
        """The probability that one is, where it fits."""


def finder_of(beliefs: LessonBeliefSource, weights: RelevanceWeights, duplicates: DuplicateSettings) -> LessonFinder:
    """What finds lessons among those that may be shown."""
    lessons = beliefs.injectable()
    propensities = {each.lesson.id: beliefs.propensity(each.lesson.id) for each in lessons}
    return LessonFinder(lessons, propensities, weights, ConflictChecker(duplicates, beliefs.separate))
