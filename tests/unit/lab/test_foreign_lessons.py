"""LES-12: records of three older forms, with one report."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.foreign_lessons import migrate
from weft.domain.lesson import LessonKind, LessonPriority, LessonSource, LessonStatus

SKILLS = [
    {
        "id": "s1",
        "content": "Sign commits",
        "category": "Git",
        "status": "promoted",
        "confidence": 0.7,
        "type": "warning",
    },
    {"id": "s2", "content": "Squash commits", "category": "Git", "status": "archived", "confidence": 0.9},
    {"id": "s3", "content": "Tag releases", "category": "Git", "status": "draft", "severity": "HIGH"},
    {"id": "s4", "content": "Rebase branches", "category": "Git", "status": "limbo", "confidence": -0.5},
    {"id": "s5", "content": "Push often", "category": "Git", "status": "active", "confidence": 0.8},
]


def test_records_of_a_skill_store() -> None:
    """LES-12: promoted .95, archived retired, unknown needs validation, values clamped with a warning."""
    report = migrate(json.dumps({"skills": SKILLS}))
    assert [(each.status, each.confidence) for each in report.lessons] == [
        (LessonStatus.ACTIVE, 0.95),
        (LessonStatus.RETIRED, 0.9),
        (LessonStatus.NEEDS_VALIDATION, None),
        (LessonStatus.NEEDS_VALIDATION, 0.0),
        (LessonStatus.ACTIVE, 0.8),
    ]
    assert [each.lesson.source for each in report.lessons] == [LessonSource.USER_CORRECTION, *[LessonSource.OTHER] * 4]
    assert report.lessons[0].lesson.kind is LessonKind.WARNING
    assert report.lessons[2].lesson.priority is LessonPriority.HIGH
    assert {each.lesson.section for each in report.lessons} == {"git"}
    assert report.forms == {"skills": 5}
    assert [at for at, _ in report.warnings] == [3, 3]
    assert report.rejected == ()


def test_bullets_of_a_playbook_in_text_and_in_json() -> None:
    """LES-12: counts come with them."""
    first = "[ctx-00012] helpful=3 harmful=1 :: Run the linter first"
    text = f"## STRATEGIES\n{first}\n\n- [ctx-13] helpful=0 harmful=-2 :: Pin numpy\n"
    in_text = migrate(text)
    assert [(each.lesson.content, each.helpful, each.harmful) for each in in_text.lessons] == [
        ("Run the linter first", 3, 1),
        ("Pin numpy", 0, 0),
    ]
    assert [each.lesson.section for each in in_text.lessons] == ["strategies", "strategies"]
    assert len(in_text.warnings) == 1
    in_json = migrate('{"strategies": [{"content": "Run the linter first", "helpful": 3, "harmful": 1}]}')
    assert in_json.lessons[0] == in_text.lessons[0]
    assert in_json.forms == {"bullets": 1}


def test_notes_one_a_line() -> None:
    """LES-12: JSON lines, with lines between that are none."""
    lines = ['{"text": "Pin numpy", "topic": "builds", "tags": ["numpy"], "confidence": "0.6"}', "what is this", "[]"]
    report = migrate("\n".join(lines))
    assert [each.confidence for each in report.lessons] == [0.6]
    assert report.lessons[0].lesson.conditions.words == ("numpy",)
    assert [at for at, _ in report.rejected] == [1]
    assert report.forms == {"notes": 1, "unknown": 1}


def test_secrets_stay_behind() -> None:
    """LES-12, LES-6: an old store may hold what must not be stored; the report does not repeat it."""
    report = migrate('[{"text": "Use password: hunter2!", "status": "active"}]')
    assert report.lessons == ()
    assert "hunter2" not in str(report)


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["content", "status", "helpful", "confidence", "tools", "skills", "x"]), inner
        )
    ),
    max_leaves=12,
)


@given(records=st.lists(anything, max_size=5))
def test_every_record_is_a_lesson_or_in_the_report(records: list[object]) -> None:
    """LES-12: whatever stands there, nothing is lost and nothing stops the rest."""
    report = migrate(json.dumps(records))
    assert len(report.lessons) + len(report.rejected) == len(records) == sum(report.forms.values())
    assert str(report).startswith(f"{len(report.lessons)} lessons of {len(records)} records")


@pytest.mark.parametrize("text", ["", "\n\n", "[]", "{}"])
def test_nothing_gives_an_empty_report(text: str) -> None:
    """LES-12."""
    assert migrate(text).lessons == ()
