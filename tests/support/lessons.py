"""Lessons for tests: short ways to make them, and the labelled sets beside the tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from weft.domain.lesson import (
    Conditions,
    Lesson,
    LessonKind,
    LessonPriority,
    LessonResult,
    LessonSource,
    LessonStatus,
    one_line,
)
from weft.domain.lesson_match import BelievedLesson
from weft.settings import Settings, load_settings

LABELLED = Path(__file__).resolve().parents[1] / "unit/lessons/labelled"


@cache
def settings() -> Settings:
    """As they are delivered."""
    return load_settings(environment={})


def a_lesson(
    content: str,
    *,
    section: str = "work",
    tools: tuple[str, ...] = (),
    files: tuple[str, ...] = (),
    actions: tuple[str, ...] = (),
    words: tuple[str, ...] = (),
    missed: str | None = None,
) -> Lesson:
    """A lesson of which only what matters is stated."""
    conditions = Conditions(tools=tools, files=files, actions=actions, words=words)
    return Lesson(section=section, content=content, conditions=conditions, missed=missed)


def believed(lesson: Lesson, p_good: float = 0.8, *, counts: dict[LessonResult, int] | None = None) -> BelievedLesson:
    """What is believed of an active lesson."""
    return BelievedLesson(
        lesson=lesson,
        p_good=p_good,
        lower=0.0,
        upper=1.0,
        status=LessonStatus.ACTIVE,
        counts=counts or {},
    )


def with_priority(lesson: Lesson, priority: LessonPriority) -> Lesson:
    """The same lesson, of another priority."""
    return Lesson.from_fields(lesson.as_fields() | {"priority": priority.value})


def lines_of(name: str) -> list[dict[str, Any]]:
    """All records of a labelled set."""
    return [json.loads(line) for line in (LABELLED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def labelled(name: str, *, held_out: bool) -> list[dict[str, Any]]:
    """Every second record of a labelled set: phrases and thresholds were chosen by the others alone."""
    return lines_of(name)[int(held_out) :: 2]


def any_lessons(texts: st.SearchStrategy[str], sections: Sequence[str]) -> st.SearchStrategy[Lesson]:
    """Lessons of some sections, whose texts and conditions are drawn from `texts`."""
    names = st.lists(texts, max_size=3).map(tuple)
    return st.builds(
        Lesson,
        section=st.sampled_from(sections),
        content=texts.filter(lambda text: any(map(str.isalnum, one_line(text)))),
        kind=st.sampled_from(LessonKind),
        priority=st.sampled_from(LessonPriority),
        source=st.sampled_from(LessonSource),
        conditions=st.builds(Conditions, tools=names, files=names, actions=names, words=names),
        missed=st.none() | texts,
        reasoning=st.none() | texts,
        span=st.none() | texts,
    )
