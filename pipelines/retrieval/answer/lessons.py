"""Lessons beside the results of a search: what fits the question, and moves no ranking (LES-8)."""

from __future__ import annotations

import random
import threading

from pipelines.domain.lesson import ChosenLesson
from pipelines.domain.ranking import Query
from pipelines.learning.lessons.beliefs import LessonBeliefs
from pipelines.lessons.finding import LessonFinder, finder_of
from pipelines.lessons.relevance import RelevanceWeights, ToolUse
from pipelines.lessons.wording import LessonWords


class LessonsBeside:
    """Finds lessons for queries among those that are believed; shared by threads.

    Args:
        most: Of one answer.
    """

    def __init__(self, words: LessonWords, weights: RelevanceWeights, *, most: int) -> None:
        self._words, self._weights, self._most = words, weights, most
        self._lock = threading.Lock()
        self._held: tuple[LessonBeliefs, LessonFinder] | None = None

    def of(self, query: Query, beliefs: LessonBeliefs) -> tuple[ChosenLesson, ...]:
        """The lessons that fit a query, best first; the query's id draws those on trial."""
        draws = random.Random(query.query_id)  # noqa: S311 - it draws what is tried
        return tuple(self._finder(beliefs).find(ToolUse(text=query.text), limit=self._most, rng=draws))

    def _finder(self, beliefs: LessonBeliefs) -> LessonFinder:
        held = self._held
        if held is None or held[0] is not beliefs:
            with self._lock:
                held = self._held = (beliefs, finder_of(beliefs, self._weights, self._words))
        return held[1]
