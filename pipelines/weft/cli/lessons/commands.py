"""`weft lessons`: what agents are told, how sure that is, and what came of it (LES-10)."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.app.lessons.operations import LessonSender, lesson_page, lesson_sender
from weft.app.lessons.pairs import reviewed
from weft.app.lessons.view import listed, live_lessons, prompted, with_texts
from weft.catalog.catalog import Catalog
from weft.cli.console.options import Bootstrap, CommonOptions, Limit, Principal, ServedOptions, command
from weft.cli.console.output import Result, Shown, rows
from weft.cli.console.terminal import moment, note, reading, visible
from weft.cli.lessons import hook, telling
from weft.cli.lessons.telling import LessonArgument, Session, sender_for
from weft.client import calls
from weft.client.calls import MOST_LISTED, MOST_REVIEWED
from weft.domain.errors import InvalidLessonError
from weft.domain.ids import principal_fingerprint
from weft.domain.lesson import Lesson, LessonResult, LessonStatus, one_line
from weft.learning.lessons.beliefs import LessonBeliefs
from weft.learning.lessons.measures import confidence_bands
from weft.lessons.finding import ToolUse
from weft.lessons.markdown import from_markdown, to_markdown
from weft.lessons.sensitive import require_storable
from weft.runtime.process import speaker_of
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


def send_all(sender: LessonSender, file: LessonFile) -> None:
    """Say what a file says."""
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
    options: ServedOptions,
    status: Status = None,
    section: Annotated[str | None, typer.Option("--section", help="Only those of this section.")] = None,
    limit: Limit = 100,
) -> Result:
    """Every lesson that has a text, the surest first."""
    if (client := options.service({"--limit": limit > MOST_LISTED})) is not None:
        with client:
            stated = {"status": status and status.value, "section": section, "limit": limit}
            documents, total = client.send(calls.lessons(stated))
    else:
        documents, total = listed(_beliefs(options.settings()), status, section, limit)
    return rows(
        documents,
        document=lambda each: each,
        columns=_COLUMNS,
        texts=_texts,
        after=[f"{total:,} lessons"],
    )


@lessons.command()
@command
def review(options: ServedOptions, limit: Limit = 20) -> Result:
    """Lessons that a person could decide on, the least sure first, of equals the newest; then pairs about the same."""
    if (client := options.service({"--limit": limit > MOST_REVIEWED})) is not None:
        with client:
            open_ = client.send(calls.review(limit))
    else:
        settings = options.settings()
        open_ = reviewed(_beliefs(settings), settings, limit)
    documents = [{**each, "can": _can(each)} for each in open_["lessons"]]
    pairs = open_["pairs"]

    def shown() -> Iterator[Shown]:
        for each in documents:
            yield visible(f"{each['id']}  {each['content']}")
            yield visible(f"    {each['reason']}; {_outcomes(each)}; from {each['source']}")
            yield f"    {'  |  '.join(each['can'])}"
        for pair in pairs:
            yield visible(f"{pair['id']}  {pair['content']}")
            yield visible(f"    {pair['says']} {pair['other']}  {pair['other_content']}: {pair['why']}")
            yield f"    {'  |  '.join(pair['can'])}"
        yield f"{open_['open']:,} lessons and {open_['open_pairs']:,} pairs to review"

    return Result([*documents, *pairs], shown())


@lessons.command()
@command
def show(lesson: LessonArgument, options: ServedOptions) -> Result:
    """A lesson, what is believed of it and why, and its whole history: when, by whom, from which conversation."""
    if (client := options.service()) is not None:
        with client:
            facts = client.lesson(lesson)
    else:
        facts = lesson_page(_beliefs(options.settings()), lesson)
    return Result([facts], _page(facts))


def _page(facts: Mapping[str, Any]) -> Iterator[Shown]:
    has_text = "content" in facts
    shown = f"{facts['section']}: {facts['content']}" if has_text else "(its text was forgotten, or nobody said it)"
    yield visible(f"{facts['id']}  {shown}")
    if has_text:
        yield visible(f"  {facts['kind']}, priority {facts['priority']}, {_conditions(facts.get('conditions', {}))}")
    low, high = facts["interval"]
    sure = f"P(good) {facts['p_good']:.2f} [{low:.2f}, {high:.2f}], first {facts['first_confidence']:.2f}"
    yield visible(f"  {facts['status']}: {facts['reason']}; {sure}")
    yield visible(f"  said {_times(facts['said'])}, injected {_times(facts['injected'])}, {_outcomes(facts)}")
    yield from (visible(_story(each, facts["id"])) for each in facts["history"])


@lessons.command()
@command
def prompt(
    options: ServedOptions,
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
    own = {"--bootstrap": bootstrap, "--seed": seed is not None}
    if (client := options.service(own, feedback=record)) is not None:
        stated = {"tool": tool, "files": file or [], "context": context, "budget": budget, "record": record}
        with client:
            facts = client.send(
                calls.lesson_prompt({**stated, "principal": speaker_of(principal), "session_id": session})
            )
    else:
        facts = _prompted(
            options.settings(bootstrap=bootstrap),
            ToolUse(tool, tuple(file or ()), context),
            budget=budget,
            rng=random.Random(seed),  # noqa: S311 - it draws what is tried, and keeps no secret
            saying=(principal, session) if record else None,
        )
    whys = [visible(f"{each['lesson_id']}: {each['why']}") for each in facts["lessons"] if explain]
    return Result([facts], [*([facts["text"]] if facts["text"] else []), *whys])


def _prompted(
    settings: Settings,
    use: ToolUse,
    *,
    budget: int | None,
    rng: random.Random,
    saying: tuple[str | None, str | None] | None,  # by whom and in which session it is told; None where it is not
) -> dict[str, Any]:
    lessons_ = prompted(_beliefs(settings), settings, use, budget=budget, rng=rng)
    injection = None
    if saying is not None and lessons_.shown:
        injection = uuid.uuid4().hex
        with lesson_sender(settings, *saying) as sender:
            of, by = sender.session or f"injection-{injection}", sender.principal
            sender.producer.lessons_injected(of, injection, lessons_.injected(), principal=by, tool=use.tool or None)
    return lessons_.to_dict(injection)


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
    options: ServedOptions,
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
        with sender_for(options, settings, (principal, session, bootstrap), first=True) as sender:
            send_all(sender, unknown)
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


def _texts(facts: Mapping[str, Any]) -> Sequence[str]:
    low, high = facts["interval"]
    came = facts["outcomes"]
    helpful = sum(came.get(each.value, 0) for each in (LessonResult.SUCCESS, LessonResult.CONFIRMATION))
    counts = (facts["said"], facts["injected"], helpful, sum(came.values()) - helpful)
    numbers = (f"{facts['p_good']:.2f}", f"{(high - low) / 2:.2f}", *map(str, counts))
    return (facts["id"], facts["status"], *numbers, facts["section"], facts["content"])


def _times(count: int) -> str:
    return {0: "never", 1: "once"}.get(count, f"{count} times")


def _outcomes(facts: Mapping[str, Any]) -> str:
    came = ", ".join(f"{count} {result}" for result, count in facts["outcomes"].items() if count)
    return f"came of it: {came or 'nothing yet'}"


def _can(facts: Mapping[str, Any]) -> list[str]:
    return [f"weft lessons {what} {facts['id']}" for what in ("validate", "contradict", "retire", "show")]


def _conditions(stated: Mapping[str, Sequence[str]]) -> str:
    named = (f"{name} {', '.join(values)}" for name, values in stated.items())
    return "for " + "; ".join(named) if stated else "wherever its words fit"


_LINKS = {"alias": "is one with", "apart": "is not one with", "revise": "is said instead of"}


def _story(note: Mapping[str, Any], shown: str) -> str:
    source, origin, why = note.get("source"), note.get("origin"), note.get("why")
    about = [source and f"from {source}", origin and f"told by {origin}"]
    if note["what"] in _LINKS:
        about.insert(0, f"{note.get('lesson', '')} {_LINKS[note['what']]} {note.get('other', '')}")
    elif note.get("lesson", "") != shown:
        about.insert(0, f"of {note.get('lesson', '')}")
    sayings = [note.get("span") and f"“{note['span']}”", why and one_line(why)]
    details = "; ".join(each for each in (*about, f"conversation {note['session']}", *sayings) if each)
    return f"  {moment(note['at'])}  {note['what']} by {note['by']}: {details}"
