"""Commands that say something of lessons to the topic: the updaters make it evidence within a second (LES-10)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.catalog.catalog import Catalog
from pipelines.domain.errors import InvalidLessonError, StoreError
from pipelines.domain.events import LessonChange, LessonEvent, LessonOutcome
from pipelines.domain.ids import principal_fingerprint
from pipelines.domain.lesson import (
    Conditions,
    Lesson,
    LessonKind,
    LessonPriority,
    LessonResult,
    LessonSource,
    LessonStatus,
)
from pipelines.domain.ranking import ANONYMOUS
from pipelines.feedback.events.producer import FeedbackProducer
from pipelines.feedback.fold.lessons import lesson_keys
from pipelines.feedback.settings import MS
from pipelines.learning.evidence import MICRO, Evidence, day_of
from pipelines.learning.lessons.beliefs import LessonBelief, LessonBeliefs, read_lessons
from pipelines.lessons.gate import problem_of
from pipelines.lessons.markdown import from_markdown
from pipelines.lessons.migration import migrate
from pipelines.runtime.clock import system_clock
from pipelines.serving.console.options import AsJson, Bootstrap, CommonOptions, require_store, store_command
from pipelines.serving.console.terminal import login, print_lines, reading, stdout, visible
from pipelines.serving.lessons.view import live_lessons
from pipelines.settings import Settings

LessonArgument = Annotated[str, typer.Argument(help="Id of a lesson; its first digits are enough.")]
Why = Annotated[str | None, typer.Option("--why", help="In words, for whoever looks at its history.")]
By = Annotated[str | None, typer.Option("--principal", help="Who says so; default the name you are logged in by.")]
Session = Annotated[
    str | None, typer.Option("--session", help="The conversation that it was said in; default one of the lesson's own.")
]


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who says something, and by which producer."""

    producer: FeedbackProducer
    principal: str
    session: str | None

    def session_of(self, lesson_id: str) -> str:
        """The session that is named, or else one of the lesson's own: what is said of it stays in order."""
        return self.session or f"lesson-{lesson_id}"


@contextmanager
def speaking(settings: Settings, principal: str | None, session: str | None) -> Iterator[Speaker]:
    """Whoever speaks; what was said is acknowledged when the block is left."""
    with closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer:
        yield Speaker(producer, principal or login() or ANONYMOUS, session)
        producer.flush()


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


def after(settings: Settings, evidence: Evidence, event: LessonEvent) -> LessonBeliefs:
    """What will be believed once the updaters have read an event."""
    at_ms, priors = round(system_clock() * MS), settings.priors
    keys = lesson_keys(event, at_ms, principal=principal_fingerprint(event.principal))
    facts = evidence + Evidence(usage=dict.fromkeys(keys, MICRO))
    level, cap = priors.interval.level, priors.robustness.effective_cap
    return read_lessons(priors.lessons, facts, day_of(at_ms / MS), effective_cap=cap, level=level)


@store_command
def add(
    text: Annotated[str, typer.Argument(help="What to do, or not to, in one line.")],
    options: CommonOptions,
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
    principal: By = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
    as_json: AsJson = False,
) -> None:
    """Say a lesson; said by others before, it is said once more. Prints its id.

    Vague advice is said all the same, and stderr says what is wrong with it. Secrets and personal data are refused.
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
    root = require_store(settings)
    problem = problem_of(lesson, settings.lessons)
    if problem is not None and problem.reason == "sensitive":
        raise InvalidLessonError([problem.detail])
    if problem is not None:
        sys.stderr.write(visible(f"weft: {problem.detail}; it is said all the same") + "\n")
    parent = None if revises is None else lesson_of(live_lessons(Catalog(root), settings), revises).id
    with speaking(settings, principal, session) as speaker:
        of, by = speaker.session_of(lesson.id), speaker.principal
        if parent is None:
            event_id = speaker.producer.lesson_added(of, lesson, principal=by, why=why)
        else:
            event_id = speaker.producer.lesson_revised(of, parent, lesson, principal=by, why=why)
    facts = {"lesson_id": lesson.id, "event_id": event_id, "session": of, "principal": by, "revises": parent}
    print_lines([facts]) if as_json else stdout.out(lesson.id)


@store_command
def validate(
    lesson: LessonArgument,
    options: CommonOptions,
    *,
    why: Why = None,
    principal: By = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
    as_json: AsJson = False,
) -> None:
    """Say that a lesson is right: your last word on it holds, and outranks what is detected."""
    _judge(options, lesson, LessonResult.CONFIRMATION, (why, principal, session, bootstrap), as_json=as_json)


@store_command
def contradict(
    lesson: LessonArgument,
    options: CommonOptions,
    *,
    why: Why = None,
    principal: By = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
    as_json: AsJson = False,
) -> None:
    """Say that a lesson is wrong: it retires at once, unless more people say that it is right."""
    _judge(options, lesson, LessonResult.CONTRADICTION, (why, principal, session, bootstrap), as_json=as_json)


@store_command
def retire(
    lesson: LessonArgument,
    options: CommonOptions,
    *,
    why: Why = None,
    principal: By = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
    as_json: AsJson = False,
) -> None:
    """Say that a lesson is no longer needed: it is kept, with all that came of it, and never injected."""
    _change(options, lesson, {"op": "retire"}, (why, principal, session, bootstrap), as_json=as_json)


@store_command
def restore(
    lesson: LessonArgument,
    options: CommonOptions,
    *,
    why: Why = None,
    principal: By = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
    as_json: AsJson = False,
) -> None:
    """Take a word against a lesson back: what came of it says again what may be done with it."""
    _change(options, lesson, {"op": "restore"}, (why, principal, session, bootstrap), as_json=as_json)


@store_command
def merge(
    lesson: LessonArgument,
    into: Annotated[str, typer.Argument(help="Id of the lesson that means the same, and stays.")],
    options: CommonOptions,
    *,
    why: Why = None,
    principal: By = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
    as_json: AsJson = False,
) -> None:
    """Say that two lessons are one: both are believed by what came of either, and one of them is shown."""
    _change(options, lesson, {"op": "alias", "other": into}, (why, principal, session, bootstrap), as_json=as_json)


@store_command
def apart(
    lesson: LessonArgument,
    other: Annotated[str, typer.Argument(help="Id of the lesson that does not mean the same.")],
    options: CommonOptions,
    *,
    why: Why = None,
    principal: By = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
    as_json: AsJson = False,
) -> None:
    """Say that two lessons are not one: each is believed by what came of itself, as before they were merged."""
    _change(options, lesson, {"op": "apart", "other": other}, (why, principal, session, bootstrap), as_json=as_json)


_Saying = tuple[str | None, str | None, str | None, str | None]
"""Why, by whom, in which session, to which broker."""


def _judge(options: CommonOptions, name: str, result: LessonResult, saying: _Saying, *, as_json: bool) -> None:
    def facts(stamp: dict[str, Any], belief: LessonBelief, why: str | None) -> LessonEvent:
        return LessonOutcome(**stamp, lesson_id=belief.id, outcome=result, origin="person", why=why)

    _say(options, name, saying, facts, as_json=as_json)


def _change(options: CommonOptions, name: str, change: dict[str, Any], saying: _Saying, *, as_json: bool) -> None:
    def facts(stamp: dict[str, Any], belief: LessonBelief, why: str | None) -> LessonEvent:
        return LessonChange(**stamp, **change, lesson_id=belief.id, why=why)

    if "other" in change:
        settings = options.settings()
        change = {
            **change,
            "other": lesson_of(live_lessons(Catalog(require_store(settings)), settings), change["other"]).id,
        }
    _say(options, name, saying, facts, as_json=as_json)


def _say(
    options: CommonOptions,
    name: str,
    saying: _Saying,
    event_of: Callable[[dict[str, Any], LessonBelief, str | None], LessonEvent],
    *,
    as_json: bool,
) -> None:
    why, principal, session, bootstrap = saying
    settings = options.settings(bootstrap=bootstrap)
    catalog = Catalog(require_store(settings))
    before = lesson_of(live_lessons(catalog, settings), name)
    with speaking(settings, principal, session) as speaker:
        event = speaker.producer.say(
            speaker.session_of(before.id), speaker.principal, lambda stamp: event_of(stamp, before, why)
        )
    then = after(settings, catalog.live_evidence(), event).of(before.id)
    assert then is not None  # it was there before
    facts = {"lesson_id": before.id, "event_id": event.event_id, "before": _short(before), "after": _short(then)}
    if as_json:
        print_lines([facts])
        return
    stdout.out(visible(f"{before.id}: {_line(before)} → {_line(then)}: {then.reason}"))


def _short(belief: LessonBelief) -> dict[str, object]:
    return {"p_good": round(belief.p_good, 4), "status": belief.status.value, "reason": belief.reason}


def _line(belief: LessonBelief) -> str:
    return f"{belief.status.value} {belief.p_good:.2f}"


@dataclass(frozen=True, slots=True)
class LessonFile:
    """What a file says of lessons.

    Attributes:
        revised: By the id of a lesson, the id of the one that it is said instead of.
        retired: Ids of those that were out of use.
        problems: What is wrong, by the number of its line or record.
    """

    lessons: Sequence[Lesson]
    problems: Sequence[tuple[int, str]]
    revised: Mapping[str, str] = field(default_factory=dict)
    retired: frozenset[str] = frozenset()


def read_file(path: Path, *, older: bool) -> LessonFile:
    """The lessons of a page of Markdown, of JSON lines, or of an older store's file.

    Raises:
        SourceError: It cannot be read.
    """
    with reading(path):
        text = path.read_text(encoding="utf-8")
    if older:
        report = migrate(text)
        retired = frozenset(each.lesson.id for each in report.lessons if each.status is LessonStatus.RETIRED)
        problems = sorted([*report.rejected, *report.warnings])
        return LessonFile([each.lesson for each in report.lessons], problems, retired=retired)
    if path.suffix.lower() in {".md", ".markdown"}:
        page = from_markdown(text)
        return LessonFile(page.lessons, page.problems, {str(one): str(other) for one, other in page.revised.items()})
    lessons: list[Lesson] = []
    wrong: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            lessons.append(Lesson.from_json(line))
        except InvalidLessonError as error:
            wrong.append((number, str(error)))
    return LessonFile(lessons, wrong)


def send_all(settings: Settings, file: LessonFile, *, principal: str | None, session: str | None) -> None:
    """Say what a file says."""
    with speaking(settings, principal, session) as speaker:
        by, producer = speaker.principal, speaker.producer
        for each in file.lessons:
            of = speaker.session_of(each.id)
            if (parent := file.revised.get(each.id)) is not None:
                producer.lesson_revised(of, parent, each, principal=by)
            else:
                # Imported twice within a day, it is said once.
                event_id = f"import-{principal_fingerprint(by)}-{each.id}"
                producer.lesson_added(of, each, principal=by, event_id=event_id)
            if each.id in file.retired:
                producer.lesson_retired(of, each.id, principal=by, why="it was out of use where it came from")
