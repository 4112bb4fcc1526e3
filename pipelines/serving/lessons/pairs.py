"""Pairs of lessons that a person could decide on: perhaps one, or in conflict (LES-13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipelines.domain.lesson import Lesson
from pipelines.learning.lessons.beliefs import LessonBeliefs
from pipelines.lessons.duplicates.comparison import Comparison, LessonRelation
from pipelines.lessons.duplicates.index import DuplicateIndex
from pipelines.lessons.wording import LessonWords
from pipelines.settings import Settings


@dataclass(frozen=True, slots=True)
class LessonPair:
    """Two lessons that are about the same.

    Attributes:
        other: The one that is believed more; of equals, the one whose id is first.
    """

    lesson: Lesson
    other: Lesson
    comparison: Comparison

    @property
    def says(self) -> str:
        """What they are to each other, for people."""
        conflict = self.comparison.relation is LessonRelation.CONFLICT
        return "contradicts" if conflict else "perhaps means the same as"

    @property
    def commands(self) -> list[str]:
        """What can be done."""
        one, other = self.lesson.id, self.other.id
        if self.comparison.relation is LessonRelation.CONFLICT:
            return [f"weft lessons retire {one}", f"weft lessons retire {other}", f"weft lessons apart {one} {other}"]
        return [f"weft lessons merge {one} {other}", f"weft lessons apart {one} {other}"]

    def as_fields(self) -> dict[str, Any]:
        """Plain values by name, as JSON holds them."""
        facts = {"id": self.lesson.id, "content": self.lesson.content, "relation": self.comparison.relation.value}
        return {**facts, "other": self.other.id, "other_content": self.other.content, "can": self.commands}


def open_pairs(beliefs: LessonBeliefs, settings: Settings) -> Iterator[LessonPair]:
    """Pairs among the lessons that agents are told; merged ones are one, and those kept apart are settled."""
    index, p_good = DuplicateIndex(settings.lessons, LessonWords(settings.lessons.words)), {}
    for believed in beliefs.injectable():
        index.add(believed.lesson)
        p_good[believed.lesson.id] = believed.p_good
    settled = beliefs.separate
    for one, other, comparison in index.pairs():
        if frozenset({one.id, other.id}) not in settled:
            best, rest = sorted((one, other), key=lambda each: (-p_good[each.id], each.id))
            yield LessonPair(rest, best, comparison)
