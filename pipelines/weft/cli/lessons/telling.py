"""Commands that say something of lessons to the topic: the updaters make it evidence within a second (LES-10)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from weft.app.lessons.forgetting import forget_in_versions, what_remains
from weft.app.lessons.operations import (
    OPS,
    LessonSender,
    after,
    apply_operations,
    ensure_store_and_topic,
    lesson_of,
    lesson_sender,
    read_operations,
    say_operations,
)
from weft.app.lessons.view import live_lessons
from weft.catalog.catalog import Catalog
from weft.cli.console.options import Bootstrap, CommonOptions, Principal, ServedOptions, command
from weft.cli.console.output import Result
from weft.cli.console.terminal import note, reading
from weft.cli.lessons.listing import LessonArgument, Session
from weft.client.publisher import HttpPublisher
from weft.domain.errors import InvalidLessonError
from weft.domain.events import LessonChange, LessonEvent, LessonOutcome
from weft.domain.lesson import (
    Conditions,
    Lesson,
    LessonId,
    LessonKind,
    LessonPriority,
    LessonResult,
    LessonSource,
    LessonStatus,
    one_line,
)
from weft.feedback.events.lesson_events import lesson_text
from weft.feedback.events.producer import FeedbackProducer
from weft.feedback.run.partitions import states_in
from weft.learning.lessons.beliefs import LessonBelief, LessonBeliefs
from weft.lessons.duplicates import ConflictChecker
from weft.lessons.gate import in_english, problem_of
from weft.lessons.manager import LessonOperation, OperationKind
from weft.runtime.process import speaker_of
from weft.settings import Settings, require_store

_LONGEST_WHY = 2_000
_REFUSED = {"sensitive", "never_met"}  # whoever says it; other problems are named, and it is said all the same
_MOST_LOOKED_AT = 10_000  # lessons: a quarter of a second


def _reason(why: str | None) -> str | None:
    """A reason in one line; None where there is none."""
    stated = one_line(why or "")
    if len(stated) > _LONGEST_WHY:
        raise InvalidLessonError(
            [f"why: expected at most {_LONGEST_WHY:,} characters, found {len(stated):,}: shorten it"]
        )
    return stated or None


Why = Annotated[str | None, typer.Option("--why", help="In words, for whoever looks at its history.", callback=_reason)]

Say = Callable[[dict[str, Any], LessonBelief], LessonEvent]
"""Makes an event about a lesson, of what every event carries."""


@command
def add(
    text: Annotated[str, typer.Argument(help="What to do, or not to, in one line.")],
    options: ServedOptions,
    *,
    section: Annotated[str, typer.Option("--section", help="What it is about, such as testing.")] = "general",
    source: Annotated[LessonSource, typer.Option("--source", help="Where it comes from.")] = LessonSource.OTHER,
    kind: Annotated[LessonKind, typer.Option("--kind", help="What following it means.")] = LessonKind.PATTERN,
    priority: Annotated[LessonPriority, typer.Option("--priority")] = LessonPriority.MEDIUM,
    tool: Annotated[list[str] | None, typer.Option("--tool", help="Tool it is of use for; repeatable.")] = None,
    file: Annotated[list[str] | None, typer.Option("--file", help="Pattern of files, *.py; repeatable.")] = None,
    action: Annotated[list[str] | None, typer.Option("--action", help="Word for what is done; repeatable.")] = None,
    word: Annotated[list[str] | None, typer.Option("--word", help="Word of the context; repeatable.")] = None,
    missed: Annotated[str | None, typer.Option("--missed", help="The item that was missed.")] = None,
    why: Why = None,
    revises: Annotated[
        str | None, typer.Option("--revises", help="Id of the lesson that it is said instead of.")
    ] = None,
    principal: Principal = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
) -> Result:
    """Say a lesson; said by others before, it is said once more. Prints its id.

    Vague advice is said all the same, and stderr says what is wrong with it; also where agents are not told it for
    certain, such as one that somebody has contradicted. Secrets and personal data are refused, and so are conditions
    that can never be met.
    """
    conditions = Conditions(
        tools=tuple(tool or ()), files=tuple(file or ()), actions=tuple(action or ()), words=tuple(word or ())
    )
    lesson = Lesson(
        section=section,
        content=text,
        kind=kind,
        priority=priority,
        source=source,
        conditions=conditions,
        missed=missed,
        reasoning=why,
    )
    settings = options.settings(bootstrap=bootstrap)
    problem = problem_of(lesson, settings.lessons)
    if problem is not None and problem.reason in _REFUSED:
        raise InvalidLessonError([problem.detail])
    if problem is not None:
        note(f"weft: {problem.detail}; it is said all the same")
    parent = None
    if revises is not None:
        parent = lesson_of(live_lessons(Catalog(require_store(settings)), settings), revises).id
    with sender_for(options, settings, (principal, session, bootstrap), first=True) as sender:
        of, by, stated = sender.session_of(lesson.id), sender.principal, lesson_text(lesson)
        op: Literal["add", "revise"] = "add" if parent is None else "revise"
        event = sender.producer.say(
            of, by, lambda stamp: LessonChange(**stamp, op=op, lesson=stated, lesson_id=parent, why=why)
        )
    facts = {"lesson_id": lesson.id, "event_id": event.event_id, "session": of, "principal": by, "revises": parent}
    beliefs = after(settings, Catalog(Path(settings.storage.root)).live.evidence(), event)
    return Result([facts], [lesson.id], then=partial(_warn, lesson, beliefs, settings))


def _warn(lesson: Lesson, beliefs: LessonBeliefs, settings: Settings) -> None:
    """Say what keeps agents from being told a lesson, and what contradicts it."""
    then = beliefs.of(lesson.id)
    if then is not None and then.status is not LessonStatus.ACTIVE:
        note(f"weft: {_injection_note(then)}")
    if not in_english(lesson.content, settings.lessons):
        note(
            "weft: what contradicts a lesson is recognised in English alone: agents may be told this beside its "
            "opposite; `weft lessons list` shows what is there"
        )
    for other in _opposed(lesson, beliefs, settings):
        note(f"weft: {_conflict_note(lesson, other)}")


Saying = tuple[str | None, str | None, str | None]
"""By whom, in which session, to which broker."""


@contextmanager
def sender_for(
    options: ServedOptions, settings: Settings, saying: Saying, *, first: bool = False
) -> Iterator[LessonSender]:
    """Whoever says something, to the service of the store where one runs that takes feedback, else to the broker.

    Args:
        first: Whether it may be the first thing that is said of all: then a store and a topic are made for it.
    """
    principal, session, bootstrap = saying
    if (client := options.service({"--bootstrap": bootstrap}, feedback=True)) is not None:
        with client:
            producer = FeedbackProducer(HttpPublisher(client), key=settings.feedback.key)
            yield LessonSender(producer, speaker_of(principal), session)
            producer.flush()
        return
    with first_event_notes(settings) if first else nullcontext(), lesson_sender(settings, principal, session) as sender:
        yield sender


@contextmanager
def first_event_notes(settings: Settings) -> Iterator[None]:
    """Says what was made for the first thing that is said of all, and how agents are told it."""
    first = ensure_store_and_topic(settings)
    if first is not None and first.made is not None:
        note(f"weft: made a new store in {first.made}")
    yield
    if first is not None:
        note(f"weft: said; agents are told once updaters run: {first.updaters}")


@command
def merge(
    lesson: LessonArgument,
    into: Annotated[str, typer.Argument(help="Id of the lesson that means the same, and stays.")],
    options: ServedOptions,
    *,
    why: Why = None,
    principal: Principal = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
) -> Result:
    """Say that two lessons are one: both are believed by what came of either, and one of them is shown."""
    change = _linking(options, OperationKind.MERGE, lesson, into, why)
    return _say(options, lesson, change, (principal, session, bootstrap))


@command
def apart(
    lesson: LessonArgument,
    other: Annotated[str, typer.Argument(help="Id of the lesson that does not mean the same.")],
    options: ServedOptions,
    *,
    why: Why = None,
    principal: Principal = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
) -> Result:
    """Say that two lessons are not one: each is believed by what came of itself, as before they were merged."""
    change = _linking(options, OperationKind.KEEP_APART, lesson, other, why)
    return _say(options, lesson, change, (principal, session, bootstrap))


@command
def forget(
    lesson: LessonArgument,
    options: CommonOptions,
    *,
    why: Why = None,
    principal: Principal = None,
    bootstrap: Bootstrap = None,
) -> Result:
    """Take a lesson's text and history out of the store, and say what remains where, and until when.

    What came of it stays under its id, which says nothing of the text. Whoever says the same lesson again brings it
    back. A night that is under way may still write the text into its version: then forget it once more.
    """
    settings, catalog = options.opened(bootstrap=bootstrap)
    named = lesson_of(live_lessons(catalog, settings), lesson).id
    partitions = max((state.report().partitions for state in states_in(catalog.root, settings.feedback)), default=1)
    with lesson_sender(settings, principal, None) as sender:
        event_ids = sender.producer.lesson_forgotten(named, partitions=partitions, principal=sender.principal, why=why)
    erased, remains = forget_in_versions(catalog, named), what_remains(settings, named)
    facts = {"lesson_id": named, "event_ids": event_ids, "erased": erased, "remains": remains}
    return Result([facts], [f"{named}: its text is forgotten"], then=partial(_say_remains, erased, remains))


def _say_remains(erased: Mapping[str, int], remains: Mapping[str, str]) -> None:
    note(f"taken out of: {', '.join(f'{count:,} {what}' for what, count in erased.items())}")
    for where, until in remains.items():
        note(f"remains in {where}: {until}")


@command
def apply(
    file: Annotated[Path, typer.Argument(help="JSON lines, an operation each; - reads them from stdin.")],
    options: ServedOptions,
    *,
    principal: Principal = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what is wrong, and send nothing.")] = False,
) -> Result:
    """Add, revise, tag, merge, keep apart, retire and restore lessons; what is refused is named by its index.

    Exit code 1 where any was refused; the others are said all the same.
    """
    settings = options.settings(bootstrap=bootstrap)
    with reading(file):
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    read = read_operations(text)
    beliefs = live_lessons(Catalog(require_store(settings)), settings)
    applied = apply_operations(read.operations, beliefs, settings)
    if applied.accepted and not dry_run:
        with sender_for(options, settings, (principal, session, bootstrap)) as sender:
            say_operations(sender, applied.accepted)
    errors = sorted([*read.errors, *applied.errors], key=lambda each: each.index)
    outcome = {
        "accepted": [each.kind.value for each in applied.accepted],
        "errors": [{"index": each.index, "problem": each.problem} for each in errors],
        "conflicts": applied.conflicts,
        "proposals": applied.proposals,
        "sent": bool(applied.accepted) and not dry_run,
    }
    return Result([outcome], then=partial(_refuse, bool(errors)))


def _refuse(refused: bool) -> None:
    if refused:
        raise typer.Exit(1)


def _word(help_: str, say_of: Callable[[CommonOptions, str | None], Say]) -> Callable[..., None]:
    """A command by which somebody says one thing about one lesson."""

    def word(
        lesson: LessonArgument,
        options: ServedOptions,
        *,
        why: Why = None,
        principal: Principal = None,
        session: Session = None,
        bootstrap: Bootstrap = None,
    ) -> Result:
        return _say(options, lesson, say_of(options, why), (principal, session, bootstrap))

    word.__doc__ = help_
    return command(word)


def _judging(result: LessonResult) -> Callable[[CommonOptions, str | None], Say]:
    def say_of(_: CommonOptions, why: str | None) -> Say:
        return lambda stamp, belief: LessonOutcome(
            **stamp, lesson_id=belief.id, outcome=result, origin="person", why=why
        )

    return say_of


def _changing(op: str, why: str | None, **named: str) -> Say:
    return lambda stamp, belief: LessonChange(**stamp, **named, op=op, why=why, lesson_id=belief.id)  # type: ignore[arg-type]


def _linking(options: CommonOptions, kind: OperationKind, name: str, other: str, why: str | None) -> Say:
    """What is said of two lessons, where the skill manager accepts it."""
    settings, catalog = options.opened()
    beliefs = live_lessons(catalog, settings)
    one, two = (LessonId(lesson_of(beliefs, each).id) for each in (name, other))
    applied = apply_operations({0: LessonOperation(kind=kind, lesson_id=one, other_id=two)}, beliefs, settings)
    if applied.errors:
        raise InvalidLessonError([each.problem for each in applied.errors])
    return _changing(OPS[kind], why, other=two)


COMMANDS: Mapping[str, Callable[..., None]] = {
    "add": add,
    "validate": _word(
        "Say that a lesson is right: your last word on it holds, and outranks what is detected.",
        _judging(LessonResult.CONFIRMATION),
    ),
    "contradict": _word(
        "Say that a lesson is wrong: it retires at once, unless more people say that it is right.",
        _judging(LessonResult.CONTRADICTION),
    ),
    "retire": _word(
        "Say that a lesson is no longer needed: it is kept, with all that came of it, and never injected.",
        lambda _, why: _changing("retire", why),
    ),
    "restore": _word(
        "Take a word against a lesson back: what came of it says again what may be done with it.",
        lambda _, why: _changing("restore", why),
    ),
    "merge": merge,
    "apart": apart,
    "forget": forget,
    "apply": apply,
}
"""By their names."""


def _say(
    options: ServedOptions,
    name: str,
    event_of: Say,
    saying: Saying,
) -> Result:
    """Say one thing about a lesson, and show what that changes."""
    settings, catalog = options.opened(bootstrap=saying[-1])
    before = lesson_of(live_lessons(catalog, settings), name)
    with sender_for(options, settings, saying) as sender:
        event = sender.producer.say(
            sender.session_of(before.id), sender.principal, lambda stamp: event_of(stamp, before)
        )
    then = after(settings, catalog.live.evidence(), event).of(before.id)
    assert then is not None  # it was there before
    if then.status is LessonStatus.RETIRED and isinstance(event, LessonChange) and event.op == "restore":
        note(f"weft: {_injection_note(then)}")
    facts = {"lesson_id": before.id, "event_id": event.event_id, "before": _short(before), "after": _short(then)}
    return Result([facts], [f"{before.id}: {_line(before)} → {_line(then)}: {then.reason}"])


def _opposed(lesson: Lesson, beliefs: LessonBeliefs, settings: Settings) -> list[Lesson]:
    """What agents may be told that a lesson contradicts in half of its words or more; nothing where it is not told.

    Among very many lessons nothing is looked for: `weft lessons review` has such pairs.
    """
    if len(beliefs.ids) > _MOST_LOOKED_AT:
        return []
    injectable = {each.lesson.id: each.lesson for each in beliefs.injectable()}
    if lesson.id not in injectable:
        return []
    opposes = ConflictChecker(settings.lessons.duplicates, beliefs.separate)
    words = set(lesson.content.casefold().split())
    near = (
        each
        for each in injectable.values()
        if 2 * len(words.intersection(each.content.casefold().split())) >= len(words)
    )
    return [each for each in near if each.id != lesson.id and opposes(lesson, each)]


def _conflict_note(lesson: Lesson, other: Lesson) -> str:
    """What becomes of two lessons that contradict one another, and what changes that."""
    return (
        f"it contradicts {other.id}, {other.content!r}: agents are told the one of both that ranks higher; "
        f"`weft lessons contradict {other.id}` retires the other, `weft lessons apart {lesson.id} {other.id}` says "
        "that both hold"
    )


def _injection_note(belief: LessonBelief) -> str:
    """Whether agents are told a lesson that is not active, and what changes that."""
    frequency = "now and then" if belief.status is LessonStatus.NEEDS_VALIDATION else "never"
    helps = (
        f"`weft lessons show {belief.id}` says what came of it, `weft lessons validate {belief.id}` that it is right"
    )
    return f"agents are told this {frequency}: {belief.status.value}, {belief.reason}; {helps}"


def _short(belief: LessonBelief) -> dict[str, object]:
    return {"p_good": round(belief.p_good, 4), "status": belief.status.value, "reason": belief.reason}


def _line(belief: LessonBelief) -> str:
    return f"{belief.status.value} {belief.p_good:.2f}"
