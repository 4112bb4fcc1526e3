"""Operations on the book of lessons: read, checked by the skill manager, and said to the topic (LES-6)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.app.lessons.lesson_sender import LessonSender
from weft.domain.errors import InvalidLessonError
from weft.domain.events import LessonChange, LessonEvent, LessonOutcome
from weft.domain.lesson import LessonId, LessonStatus
from weft.feedback.events.lesson_events import lesson_text
from weft.learning.lessons.beliefs import LessonBeliefs
from weft.lessons.manager import Applied, LessonBook, LessonOperation, OperationError, OperationKind, SkillManager
from weft.settings import Settings

OPS: Mapping[OperationKind, str] = {
    OperationKind.ADD: "add",
    OperationKind.REVISE: "revise",
    OperationKind.MERGE: "alias",
    OperationKind.KEEP_APART: "apart",
    OperationKind.RETIRE: "retire",
    OperationKind.RESTORE: "restore",
}
"""The `op` of the event that each operation becomes; a tag becomes an outcome."""


@dataclass(frozen=True, slots=True)
class ReadOperations:
    """What JSON lines say is to be done."""

    operations: Mapping[int, LessonOperation]  # by their index: the place among all lines that are not empty, from 0
    errors: Sequence[OperationError]  # of lines that are no operation


def read_operations(text: str) -> ReadOperations:
    """One operation a line, as `LessonOperation.from_fields` has it."""
    operations: dict[int, LessonOperation] = {}
    errors: list[OperationError] = []
    for index, line in enumerate(line for line in text.splitlines() if line.strip()):
        try:
            stated = json.loads(line)
            if not isinstance(stated, dict):
                raise InvalidLessonError([f"expected an object, found {line[:40]}: state kind and what it needs"])
            operations[index] = LessonOperation.from_fields(stated)
        except InvalidLessonError as error:
            errors.append(OperationError(index, str(error)))
        except ValueError as error:
            errors.append(OperationError(index, f"expected JSON, found {line[:40]}: {error}"))
    return ReadOperations(operations, errors)


def apply_operations(operations: Mapping[int, LessonOperation], beliefs: LessonBeliefs, settings: Settings) -> Applied:
    """What the skill manager makes of operations on the lessons that are believed; errors name their index."""
    order = list(operations)
    manager = SkillManager(settings.lessons)
    applied = manager.apply(book_of(beliefs), [operations[index] for index in order])
    errors = tuple(OperationError(order[each.index], each.problem) for each in applied.errors)
    return Applied(applied.book, applied.accepted, errors, applied.conflicts, applied.proposals)


def book_of(beliefs: LessonBeliefs) -> LessonBook:
    """The lessons that are believed, as the skill manager knows them."""
    retired = frozenset(each.id for each in beliefs.all() if each.status is LessonStatus.RETIRED)
    lessons = {text.id: text for text in beliefs.lessons().values()}
    apart = frozenset(frozenset(map(LessonId, pair)) for pair in beliefs.separate)
    return LessonBook(lessons, frozenset(lessons.keys() & retired), apart)


def say_operations(
    sender: LessonSender,
    operations: Iterable[LessonOperation],
    *,
    event_id: Callable[[LessonOperation], str | None] = lambda _: None,
) -> None:
    """Tell the topic what was accepted."""
    for operation in operations:
        about = operation.lesson_id or (operation.lesson.id if operation.lesson else "")
        own = event_id(operation)
        given = {} if own is None else {"event_id": own}
        sender.producer.say(
            sender.session_of(about),
            sender.principal,
            lambda stamp, operation=operation, given=given: _event(operation, {**stamp, **given}),  # type: ignore[misc]
        )


def id_made_of(*parts: str) -> str:
    """The id of an event that is the same whenever the same is said again."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _event(operation: LessonOperation, stamp: Mapping[str, Any]) -> LessonEvent:
    if operation.kind is OperationKind.TAG:
        assert operation.lesson_id is not None and operation.result is not None  # noqa: PT018  the manager saw to it
        return LessonOutcome(**stamp, lesson_id=operation.lesson_id, outcome=operation.result, why=operation.why)
    return LessonChange(
        **stamp,
        op=OPS[operation.kind],  # type: ignore[arg-type]
        lesson_id=operation.lesson_id,
        lesson=None if operation.lesson is None else lesson_text(operation.lesson),
        other=operation.other_id,
        why=operation.why,
    )
