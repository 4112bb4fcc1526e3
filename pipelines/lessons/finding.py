"""Which lessons are put before an agent: active ones where they fit, and now and then one in need of validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipelines.domain.lesson import BelievedLesson
from pipelines.lessons.relevance import ConditionIndex, LessonMatch, RelevanceWeights, ToolUse
from pipelines.lessons.wording import LessonWords

_FURTHER = 3  # times as many are looked at as are wanted: some are not drawn


class Uniform(Protocol):
    """Draws numbers, as `random.Random` does."""

    def random(self) -> float:
        """One in [0, 1)."""


@dataclass(frozen=True, slots=True)
class ChosenLesson:
    """A lesson that is put before an agent.

    Attributes:
        propensity: Probability that it is, where it fits as it does here (LES-3).
    """

    match: LessonMatch
    propensity: float

    @property
    def why(self) -> str:
        """Why it is shown, and how sure it is, for people.

        Examples:
            >>> from pipelines.domain.lesson import Lesson, LessonStatus
            >>> believed = BelievedLesson(lesson=Lesson(section="api", content="Migrate first"), p_good=0.9, lower=0.7,
            ...                           upper=0.98, status=LessonStatus.ACTIVE)
            >>> ChosenLesson(LessonMatch(believed, 0.4, 1.0, 0.36, ()), 1.0).why
            'relevance 0.40 · P(good) 0.90 [0.70, 0.98] · priority 1'
        """
        match, believed = self.match, self.match.believed
        met = " + ".join(f"{each.name} {each.amount:.2f}" for each in match.contributions)
        of = f" ({met})" if met else ""
        sure = f"P(good) {believed.p_good:.2f} [{believed.lower:.2f}, {believed.upper:.2f}]"
        drawn = "" if self.propensity >= 1.0 else f"; on trial, drawn with probability {self.propensity:.2f}"
        return f"relevance {match.relevance:.2f}{of} · {sure} · priority {match.priority:g}{drawn}"


class LessonFinder:
    """Finds lessons for tool uses; built once for what is believed at one time, and shared by threads.

    Args:
        lessons: Those that may be shown.
        propensities: Of each, the probability that it is shown where it fits.
    """

    def __init__(
        self,
        lessons: Sequence[BelievedLesson],
        propensities: Mapping[str, float],
        weights: RelevanceWeights,
        words: LessonWords,
    ) -> None:
        self._index = ConditionIndex(lessons, weights, words)
        self._propensities = propensities

    def find(self, use: ToolUse, *, limit: int, rng: Uniform) -> list[ChosenLesson]:
        """The best `limit` lessons for a tool use, best first; of those in need of validation, whichever are drawn."""
        chosen = []
        for match in self._index.find(use, limit=_FURTHER * limit):
            propensity = self._propensities[match.believed.lesson.id]
            if propensity >= 1.0 or rng.random() < propensity:
                chosen.append(ChosenLesson(match, propensity))
        return chosen[:limit]
