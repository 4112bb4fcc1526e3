"""Which lessons are put before an agent: active ones where they fit, and now and then one in need of validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pipelines.domain.lesson import BelievedLesson, ChosenLesson, Lesson, LessonId
from pipelines.lessons.relevance import ConditionIndex, RelevanceWeights, ToolUse
from pipelines.lessons.wording import LessonWords

_FURTHER = 3  # times as many are looked at as are wanted: some are not drawn


class Uniform(Protocol):
    """Draws numbers, as `random.Random` does."""

    def random(self) -> float:
        """One in [0, 1)."""


class LessonFinder:
    """Finds lessons for tool uses; built once for what is believed at one time, and shared by threads.

    Args:
        propensities: Of each, the probability that it is shown where it fits.

    Attributes:
        lessons: Those that may be shown.
    """

    def __init__(
        self,
        lessons: Sequence[BelievedLesson],
        propensities: Mapping[LessonId, float],
        weights: RelevanceWeights,
        words: LessonWords,
    ) -> None:
        self.lessons = lessons
        self._index = ConditionIndex(lessons, weights, words)
        self._propensities = propensities

    def find(self, use: ToolUse, *, limit: int, rng: Uniform, cosines: Sequence[float] = ()) -> list[ChosenLesson]:
        """The best `limit` lessons for a tool use, best first; of those in need of validation, whichever are drawn.

        Args:
            cosines: Of the use's meaning to each of `lessons`; empty where nothing embeds.
        """
        chosen = []
        for match in self._index.find(use, limit=_FURTHER * limit, cosines=cosines):
            propensity = self._propensities[match.believed.lesson.id]
            if propensity >= 1.0 or rng.random() < propensity:
                chosen.append(ChosenLesson(match, propensity))
        return chosen[:limit]


def meaning_of(lesson: Lesson) -> str:
    """The text that a lesson is embedded by: what it says, and the words that its context is to name."""
    return " ".join((lesson.content, *lesson.conditions.words))


class Believing(Protocol):
    """What is believed of lessons."""

    def injectable(self) -> list[BelievedLesson]:
        """Those that may be shown."""

    def propensity(self, lesson_id: str) -> float:
        """The probability that one is, where it fits."""


def finder_of(beliefs: Believing, weights: RelevanceWeights, words: LessonWords) -> LessonFinder:
    """What finds lessons among those that may be shown."""
    lessons = beliefs.injectable()
    propensities = {each.lesson.id: beliefs.propensity(each.lesson.id) for each in lessons}
    return LessonFinder(lessons, propensities, weights, words)
