"""LES-10, LES-13: pairs that a person could decide on, until somebody has."""

from __future__ import annotations

from tests.support.feedback_events import SETTINGS, lesson_added, lesson_changed
from tests.support.lesson_words import believed
from weft.app.lessons.pairs import open_pairs
from weft.domain.events import LessonEvent
from weft.domain.lesson import Lesson, LessonSource
from weft.wording.comparison import TextRelation


def correction(content: str) -> Lesson:
    return Lesson(section="git", content=content, source=LessonSource.USER_CORRECTION)


ALWAYS, NEVER = correction("Always squash commits before merging"), correction("Never squash commits before merging")
RUN, PRIOR = (
    correction("Run the migrations before starting the API"),
    correction("Run migrations prior to starting the API"),
)
SAID: list[LessonEvent] = [lesson_added(each) for each in (ALWAYS, NEVER, RUN, PRIOR)]


def pairs(*more: LessonEvent) -> dict[frozenset[str], TextRelation]:
    found = open_pairs(believed([*SAID, *more]), SETTINGS)
    return {frozenset({each.lesson.id, each.other.id}): each.comparison.relation for each in found}


def test_opposites_and_likely_duplicates_are_shown_once() -> None:
    """LES-13: opposites are never offered as one."""
    assert pairs() == {
        frozenset({ALWAYS.id, NEVER.id}): TextRelation.OPPOSITE,
        frozenset({RUN.id, PRIOR.id}): TextRelation.PROPOSED,
    }
    (conflict,) = (each for each in open_pairs(believed(SAID[:2]), SETTINGS))
    assert not any("merge" in each for each in conflict.commands)


def test_what_somebody_decided_is_not_asked_again() -> None:
    """LES-13: merged, kept apart in either order, or one of them retired; nor what people cannot agree on."""
    assert frozenset({RUN.id, PRIOR.id}) not in pairs(lesson_changed("alias", PRIOR.id, RUN.id))
    for one, other in ((RUN, PRIOR), (PRIOR, RUN)):
        assert frozenset({RUN.id, PRIOR.id}) not in pairs(lesson_changed("apart", one.id, other.id))
        disputed = (lesson_changed(op, one.id, other.id, principal=op) for op in ("alias", "apart"))
        assert frozenset({RUN.id, PRIOR.id}) not in pairs(*disputed)
    assert frozenset({ALWAYS.id, NEVER.id}) not in pairs(lesson_changed("retire", NEVER.id))
