"""The skill manager: what may be done to a book of lessons, checked one operation at a time (LES-6).

Applying changes nothing outside: what was accepted is a list of operations that become events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from weft.domain.errors import InvalidLessonError
from weft.domain.lesson import Lesson, LessonId, LessonResult
from weft.lessons.duplicates import DuplicateIndex, compare_lessons
from weft.lessons.gate import problem_of
from weft.wording.comparison import TextRelation

if TYPE_CHECKING:
    from weft.lessons.settings import LessonSettings


class OperationKind(StrEnum):
    """What is done to a book of lessons."""

    ADD = "add"
    REVISE = "revise"  # another text in the place of one
    TAG = "tag"  # what came of one
    MERGE = "merge"  # one is another, in other words
    KEEP_APART = "keep_apart"  # and is not, whatever they look like
    RETIRE = "retire"
    RESTORE = "restore"


_NEEDS: Mapping[OperationKind, tuple[str, ...]] = {
    OperationKind.ADD: ("lesson",),
    OperationKind.REVISE: ("lesson_id", "lesson"),
    OperationKind.TAG: ("lesson_id", "result"),
    OperationKind.MERGE: ("lesson_id", "other_id"),
    OperationKind.KEEP_APART: ("lesson_id", "other_id"),
    OperationKind.RETIRE: ("lesson_id", "why"),
    OperationKind.RESTORE: ("lesson_id", "why"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonOperation:
    """One thing to do."""

    kind: OperationKind
    lesson_id: LessonId | None = None  # the lesson that it is done to
    lesson: Lesson | None = None  # A new text
    # the representative that a duplicate is merged into, or the lesson that one is kept apart from
    other_id: LessonId | None = None
    result: LessonResult | None = None  # what came of the lesson
    why: str | None = None  # the reason, for the history

    @classmethod
    def from_fields(cls, stated: Mapping[str, object]) -> LessonOperation:
        """An operation as JSON states it, such as an endpoint's answer.

        Raises:
            InvalidLessonError: A value is none.

        Examples:
            >>> LessonOperation.from_fields({"kind": "retire", "lesson_id": "0ccf9adef0b78896", "why": "outdated"}).kind
            <OperationKind.RETIRE: 'retire'>
        """
        kinds, results = set(OperationKind), set(LessonResult)
        kind, result, lesson = stated.get("kind"), stated.get("result"), stated.get("lesson")
        if isinstance(kind, str):  # "KEEP-APART"
            kind = kind.casefold().replace("-", "_")
        problems = [
            f"{name}: expected a text, found {stated[name]!r}: state one, or leave it out"
            for name in ("lesson_id", "other_id", "why")
            if not isinstance(stated.get(name), str | None)
        ]
        if not isinstance(kind, str) or kind not in kinds:
            problems.append(f"kind: expected one of {', '.join(OperationKind)}, found {kind!r}: choose one of them")
        if result is not None and (not isinstance(result, str) or result not in results):
            problems.append(f"result: expected one of {', '.join(LessonResult)}, found {result!r}: choose one of them")
        if lesson is not None and not isinstance(lesson, Mapping):
            problems.append(f"lesson: expected an object, found {lesson!r}: state section and content")
        if problems:
            raise InvalidLessonError(problems)
        texts = {name: stated.get(name) for name in ("lesson_id", "other_id", "why")}
        return cls(
            kind=OperationKind(str(kind)),
            lesson=Lesson.from_fields(lesson) if isinstance(lesson, Mapping) else None,
            result=LessonResult(str(result)) if result is not None else None,
            **texts,  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True)
class OperationError:
    """An operation that was not applied."""

    index: int  # its place in what was to be done, from 0
    problem: str


@dataclass(frozen=True, slots=True)
class LessonBook:
    """What the manager needs to know of lessons."""

    lessons: Mapping[LessonId, Lesson] = field(default_factory=dict)  # all, retired ones too
    retired: frozenset[LessonId] = frozenset()  # ids of these
    apart: frozenset[frozenset[LessonId]] = frozenset()  # pairs that somebody keeps apart


@dataclass(frozen=True, slots=True)
class Applied:
    """What came of operations."""

    book: LessonBook  # after them
    # what becomes events, in its order; merging that follows from an addition stands behind it
    accepted: tuple[LessonOperation, ...]
    errors: tuple[OperationError, ...]  # by the index of the operation
    # pairs of lessons of which one contradicts the other, and in what: for a person
    conflicts: tuple[tuple[LessonId, LessonId, str], ...]
    proposals: tuple[tuple[LessonId, LessonId, str], ...]  # pairs that may be one, and why: for a person


class SkillManager:
    """Checks and applies operations; without state of its own."""

    def __init__(self, settings: LessonSettings) -> None:
        self._settings = settings

    def apply(self, book: LessonBook, operations: Sequence[LessonOperation]) -> Applied:
        """Operations one after the other: each sees what those before it did, and one that fails stops none."""
        work = _Work(book, self._settings)
        errors = []
        for index, operation in enumerate(operations):
            if problem := work.apply(operation):
                errors.append(OperationError(index, problem))
        return work.applied(errors)


class _Work:
    """A book while operations are applied to it."""

    def __init__(self, book: LessonBook, settings: LessonSettings) -> None:
        self._settings = settings
        self._lessons = dict(book.lessons)
        self._retired = set(book.retired)
        self._apart = set(book.apart)
        self._near = DuplicateIndex(settings.duplicates)
        self._indexed = False
        self._accepted: list[LessonOperation] = []
        self._conflicts: list[tuple[LessonId, LessonId, str]] = []
        self._proposals: list[tuple[LessonId, LessonId, str]] = []

    def apply(self, operation: LessonOperation) -> str | None:
        """Applies one, or says why not."""
        if missing := [name for name in _NEEDS[operation.kind] if not getattr(operation, name)]:
            return f"{operation.kind}: expected {', '.join(missing)}, found none: state it"
        named = [operation.lesson_id, operation.other_id if "other_id" in _NEEDS[operation.kind] else None]
        if unknown := [each for each in named if each is not None and each not in self._lessons]:
            return f"{operation.kind}: expected a lesson of the book, found {', '.join(unknown)}: list them first"
        return {
            OperationKind.ADD: self._add,
            OperationKind.REVISE: self._revise,
            OperationKind.TAG: self._tag,
            OperationKind.MERGE: self._merge,
            OperationKind.KEEP_APART: self._keep_apart,
            OperationKind.RETIRE: self._retire,
            OperationKind.RESTORE: self._restore,
        }[operation.kind](operation)

    def applied(self, errors: Sequence[OperationError]) -> Applied:
        """The book as it is now."""
        book = LessonBook(dict(self._lessons), frozenset(self._retired), frozenset(self._apart))
        return Applied(book, tuple(self._accepted), tuple(errors), tuple(self._conflicts), tuple(self._proposals))

    def _add(self, operation: LessonOperation) -> str | None:
        assert operation.lesson is not None
        lesson = operation.lesson
        if problem := problem_of(lesson, self._settings):
            return f"add: {problem.detail}"
        there = lesson.id in self._lessons
        self._accepted.append(operation)  # said once more is news, too: the mass says how often
        if not there:
            self._take(lesson)
        return None

    def _revise(self, operation: LessonOperation) -> str | None:
        assert operation.lesson is not None and operation.lesson_id is not None  # noqa: PT018
        if operation.lesson.id == operation.lesson_id:
            return "revise: expected another text or other conditions, found the same: change something"
        if operation.lesson_id in self._retired:
            return "revise: expected a lesson in use, found a retired one: restore it first, or add a new one"
        if problem := problem_of(operation.lesson, self._settings):
            return f"revise: {problem.detail}"
        self._accepted.append(operation)
        self._take(operation.lesson, except_for=operation.lesson_id)
        return None

    def _tag(self, operation: LessonOperation) -> str | None:
        self._accepted.append(operation)
        return None

    def _merge(self, operation: LessonOperation) -> str | None:
        assert operation.lesson_id is not None and operation.other_id is not None  # noqa: PT018
        if operation.lesson_id == operation.other_id:
            return "merge: expected two lessons, found one: name another representative"
        one, other = (self._lessons[each] for each in (operation.lesson_id, operation.other_id))
        comparison = compare_lessons(one, other, self._settings.duplicates)
        if comparison.relation is TextRelation.OPPOSITE:
            return f"merge: expected two lessons that say the same, found opposites ({comparison.why}): retire one"
        self._apart.discard(frozenset({one.id, other.id}))
        self._accepted.append(operation)
        return None

    def _keep_apart(self, operation: LessonOperation) -> str | None:
        assert operation.lesson_id is not None and operation.other_id is not None  # noqa: PT018
        if operation.lesson_id == operation.other_id:
            return "keep_apart: expected two lessons, found one: name the other"
        self._apart.add(frozenset({operation.lesson_id, operation.other_id}))
        self._accepted.append(operation)
        return None

    def _retire(self, operation: LessonOperation) -> str | None:
        assert operation.lesson_id is not None
        if operation.lesson_id in self._retired:
            return "retire: expected a lesson in use, found a retired one: there is nothing to do"
        self._retired.add(operation.lesson_id)
        self._accepted.append(operation)
        return None

    def _restore(self, operation: LessonOperation) -> str | None:
        assert operation.lesson_id is not None
        if operation.lesson_id not in self._retired:
            return "restore: expected a retired lesson, found one in use: there is nothing to do"
        self._retired.discard(operation.lesson_id)
        self._accepted.append(operation)
        return None

    def _take(self, lesson: Lesson, *, except_for: LessonId | None = None) -> None:
        """A new lesson, and what it is to those that are there."""
        if not self._indexed:
            for each in self._lessons.values():
                self._near.add(each)
            self._indexed = True
        for other, comparison in self._near.compared(lesson):
            pair = frozenset({lesson.id, other.id})
            if other.id == except_for or other.id in self._retired or pair in self._apart:
                continue
            if comparison.relation is TextRelation.SAME:
                merge = OperationKind.MERGE
                self._accepted.append(
                    LessonOperation(kind=merge, lesson_id=lesson.id, other_id=other.id, why=comparison.why)
                )
                break  # one representative
            if comparison.relation is TextRelation.OPPOSITE:
                self._conflicts.append((lesson.id, other.id, comparison.why))
            elif comparison.relation is TextRelation.PROPOSED:
                self._proposals.append((lesson.id, other.id, comparison.why))
        self._lessons[lesson.id] = lesson
        self._near.add(lesson)
