"""What a night does about lessons: those that say the same are merged, by events; others are for people (LES-13)."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.domain.errors import BrokerUnavailableError, ConfigurationError
from pipelines.learning.lessons.beliefs import LessonBeliefs
from pipelines.learning.lessons.rows import NIGHT
from pipelines.lessons.duplicates.comparison import LessonRelation
from pipelines.lessons.manager import LessonOperation, OperationKind
from pipelines.serving.console.terminal import stderr, visible
from pipelines.serving.lessons.lesson_sender import lesson_sender
from pipelines.serving.lessons.operations import id_made_of, say_operations
from pipelines.serving.lessons.pairs import LessonPair, open_pairs
from pipelines.settings import Settings


def tend_lessons(beliefs: LessonBeliefs, settings: Settings, *, dry_run: bool) -> dict[str, float]:
    """Say to the topic which lessons are one; without a broker, say on stderr that this waits.

    Returns:
        How many pairs are about the same (`proposed`), were said to be one (`applied`), contradict one another
        (`in_conflict`), and wait for a person (`to_review`, those in conflict among them).
    """
    pairs = list(open_pairs(beliefs, settings))
    same = [each for each in pairs if each.comparison.relation is LessonRelation.SAME]
    merged = 0
    if same and not dry_run:
        try:
            _merge(same, settings)
            merged = len(same)
        except (BrokerUnavailableError, ConfigurationError) as error:
            stderr.print(visible(f"lessons that say the same wait for a later night ({len(same):,} pairs): {error}"))
    conflicts = sum(each.comparison.relation is LessonRelation.CONFLICT for each in pairs)
    return {"proposed": len(pairs), "applied": merged, "in_conflict": conflicts, "to_review": len(pairs) - len(same)}


def _merge(pairs: Sequence[LessonPair], settings: Settings) -> None:
    merges = [
        LessonOperation(
            kind=OperationKind.MERGE, lesson_id=each.lesson.id, other_id=each.other.id, why=each.comparison.reason
        )
        for each in pairs
    ]
    with lesson_sender(settings, NIGHT, None) as sender:
        # A night that is taken up again says the same again: it counts once.
        say_operations(
            sender, merges, event_id=lambda each: id_made_of(NIGHT, *sorted((str(each.lesson_id), str(each.other_id))))
        )
