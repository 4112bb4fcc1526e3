"""Pairs of lessons: those that say the same are merged by a night, others are for people to decide on (LES-13)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weft.app.lessons.hearing import lesson_vectors
from weft.app.lessons.operations import id_made_of, lesson_sender, say_operations
from weft.app.lessons.view import lesson_document, to_review
from weft.domain.errors import BrokerUnavailableError, ConfigurationError
from weft.domain.lesson import Lesson
from weft.learning.lessons.beliefs import LessonBeliefs
from weft.learning.lessons.rows import NIGHT
from weft.lessons.duplicates import DuplicateIndex
from weft.lessons.manager import LessonOperation, OperationKind
from weft.settings import Settings
from weft.wording.comparison import Comparison, TextRelation


@dataclass(frozen=True, slots=True)
class LessonPair:
    """Two lessons that are about the same."""

    lesson: Lesson
    other: Lesson  # the one that is believed more; of equals, the one whose id is first
    comparison: Comparison

    @property
    def says(self) -> str:
        """What they are to each other, for people."""
        if self.comparison.relation is TextRelation.OPPOSITE:
            return "contradicts"
        return "perhaps contradicts" if self.comparison.rivals else "perhaps means the same as"

    @property
    def commands(self) -> list[str]:
        """What can be done."""
        one, other = self.lesson.id, self.other.id
        if self.comparison.relation is TextRelation.OPPOSITE or self.comparison.rivals:
            return [f"weft lessons retire {one}", f"weft lessons retire {other}", f"weft lessons apart {one} {other}"]
        return [f"weft lessons merge {one} {other}", f"weft lessons apart {one} {other}"]

    def as_fields(self) -> dict[str, Any]:
        """Plain values by name, as JSON holds them."""
        facts = {"id": self.lesson.id, "content": self.lesson.content, "relation": self.comparison.relation.value}
        facts |= {"says": self.says, "why": self.comparison.why}
        return {**facts, "other": self.other.id, "other_content": self.other.content, "can": self.commands}


def open_pairs(beliefs: LessonBeliefs, settings: Settings) -> Iterator[LessonPair]:
    """Pairs among the lessons that agents are told; merged ones are one, and those kept apart are settled."""
    index, p_good = DuplicateIndex(settings.lessons.duplicates, lesson_vectors(settings)), {}
    for believed in beliefs.injectable():
        index.add(believed.lesson)
        p_good[believed.lesson.id] = believed.p_good
    settled = beliefs.separate
    for one, other, comparison in index.pairs():
        if frozenset({one.id, other.id}) not in settled:
            best, rest = sorted((one, other), key=lambda each: (-p_good[each.id], each.id))
            yield LessonPair(rest, best, comparison)


def reviewed(beliefs: LessonBeliefs, settings: Settings, limit: int) -> dict[str, Any]:
    """Lessons and pairs that a person could decide on, at most `limit` of each, and how many there are."""
    open_, pairs = to_review(beliefs), list(open_pairs(beliefs, settings))
    return {
        "lessons": [lesson_document(*row) for row in open_[:limit]],
        "pairs": [pair.as_fields() for pair in pairs[:limit]],
        "open": len(open_),
        "open_pairs": len(pairs),
    }


def tend_lessons(
    beliefs: LessonBeliefs, dry_run: bool, *, settings: Settings, waits: Callable[[str], None] = lambda _: None
) -> dict[str, float]:
    """Say to the topic which lessons are one; without a broker, tell `waits` that this waits.

    Returns:
        How many pairs are about the same (`proposed`), were said to be one (`applied`), contradict one another
        (`in_conflict`), and wait for a person (`to_review`, those in conflict among them).
    """
    pairs = list(open_pairs(beliefs, settings))
    same = [each for each in pairs if each.comparison.relation is TextRelation.SAME]
    merged = 0
    if same and not dry_run:
        try:
            _merge(same, settings)
            merged = len(same)
        except (BrokerUnavailableError, ConfigurationError) as error:
            waits(f"lessons that say the same wait for a later night ({len(same):,} pairs): {error}")
    conflicts = sum(each.comparison.relation is TextRelation.OPPOSITE for each in pairs)
    return {"proposed": len(pairs), "applied": merged, "in_conflict": conflicts, "to_review": len(pairs) - len(same)}


def _merge(pairs: Sequence[LessonPair], settings: Settings) -> None:
    merges = [
        LessonOperation(
            kind=OperationKind.MERGE, lesson_id=each.lesson.id, other_id=each.other.id, why=each.comparison.why
        )
        for each in pairs
    ]
    with lesson_sender(settings, NIGHT, None) as sender:
        # A night that is taken up again says the same again: it counts once.
        say_operations(
            sender, merges, event_id=lambda each: id_made_of(NIGHT, *sorted((str(each.lesson_id), str(each.other_id))))
        )
