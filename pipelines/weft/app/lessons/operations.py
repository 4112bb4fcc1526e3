"""Saying something of lessons to the topic, operations that the skill manager has checked among it (LES-6, LES-10)."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.app.lessons.view import lesson_document, noted
from weft.app.producer import acknowledged_producer
from weft.domain.errors import BrokerUnavailableError, InvalidLessonError, StoreError
from weft.domain.events import LessonChange, LessonEvent, LessonOutcome
from weft.domain.ids import principal_fingerprint
from weft.domain.lesson import LessonId, LessonStatus, lesson_session
from weft.feedback.events.lesson_events import lesson_text
from weft.feedback.events.producer import FeedbackProducer
from weft.feedback.fold.lessons import lesson_usage
from weft.feedback.run.partitions import partitions_in
from weft.feedback.settings import MS
from weft.learning.evidence import Evidence, day_of
from weft.learning.lessons.beliefs import LessonBelief, LessonBeliefs, read_lessons
from weft.lessons.manager import Applied, LessonBook, LessonOperation, OperationError, OperationKind, SkillManager
from weft.runtime.clock import system_clock
from weft.runtime.kafka.writer import create_topic
from weft.runtime.process import speaker_of
from weft.settings import Settings


@dataclass(frozen=True, slots=True)
class LessonSender:
    """Who says something, and by which producer."""

    producer: FeedbackProducer
    principal: str
    session: str | None

    def session_of(self, lesson_id: str) -> str:
        """The session that is named, or else one of the lesson's own: what is said of it stays in order."""
        return self.session or lesson_session(lesson_id)


@contextmanager
def lesson_sender(settings: Settings, principal: str | None, session: str | None) -> Iterator[LessonSender]:
    """Whoever speaks; what was said is acknowledged when the block is left."""
    with acknowledged_producer(settings) as producer:
        yield LessonSender(producer, speaker_of(principal), session)


def lesson_of(beliefs: LessonBeliefs, name: str) -> LessonBelief:
    """The lesson whose id begins so.

    Raises:
        StoreError: There is none, or several.
    """
    matching = [each for each in beliefs.ids if each.startswith(name)]
    if name in matching:
        matching = [name]
    if len(matching) != 1 or (belief := beliefs.of(matching[0])) is None:
        raise StoreError(
            f"expected one lesson whose id begins with {name!r}, found {len(matching)}: `weft lessons list` names them;"
            " what was just said is there within a second or two, while the updaters run"
        )
    return belief


def lesson_page(beliefs: LessonBeliefs, name: str) -> dict[str, Any]:
    """The lesson whose id begins so, what is believed of it and why, and its history, in JSON's own types."""
    belief = lesson_of(beliefs, name)
    history = [noted(each) for each in beliefs.history(belief.id)]
    return {**lesson_document(belief, beliefs.lesson(belief.id)), "history": history}


def after(settings: Settings, evidence: Evidence, event: LessonEvent) -> LessonBeliefs:
    """What will be believed once the updaters have read an event."""
    at_ms, priors = round(system_clock() * MS), settings.priors
    usage = dict(lesson_usage(event, at_ms, principal=principal_fingerprint(event.principal)))
    facts = evidence + Evidence(usage=usage)
    level, cap = priors.interval.level, priors.robustness.effective_cap
    return read_lessons(priors.lessons, facts, day_of(at_ms / MS), effective_cap=cap, level=level)


@dataclass(frozen=True, slots=True)
class FirstWord:
    """What was made for the first thing that is said, and what has to run before agents are told it."""

    made: Path | None  # the folder of a new store
    updaters: str  # the command that runs updaters


def ensure_store_and_topic(settings: Settings) -> FirstWord | None:
    """What is said first of all finds a store and a topic: where no updater has begun, both are made if missing.

    Raises:
        BrokerUnavailableError: No broker answers; the message says how one is started to try this out.
    """
    root, rules = Path(settings.storage.root), settings.feedback
    if partitions_in(root):
        return None
    try:
        create_topic(
            settings.kafka, rules.topic, partitions=rules.partitions, replication=rules.replication, operation="Write"
        )
    except BrokerUnavailableError as error:
        raise BrokerUnavailableError(
            f"{error} To try it out, run `weft broker` in another terminal and say it again; "
            "name a broker of yours with --bootstrap"
        ) from error
    made = None if root.is_dir() else root
    root.mkdir(parents=True, exist_ok=True)
    at = f"--bootstrap {shlex.quote(settings.kafka.bootstrap)}"
    return FirstWord(made, f"weft update --local --store {shlex.quote(str(root))} {at}")


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
