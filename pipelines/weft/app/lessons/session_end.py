"""The end of an agent's session: what was injected is told to the topic, what came of it, and what it taught.

It may run after every turn: injections, outcomes and lessons carry ids of their own, so that each counts once (LES-7).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from weft.app.lessons.board import session_file, without_halves
from weft.app.lessons.hearing import load_hearing
from weft.app.lessons.operations import apply_operations, id_made_of, lesson_sender, say_operations
from weft.app.lessons.view import live_lessons
from weft.catalog.catalog import Catalog
from weft.domain.errors import InvalidEventError
from weft.domain.events import InjectedLesson
from weft.domain.lesson import Lesson
from weft.feedback.settings import MS
from weft.learning.lessons.beliefs import LessonBeliefs
from weft.lessons.hearing import NO_EARLIER_TURNS, EarlierTurns, Hearing, Injection, Utterance
from weft.lessons.manager import LessonOperation, OperationKind
from weft.lessons.reflection import EndpointReflector, EpisodeStep, HearingReflector, Reflection, Reflector
from weft.lessons.sensitive import without_sensitive
from weft.runtime.chat import ChatEndpoint
from weft.settings import Settings, load_settings, require_store

_TIMEOUT_S = 20.0  # for one answer of the model that reflects; then the rules do


class SpooledInjection(msgspec.Struct, frozen=True):
    """What was put before an agent, as the hook wrote it down."""

    injection_id: str
    at: int
    tool: str
    lessons: tuple[InjectedLesson, ...]


class TimedStep(NamedTuple):
    """One line of a transcript."""

    step: EpisodeStep
    at_ms: int  # milliseconds since the epoch; 0 where the transcript does not say


def tell_session(
    root: Path,
    asked: Mapping[str, Any],
    *,
    bootstrap: str | None = None,
    note: Callable[[str], None] = lambda _: None,  # takes what is wrong and stops nothing
) -> dict[str, int]:
    """Tell the topic of a session that an agent has ended, or paused; how many of each were sent."""
    stated = {"storage.root": str(root), "kafka.bootstrap": bootstrap}
    settings = load_settings([], [f"{name}={json.dumps(value)}" for name, value in stated.items() if value])
    session = str(asked.get("session_id") or "")
    beliefs = live_lessons(Catalog(require_store(settings)), settings)
    injections = _spooled(session_file(root, session))
    turns = read_transcript(asked.get("transcript_path"), note)
    shown = _shown(injections, turns, beliefs)
    steps = [turn.step for turn in turns]
    hearing = load_hearing(settings, note) if turns else None
    utterances = [Utterance(step.output if step.speaker == "tool" else step.text, step.speaker) for step in steps]
    marker = session_file(root, session).with_suffix(".heard")
    earlier = before if (before := _earlier_turns(marker)).turns <= len(steps) else NO_EARLIER_TURNS  # begun anew
    outcomes = [] if hearing is None or not shown else hearing.outcomes(utterances, shown, earlier.turns)
    reflection = reflector_of(settings, hearing, earlier).reflect(steps, [each.lesson for each in shown])
    operations = _operations(settings, beliefs, reflection)
    of = f"agent-{session}"
    kafka = settings.kafka
    hasty = kafka.model_copy(update={"connect_timeout_ms": min(kafka.connect_timeout_ms, _PATIENCE_MS)})
    with lesson_sender(settings.model_copy(update={"kafka": hasty}), None, of) as sender:
        for each in injections:
            sender.producer.lessons_injected(
                of, each.injection_id, each.lessons, principal=sender.principal, tool=each.tool or None, at_ms=each.at
            )
        for outcome in outcomes:
            with _noted(note):
                sender.producer.lesson_outcome(
                    of,
                    outcome.injection.lesson.id,
                    outcome.result.value,
                    principal=sender.principal,
                    origin="detection",
                    injection_id=outcome.injection.injection_id,
                    span=without_sensitive(outcome.span)[:_SPAN],
                    event_id=outcome.outcome_id,
                    sure=round(outcome.sure, _PLACES),
                )
        for operation in operations:
            with _noted(note):
                say_operations(sender, [operation], event_id=lambda each: _event_id(session, each))
    with suppress(OSError):  # what is told twice counts once
        taught = dict.fromkeys([*earlier.taught, *(each.span or each.content for each in reflection.proposals)])
        marker.write_bytes(msgspec.json.encode(EarlierTurns(len(steps), tuple(taught))))
    lessons = sum(each.kind is OperationKind.ADD for each in operations)
    return {"injections": len(injections), "outcomes": len(outcomes), "lessons": lessons}


@contextmanager
def _noted(note: Callable[[str], None]) -> Iterator[None]:
    """What the topic takes no event of is noted, and costs itself alone."""
    try:
        yield
    except InvalidEventError as error:
        note(str(error))


_SPAN = 2_000
_PLACES = 3  # of a probability: it is right to a tenth or so
_PATIENCE_MS = 2_000  # until a broker is away: an agent waits, and what is not told now is told at its next stop
_LONGEST = 20_000  # characters of one message that are read: what a person says of an agent's work stands first
_OF_PROGRAMS = ("isMeta", "isSidechain", "isCompactSummary")  # what a record says where no person wrote the user's part
_TAGGED = re.compile(r"<((?:system|command|local|bash|ide|user-prompt)-[a-z-]+)>.*?</\1>", re.DOTALL)
"""What agents put into a person's message."""


def _operations(settings: Settings, beliefs: LessonBeliefs, reflection: Reflection) -> Sequence[LessonOperation]:
    """What the skill manager makes of an episode's lessons: one that says what is there already is merged with it."""
    adding = [LessonOperation(kind=OperationKind.ADD, lesson=lesson) for lesson in reflection.proposals]
    return apply_operations(dict(enumerate(adding)), beliefs, settings).accepted if adding else ()


def _event_id(session: str, operation: LessonOperation) -> str:
    if operation.lesson is not None:
        return id_made_of(session, operation.lesson.id)
    return id_made_of(session, operation.kind, str(operation.lesson_id), str(operation.other_id))


def reflector_of(settings: Settings, hearing: Hearing | None, earlier: EarlierTurns = NO_EARLIER_TURNS) -> Reflector:
    """Who reflects: the model that the settings name, and the heads where it does not answer or none is named."""
    reflector, stated = HearingReflector(hearing, settings.lessons, earlier), settings.lessons.reflector
    if not stated.endpoint:
        return reflector
    model = ChatEndpoint(stated.endpoint, stated.model, stated.api_key, _TIMEOUT_S)
    return EndpointReflector(model.complete, settings.lessons, reflector)


def _earlier_turns(path: Path) -> EarlierTurns:
    """What was heard at the last stop; nothing where no file says so, and all is heard again."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=EarlierTurns)
    except (OSError, msgspec.MsgspecError):
        return NO_EARLIER_TURNS


def _spooled(path: Path) -> list[SpooledInjection]:
    if not path.exists():
        return []
    lines = path.read_bytes().splitlines()
    hits = []
    for line in lines:
        try:
            hits.append(msgspec.json.decode(line, type=SpooledInjection))
        except msgspec.MsgspecError:
            continue  # a hook that was killed while it wrote
    return hits


def _shown(
    injections: Sequence[SpooledInjection], turns: Sequence[TimedStep], beliefs: LessonBeliefs
) -> list[Injection]:
    texts: dict[str, Lesson | None] = {}
    shown = []
    for each in injections:
        turn = sum(0 < turn.at_ms <= each.at for turn in turns)
        for one in each.lessons:
            if one.lesson_id not in texts:
                texts[one.lesson_id] = beliefs.lesson(one.lesson_id)
            if (lesson := texts[one.lesson_id]) is not None:
                shown.append(Injection(each.injection_id, lesson, turn))
    return shown


def read_transcript(transcript: object, note: Callable[[str], None]) -> list[TimedStep]:
    """What a coding agent's transcript holds: JSON lines of messages, each a text or a list of parts.

    Where there is no such file, a note says so, and what was injected is told all the same.
    """
    if not isinstance(transcript, str) or not Path(transcript).is_file():
        if transcript is not None:
            note(f"expected a transcript, found no file {transcript!r}")
        return []
    turns = []
    with Path(transcript).open(encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            try:
                record = json.loads(without_halves(line))
            except (ValueError, RecursionError):
                continue  # one that is written just now
            if isinstance(record, dict) and not any(record.get(name) is True for name in _OF_PROGRAMS):
                at_ms = _milliseconds(record.get("timestamp"))
                turns += [TimedStep(step, at_ms) for step in _steps(record)]
    return turns


def _steps(record: Mapping[str, Any]) -> Iterator[EpisodeStep]:
    inner = record.get("message")
    message: Mapping[str, Any] = inner if isinstance(inner, dict) else record
    speaker = "user" if message.get("role", record.get("type")) == "user" else "agent"
    content = message.get("content")
    if isinstance(content, str):
        yield EpisodeStep(_spoken_text(content), speaker)
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str):
            yield EpisodeStep(_spoken_text(part["text"]), speaker)
        elif part.get("type") == "tool_use":
            stated = part.get("input")
            given: Mapping[str, Any] = stated if isinstance(stated, dict) else {}
            texts = [value[:_LONGEST] for value in given.values() if isinstance(value, str)]
            files = tuple(given[name] for name in ("file_path", "path") if isinstance(given.get(name), str))
            yield EpisodeStep(" ".join(texts), "tool", tool=str(part.get("name", "")), files=files)
        elif part.get("type") == "tool_result":
            yield EpisodeStep(
                "", "tool", failed=bool(part.get("is_error")), output=str(part.get("content", ""))[:_LONGEST]
            )


def _spoken_text(text: str) -> str:
    return _TAGGED.sub(" ", text[:_LONGEST])


def _milliseconds(stamp: object) -> int:
    if not isinstance(stamp, str):
        return 0
    try:
        return round(datetime.fromisoformat(stamp).timestamp() * MS)
    except ValueError:
        return 0
