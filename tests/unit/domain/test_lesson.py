"""LES-1: values of a lesson, named by their hash and checked when they are made."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.lessons import any_lessons
from weft.domain.errors import InvalidLessonError
from weft.domain.lesson import (
    LONGEST_CONTENT,
    Conditions,
    Lesson,
    LessonKind,
    LessonResult,
    LessonStatus,
    lesson_id,
    one_line,
)
from weft.domain.lesson_match import BelievedLesson

texts = st.text(min_size=1, max_size=60).filter(lambda text: bool(one_line(text)) and text < "\ud800")
names = st.lists(texts, max_size=3).map(tuple)
lessons = any_lessons(texts, ["testing", "git", "api-design", "build_2"])


@given(lesson=lessons)
def test_a_lesson_reads_back_as_it_was_written(lesson: Lesson) -> None:
    """LES-1: JSON and plain values, both ways; a second writing gives the same bytes."""
    again = Lesson.from_json(lesson.to_json())
    assert again == lesson
    assert again.to_json() == lesson.to_json()
    assert Lesson.from_fields(lesson.as_fields()) == lesson


def test_the_id_is_the_hash_of_section_text_and_conditions() -> None:
    """LES-1: computed by hand; kind, priority, source and reasons change nothing."""
    conditions = Conditions(tools=("Bash",), actions=("Push",))
    canonical = '["git","Never force-push",["Bash"],[],["push"],[]]'
    expected = hashlib.sha256(canonical.encode()).hexdigest()[:16]
    stated = {"section": "git", "content": "Never  force-push", "conditions": conditions}
    assert Lesson(**stated).id == expected  # type: ignore[arg-type]
    assert Lesson(**stated, kind=LessonKind.WARNING, reasoning="It loses work").id == expected  # type: ignore[arg-type]
    assert lesson_id("git", "Never force-push", Conditions()) != expected


@given(tools=names, actions=names)
def test_the_order_of_conditions_makes_no_difference(tools: tuple[str, ...], actions: tuple[str, ...]) -> None:
    """LES-1."""
    forth = Conditions(tools=tools, actions=actions)
    back = Conditions(tools=tools[::-1], actions=actions[::-1])
    assert forth == back
    assert lesson_id("git", "x", forth) == lesson_id("git", "x", back)


WRONG = [
    ({"section": 3}, "section: expected a text, found 3"),
    ({"section": "Git Rules"}, "section: expected lower-case words"),
    ({"content": ""}, "content: expected 1 to 600 characters, found 0"),
    ({"content": "x" * (LONGEST_CONTENT + 1)}, "content: expected 1 to 600 characters, found 601"),
    ({"content": None}, "content: expected a text, found None"),
    ({"content": " ... "}, "content: expected words, found '...'"),
    ({"kind": "rule"}, "kind: expected one of checklist, pattern, warning, requirement, found 'rule'"),
    ({"priority": "urgent"}, "priority: expected one of critical, high, medium, low, found 'urgent'"),
    ({"source": ["x"]}, "source: expected one of"),
    ({"missed": 7}, "missed: expected a text, found 7"),
    ({"conditions": ["Bash"]}, "conditions: expected an object"),
    ({"conditions": {"tools": "Bash"}}, "conditions.tools: expected a list of texts, found 'Bash'"),
    ({"conditions": {"files": [""]}}, "conditions.files: expected 1 to 200 characters"),
    ({"conditions": {"words": [4]}}, "conditions.words: expected a list of texts"),
    ({"id": "0" * 16}, "id: expected 0ccf9adef0b78896"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_value_is_named_with_what_was_expected(change: dict[str, object], message: str) -> None:
    """LES-1: expected, found and what to do."""
    stated = {"section": "api", "content": "Run the migrations before starting the API"} | change
    with pytest.raises(InvalidLessonError) as refused:
        Lesson.from_json(json.dumps(stated))
    assert message in str(refused.value)
    assert len(refused.value.problems) == 1


def test_every_problem_is_named_at_once() -> None:
    """LES-1: who mends a record wants to know all of them."""
    with pytest.raises(InvalidLessonError) as refused:
        Lesson.from_fields({"section": 1, "content": 2, "kind": "x", "conditions": {"tools": "Bash"}})
    assert [problem.split(":")[0] for problem in refused.value.problems] == [
        "section",
        "content",
        "kind",
        "conditions.tools",
    ]


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000, b"\xff"])
def test_what_is_no_object_is_refused(text: str | bytes) -> None:
    """LES-1: never another error than the one that sets a record aside."""
    with pytest.raises(InvalidLessonError, match="expected a JSON object"):
        Lesson.from_json(text)


def test_a_belief_out_of_bounds_is_refused() -> None:
    """LES-1: validated on load."""
    lesson = Lesson(section="git", content="Sign every commit")
    belief = BelievedLesson(
        lesson=lesson,
        p_good=0.8,
        lower=0.6,
        upper=0.9,
        status=LessonStatus.ACTIVE,
        counts={LessonResult.SUCCESS: 3, LessonResult.CONFIRMATION: 1, LessonResult.FAILURE: 2},
    )
    assert (belief.helpful, belief.harmful) == (4, 2)
    with pytest.raises(InvalidLessonError, match="p_good: expected 0 <= lower"):
        BelievedLesson(lesson=lesson, p_good=0.5, lower=0.6, upper=0.9, status=LessonStatus.ACTIVE)
    counts = {LessonResult.FAILURE: -1}
    with pytest.raises(InvalidLessonError, match="counts: expected 0 or more"):
        BelievedLesson(lesson=lesson, p_good=0.7, lower=0.6, upper=0.9, status=LessonStatus.ACTIVE, counts=counts)


def test_what_has_no_width_or_turns_a_line_around_is_no_part_of_a_text() -> None:
    """LES-1: what is shown is what is said, and what looks the same is the same lesson."""
    plain = Lesson(section="api", content="Run the migrations first")
    assert Lesson(section="api", content="\ufeffRun the\u200b \u202emigrations\u202c first").id == plain.id
