"""`weft lessons`: what agents are told, how sure that is, and what came of it (LES-10)."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from weft.app.lessons.operations import lesson_of, lesson_sender
from weft.app.lessons.pairs import open_pairs
from weft.app.lessons.view import lesson_document, live_lessons, noted, prompted, to_review, with_texts
from weft.catalog.catalog import Catalog
from weft.cli.console.options import Bootstrap, CommonOptions, Limit, Principal, command
from weft.cli.console.output import Result, Shown, rows
from weft.cli.console.terminal import moment, note, reading, visible
from weft.cli.lessons import hook, telling
from weft.cli.lessons.telling import LessonArgument, Session, first_event_notes
from weft.domain.errors import InvalidLessonError
from weft.domain.ids import principal_fingerprint
from weft.domain.lesson import Lesson, LessonResult, LessonStatus, one_line
from weft.learning.lessons.beliefs import LessonBelief, LessonBeliefs
from weft.learning.lessons.measures import confidence_bands
from weft.learning.lessons.rows import LessonNote
from weft.lessons.finding import ToolUse
from weft.lessons.markdown import from_markdown, to_markdown
from weft.lessons.sensitive import require_storable
from weft.settings import Settings, require_store


@dataclass(frozen=True, slots=True)
class LessonFile:
    """What a file says of lessons."""

    lessons: Sequence[Lesson]
    problems: Sequence[tuple[int, str]]  # what is wrong, by the number of its line
    # by the id of a lesson, the id of the one that it is said instead of
    revised: Mapping[str, str] = field(default_factory=dict)
    retired: frozenset[str] = frozenset()  # ids of those that were out of use

    def beyond(self, existing: Mapping[str, Lesson], retired: Collection[str]) -> LessonFile:
        """Without the lessons that stand there as the store has them: a page that comes back says nothing again."""

        def unchanged(lesson: Lesson) -> bool:
            return existing.get(lesson.id) == lesson and (lesson.id in self.retired) == (lesson.id in retired)

        return replace(self, lessons=[each for each in self.lessons if not unchanged(each)])


def read_file(path: Path) -> LessonFile:
    """The lessons of a page of Markdown, or of JSON lines.

    Raises:
        SourceError: It cannot be read.
    """
    with reading(path):
        text = path.read_text(encoding="utf-8")
    if path.suffix.lower() in {".md", ".markdown"}:
        page = from_markdown(text)
        revised = {str(one): str(other) for one, other in page.revised.items()}
        return LessonFile(page.lessons, page.problems, revised, page.retired)
    lessons: list[Lesson] = []
    wrong: list[tuple[int, str]] = []
    out_of_use: set[str] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            lesson = Lesson.from_json(line)
            require_storable(lesson)
            lessons.append(lesson)
            if json.loads(line).get("status") == LessonStatus.RETIRED.value:
                out_of_use.add(lesson.id)
        except InvalidLessonError as error:
            wrong.append((number, str(error)))
    return LessonFile(lessons, wrong, retired=frozenset(out_of_use))


def send_all(settings: Settings, file: LessonFile, *, principal: str | None, session: str | None) -> None:
    """Say what a file says."""
    with lesson_sender(settings, principal, session) as sender:
        by, producer = sender.principal, sender.producer
        for each in file.lessons:
            of = sender.session_of(each.id)
            if (parent := file.revised.get(each.id)) is not None:
                producer.lesson_revised(of, parent, each, principal=by)
            else:
                # Imported twice within a day, it is said once.
                event_id = f"import-{principal_fingerprint(by)}-{each.id}"
                producer.lesson_added(of, each, principal=by, event_id=event_id)
            if each.id in file.retired:
                producer.lesson_retired(of, each.id, principal=by, why="it was out of use where it came from")


lessons = typer.Typer(no_args_is_help=True, help="Lessons for agents: how sure each is, and what came of it.")
for _name, _word in telling.COMMANDS.items():
    lessons.command(_name)(_word)

_COLUMNS = ("id", "status", "P(good)", "±", "said", "shown", "+", "−", "section", "content")

Status = Annotated[LessonStatus | None, typer.Option("--status", help="Only those of this status.")]


@lessons.command("list")
@command
def list_lessons(
    options: CommonOptions,
    status: Status = None,
    section: Annotated[str | None, typer.Option("--section", help="Only those of this section.")] = None,
    limit: Limit = 100,
) -> Result:
    """Every lesson that has a text, the surest first."""
    beliefs = _beliefs(options.settings())
    listed = [
        (belief, text)
        for belief, text in with_texts(beliefs)
        if status in {None, belief.status} and section in {None, text.section}
    ]
    listed.sort(key=lambda row: (-row[0].p_good, row[0].id))
    return rows(
        listed[:limit],
        document=lambda row: lesson_document(*row),
        columns=_COLUMNS,
        texts=lambda row: _texts(*row),
        after=[f"{len(listed):,} lessons"],
    )


@lessons.command()
@command
def review(options: CommonOptions, limit: Limit = 20) -> Result:
    """Lessons that a person could decide on, the least sure first, of equals the newest; then pairs about the same."""
    settings = options.settings()
    beliefs = _beliefs(settings)
    pairs = list(open_pairs(beliefs, settings))
    open_ = to_review(beliefs)
    documents = [{**lesson_document(belief, text), "can": _can(belief)} for belief, text in open_[:limit]]

    def shown() -> Iterator[Shown]:
        for belief, text in open_[:limit]:
            yield visible(f"{belief.id}  {text.content}")
            yield f"    {belief.reason}; {_outcomes(belief)}; from {belief.source.value}"
            yield f"    {'  |  '.join(_can(belief))}"
        for pair in pairs[:limit]:
            yield visible(f"{pair.lesson.id}  {pair.lesson.content}")
            yield visible(f"    {pair.says} {pair.other.id}  {pair.other.content}: {pair.comparison.why}")
            yield f"    {'  |  '.join(pair.commands)}"
        yield f"{len(open_):,} lessons and {len(pairs):,} pairs to review"

    return Result([*documents, *(pair.as_fields() for pair in pairs[:limit])], shown())


@lessons.command()
@command
def show(lesson: LessonArgument, options: CommonOptions) -> Result:
    """A lesson, what is believed of it and why, and its whole history: when, by whom, from which conversation."""
    beliefs = _beliefs(options.settings())
    belief = lesson_of(beliefs, lesson)
    text, history = beliefs.lesson(belief.id), beliefs.history(belief.id)
    noted = [noted(each) for each in history]
    facts = {**lesson_document(belief, text), "history": noted}
    return Result([facts], _page(belief, text, history))


def _page(belief: LessonBelief, text: Lesson | None, history: Iterable[LessonNote]) -> Iterator[Shown]:
    shown = "(its text was forgotten, or nobody said it)" if text is None else f"{text.section}: {text.content}"
    yield visible(f"{belief.id}  {shown}")
    if text is not None:
        yield visible(f"  {text.kind.value}, priority {belief.priority.value}, {_conditions(text)}")
    of = f"{belief.status.value}: {belief.reason}"
    sure = f"P(good) {belief.p_good:.2f} [{belief.lower:.2f}, {belief.upper:.2f}], first {belief.prior:.2f}"
    yield visible(f"  {of}; {sure}")
    yield visible(f"  said {_times(belief.sayings)}, injected {_times(belief.injected)}, {_outcomes(belief)}")
    yield from (visible(_story(each, belief.id)) for each in history)


@lessons.command()
@command
def prompt(
    options: CommonOptions,
    *,
    tool: Annotated[str, typer.Option("--tool", help="Tool that is about to be used.")] = "",
    file: Annotated[list[str] | None, typer.Option("--file", help="File that it touches; repeatable.")] = None,
    context: Annotated[str, typer.Option("--context", help="What is done, and why.")] = "",
    budget: Annotated[int | None, typer.Option("--budget", min=0, help="Tokens at most.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say of each why it is there.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Tell the topic that they were injected.")] = False,
    seed: Annotated[int | None, typer.Option("--seed", help="Of what is drawn of lessons on trial.")] = None,
    principal: Principal = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
) -> Result:
    """What an agent is told before it uses a tool, within a budget of tokens; nothing where nothing fits."""
    settings = options.settings(bootstrap=bootstrap)
    use = ToolUse(tool, tuple(file or ()), context)
    rng = random.Random(seed)  # noqa: S311 - it draws what is tried, and keeps no secret
    told = prompted(_beliefs(settings), settings, use, budget=budget, rng=rng)
    injection = None
    if record and told.shown:
        injection = uuid.uuid4().hex
        with lesson_sender(settings, principal, session) as sender:
            sender.producer.lessons_injected(
                sender.session or f"injection-{injection}",
                injection,
                told.injected(),
                principal=sender.principal,
                tool=tool or None,
            )
    facts = told.to_dict(injection)
    whys = [visible(f"{each['lesson_id']}: {each['why']}") for each in facts["lessons"] if explain]
    return Result([facts], [*([told.form.text] if told.form.text else []), *whys])


@lessons.command("hook")
@command
def hook_(
    options: CommonOptions,
    *,
    budget: Annotated[int | None, typer.Option("--budget", min=0, help="Tokens at most.")] = None,
    bootstrap: Bootstrap = None,
) -> None:
    """Answer the hook of a coding agent: JSON on stdin, before a tool what fits it, at a stop what came of it."""
    stated = {"store": options.store, "budget": budget, "bootstrap": bootstrap}
    hook.answer([f"--{name}={value}" for name, value in stated.items() if value is not None])


@lessons.command()
@command
def calibration(options: CommonOptions) -> Result:
    """How often lessons were good, by the P(good) that they were injected with; and what to make of it."""
    beliefs = _beliefs(options.settings())
    return rows(
        list(confidence_bands(beliefs.calibration())),
        document=lambda row: dict(
            zip(("low", "high", "outcomes", "expected", "good", "status", "advice"), row, strict=True)
        ),
        columns=("P(good)", "outcomes", "expected", "good", "status", "recommendation"),
        texts=lambda row: (
            f"{row[0]:.1f}–{row[1]:.1f}",
            f"{row[2]:,}",
            "" if row[3] is None else f"{row[3]:.2f}",
            "" if row[4] is None else f"{row[4]:.2f}",
            row[5],
            row[6],
        ),
        after=[f"{source.value}: first confidence {mean:.2f}" for source, mean in beliefs.sources.items()],
    )


@lessons.command("export")
@command
def export_lessons(options: CommonOptions, status: Status = None) -> Result:
    """All lessons as a page of Markdown that `import` reads, edited or not; or as JSON lines with what is believed."""
    every = [row for row in with_texts(_beliefs(options.settings())) if status in {None, row[0].status}]
    every.sort(key=lambda row: (row[1].section, -row[0].p_good))
    retired = {text.id for of, text in every if of.status is LessonStatus.RETIRED}
    return Result(
        ({**text.as_fields(), "p_good": round(of.p_good, 4), "status": of.status.value} for of, text in every),
        [to_markdown((text for _, text in every), retired).removesuffix("\n")],
    )


@lessons.command("import")
@command
def import_lessons(
    file: Annotated[Path, typer.Argument(help="A page of Markdown (.md), or JSON lines, a lesson each.")],
    options: CommonOptions,
    *,
    principal: Principal = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what is wrong, and send nothing.")] = False,
) -> Result:
    """Say the lessons of a file; what is no lesson is named with its line and its errors, and stops nothing."""
    settings = options.settings(bootstrap=bootstrap)
    read = read_file(file)
    for number, problem in read.problems:
        note(f"{file}:{number}: {problem}")
    if not read.lessons and not read.problems:
        note(f"{file}: expected lessons, found none: a page has each behind a dash")
    unknown = read.beyond(*_existing(settings))
    if not dry_run and unknown.lessons:
        with first_event_notes(settings):
            send_all(settings, unknown, principal=principal, session=session)
    counts = {"lessons": len({each.id for each in read.lessons}), "revised": len(read.revised)}
    counts |= {"known": len(read.lessons) - len(unknown.lessons), "retired": len(read.retired)}
    counts |= {"problems": len(read.problems), "sent": bool(unknown.lessons) and not dry_run}
    return Result([counts])


def _existing(settings: Settings) -> tuple[dict[str, Lesson], set[str]]:
    """Lessons of the store by id, and which of them are out of use; none where there is no store yet."""
    if not Path(settings.storage.root).is_dir():
        return {}, set()
    of_store = list(with_texts(_beliefs(settings)))
    retired = {str(belief.id) for belief, _ in of_store if belief.status is LessonStatus.RETIRED}
    return {belief.id: lesson for belief, lesson in of_store}, retired


def _beliefs(settings: Settings) -> LessonBeliefs:
    return live_lessons(Catalog(require_store(settings)), settings)


def _texts(belief: LessonBelief, text: Lesson) -> Sequence[str]:
    helpful, harmful = _sides(belief)
    spread = f"{(belief.upper - belief.lower) / 2:.2f}"
    numbers = (f"{belief.p_good:.2f}", spread, str(belief.sayings), str(belief.injected), str(helpful), str(harmful))
    return (belief.id, belief.status.value, *numbers, text.section, text.content)


def _sides(belief: LessonBelief) -> tuple[int, int]:
    good = (LessonResult.SUCCESS, LessonResult.CONFIRMATION)
    helpful = sum(belief.counts[each] for each in good)
    return helpful, sum(belief.counts.values()) - helpful


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")


def _outcomes(belief: LessonBelief) -> str:
    came = ", ".join(f"{count} {result.value}" for result, count in belief.counts.items() if count)
    return f"came of it: {came or 'nothing yet'}"


def _can(belief: LessonBelief) -> list[str]:
    return [f"weft lessons {what} {belief.id}" for what in ("validate", "contradict", "retire", "show")]


def _conditions(text: Lesson) -> str:
    stated = text.as_fields().get("conditions", {})
    named = (f"{name} {', '.join(values)}" for name, values in stated.items())  # type: ignore[attr-defined]
    return "for " + "; ".join(named) if stated else "wherever its words fit"


_LINKS = {"alias": "is one with", "apart": "is not one with", "revise": "is said instead of"}


def _story(note: LessonNote, shown: str) -> str:
    about = [note.source and f"from {note.source}", note.origin and f"told by {note.origin}"]
    if note.what in _LINKS:
        about.insert(0, f"{note.lesson} {_LINKS[note.what]} {note.other}")
    elif note.lesson != shown:
        about.insert(0, f"of {note.lesson}")
    sayings = [note.span and f"“{note.span}”", note.why and one_line(note.why)]
    details = "; ".join(each for each in (*about, f"conversation {note.session}", *sayings) if each)
    return f"  {moment(note.at)}  {note.what} by {note.by}: {details}"
