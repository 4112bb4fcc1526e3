"""LES-6: what may be done to a book of lessons."""

from __future__ import annotations

import pytest

from tests.support.lessons import a_lesson, settings
from weft.domain.errors import InvalidLessonError
from weft.domain.lesson import Conditions, Lesson, LessonId, LessonResult
from weft.lessons.manager import Applied, LessonBook, LessonOperation, OperationKind, SkillManager

MANAGER = SkillManager(settings().lessons)
SQUASH = a_lesson("Always squash commits before merging")
UTC = a_lesson("Store timestamps in UTC")
BOOK = LessonBook({lesson.id: lesson for lesson in (SQUASH, UTC)})


def add(lesson: Lesson) -> LessonOperation:
    return LessonOperation(kind=OperationKind.ADD, lesson=lesson)


def on(kind: OperationKind, target: Lesson, /, **stated: object) -> LessonOperation:
    return LessonOperation(kind=kind, lesson_id=target.id, **stated)  # type: ignore[arg-type]


def apply(*operations: LessonOperation, book: LessonBook = BOOK) -> Applied:
    return MANAGER.apply(book, operations)


def test_each_operation_is_checked_by_itself_and_errors_name_its_index() -> None:
    """LES-6: one that fails stops none, and each sees what those before it did."""
    new = a_lesson("Pin the base image by digest")
    applied = apply(
        add(new),
        add(a_lesson("Be more careful")),
        on(OperationKind.RETIRE, new, why="not ours"),
        on(OperationKind.RETIRE, new, why="again"),
        on(OperationKind.RESTORE, new, why="ours after all"),
        on(OperationKind.RESTORE, UTC, why="never retired"),
        on(OperationKind.RETIRE, UTC),
        on(OperationKind.TAG, SQUASH, result=LessonResult.SUCCESS),
        on(OperationKind.TAG, a_lesson("Unheard of"), result=LessonResult.SUCCESS),
        add(a_lesson("Log in with password: hunter2!")),
    )
    assert [each.index for each in applied.errors] == [1, 3, 5, 6, 8, 9]
    assert [each.kind for each in applied.accepted] == ["add", "retire", "restore", "tag"]
    problems = [each.problem for each in applied.errors]
    assert "names nothing to do" in problems[0]
    assert "found a retired one" in problems[1]
    assert "expected why, found none" in problems[3]
    assert "expected a lesson of the book" in problems[4]
    assert "hunter2" not in problems[5]
    assert new.id in applied.book.lessons
    assert applied.book.retired == frozenset()


def test_the_book_that_was_given_stays_as_it_was() -> None:
    """LES-6: a value in, a value out."""
    before = LessonBook(dict(BOOK.lessons))
    apply(add(a_lesson("Pin the base image by digest")), on(OperationKind.RETIRE, UTC, why="x"))
    assert before == BOOK


def test_what_is_said_again_is_accepted_and_in_other_words_merged() -> None:
    """LES-7, LES-13: how often it was said is evidence."""
    again = apply(add(UTC), add(UTC))
    assert [each.kind for each in again.accepted] == ["add", "add"]
    other = a_lesson("Timestamps should be stored in UTC", section="time")
    merged = apply(add(other))
    assert [(each.kind, each.lesson_id, each.other_id) for each in merged.accepted] == [
        ("add", None, None),
        ("merge", other.id, UTC.id),
    ]


def test_opposites_are_added_and_reported_and_never_merged() -> None:
    """LES-13: conflicts are for review."""
    never = a_lesson("Never squash commits before merging")
    applied = apply(add(never), on(OperationKind.MERGE, never, other_id=SQUASH.id))
    assert [(one, other) for one, other, _ in applied.conflicts] == [(never.id, SQUASH.id)]
    assert [each.index for each in applied.errors] == [1]
    assert "opposites" in applied.errors[0].problem


def test_keeping_apart_is_remembered_until_somebody_merges() -> None:
    """LES-13."""
    other = a_lesson("Timestamps should be stored in UTC", section="time")
    book = LessonBook({**BOOK.lessons, other.id: other})
    apart = apply(on(OperationKind.KEEP_APART, other, other_id=UTC.id), book=book)
    assert apart.book.apart == {frozenset({other.id, UTC.id})}
    without = LessonBook(BOOK.lessons, apart=apart.book.apart)
    assert [each.kind for each in apply(add(other), book=without).accepted] == ["add"]
    merged = apply(on(OperationKind.MERGE, other, other_id=UTC.id), book=apart.book)
    assert merged.errors == ()
    assert merged.book.apart == frozenset()


def test_a_revision_needs_another_text_and_a_lesson_in_use() -> None:
    """LES-7: it is a new lesson, which no longer conflicts with what it stands for."""
    better = a_lesson("Store timestamps in UTC with microseconds")
    good = apply(on(OperationKind.REVISE, UTC, lesson=better))
    assert good.errors == ()
    assert better.id in good.book.lessons
    assert good.conflicts == good.proposals == ()
    assert "found the same" in apply(on(OperationKind.REVISE, UTC, lesson=UTC)).errors[0].problem
    retired = LessonBook(BOOK.lessons, retired=frozenset({UTC.id}))
    assert "retired" in apply(on(OperationKind.REVISE, UTC, lesson=better), book=retired).errors[0].problem
    assert "names nothing" in apply(on(OperationKind.REVISE, UTC, lesson=a_lesson("Be careful"))).errors[0].problem


@pytest.mark.parametrize("kind", OperationKind)
def test_an_operation_without_what_it_needs_is_refused(kind: OperationKind) -> None:
    """LES-6: every kind says what is missing."""
    (error,) = apply(LessonOperation(kind=kind)).errors
    assert (error.index, "found none: state it" in error.problem) == (0, True)


def test_one_lesson_is_neither_merged_with_itself_nor_kept_apart_from_itself() -> None:
    """LES-6."""
    for kind in (OperationKind.MERGE, OperationKind.KEEP_APART):
        assert "expected two lessons" in apply(on(kind, UTC, other_id=UTC.id)).errors[0].problem


def test_operations_are_read_from_plain_values() -> None:
    """LES-6: as an endpoint answers, with every problem named."""
    stated = {"kind": "add", "lesson": {"section": "git", "content": "Sign commits"}}
    assert LessonOperation.from_fields(stated).lesson == Lesson(section="git", content="Sign commits")
    tag = LessonOperation.from_fields({"kind": "tag", "lesson_id": "0" * 16, "result": "failure"})
    assert (tag.lesson_id, tag.result) == (LessonId("0" * 16), LessonResult.FAILURE)
    with pytest.raises(InvalidLessonError) as refused:
        LessonOperation.from_fields({"kind": "explode", "lesson": 3, "why": 4, "result": "fine"})
    assert sorted(problem.split(":")[0] for problem in refused.value.problems) == ["kind", "lesson", "result", "why"]


@pytest.mark.parametrize(
    ("conditions", "works"),
    [
        (Conditions(tools=("Bash(git *)",)), "state Bash, and git as words of the context"),
        (Conditions(tools=("Bash(npm run test:*)",)), "state Bash, and npm run test as words of the context"),
        (Conditions(tools=("Edit|Write",)), "state Edit and Write, each by itself"),
        (Conditions(tools=("Edit, Write",)), "state Edit and Write, each by itself"),
        (Conditions(tools=("mcp__db__.*",)), "state mcp__db__*"),
        (Conditions(tools=("^Bash$",)), "state Bash"),
        (Conditions(files=("*.ts,*.tsx",)), "state each by itself"),
        (Conditions(files=("*.ts, b.tsx",)), "state each by itself"),
        (Conditions(files=("!*.md",)), "with * for any part of a name"),
        (Conditions(files=(r".*\.py$",)), "with * for any part of a name"),
        (Conditions(files=("@(a|b).ts",)), "with * for any part of a name"),
        (Conditions(files=("{a,b}" * 20,)), "state several patterns"),
        (Conditions(words=("—",)), "state one that the context names"),
    ],
)
def test_a_condition_that_is_never_met_is_refused_with_the_form_that_works(conditions: Conditions, works: str) -> None:
    """LES-1, LES-6, LES-8: whoever says such a lesson would wait for it for ever."""
    lesson = Lesson(section="s", content="Pin the base image by its digest", conditions=conditions)
    applied = apply(add(lesson), book=LessonBook())
    assert not applied.accepted
    (error,) = applied.errors
    assert works in error.problem


@pytest.mark.parametrize(
    "conditions",
    [
        Conditions(tools=("Bash", "mcp__*", "functions.bash", "[BE]*")),
        Conditions(files=("*.{ts,tsx}", "gen/", "app/(group)/[id].tsx", "a,b.txt", ".env*", "**/*.py", "*,v")),
        Conditions(words=("c++", "git push", "--force", "部署")),
    ],
)
def test_a_condition_that_can_be_met_is_taken(conditions: Conditions) -> None:
    """LES-6, LES-8."""
    lesson = Lesson(section="s", content="Pin the base image by its digest", conditions=conditions)
    assert apply(add(lesson), book=LessonBook()).errors == ()


def test_two_values_in_one_place_are_proposed_to_a_person() -> None:
    """LES-13: neither merged nor in conflict; nothing is proposed where their files exclude each other."""
    one, other = a_lesson("Use PostgreSQL for the session store"), a_lesson("Use MySQL for the session store")
    applied = apply(add(one), add(other), book=LessonBook())
    assert [each.kind for each in applied.accepted] == [OperationKind.ADD] * 2
    assert (applied.conflicts, [each[:2] for each in applied.proposals]) == ((), [(other.id, one.id)])
    here, there = (
        a_lesson(f"Install packages with {tool}", files=(files,))
        for tool, files in (("npm", "docs/"), ("pnpm", "web/"))
    )
    assert apply(add(here), add(there), book=LessonBook()).proposals == ()
