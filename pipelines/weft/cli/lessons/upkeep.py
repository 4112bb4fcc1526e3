"""`weft lessons`: what needs the store itself, or everything that is believed of lessons (LES-10)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from weft.app.lessons.operations import LessonSender
from weft.app.lessons.view import with_texts
from weft.cli.console.options import Bootstrap, CommonOptions, Principal, ServedOptions, command
from weft.cli.console.output import Result, rows
from weft.cli.console.terminal import note, reading
from weft.cli.lessons import hook
from weft.cli.lessons.listing import Session, Status
from weft.cli.lessons.reading import beliefs_of
from weft.cli.lessons.telling import sender_for
from weft.domain.errors import InvalidLessonError
from weft.domain.ids import principal_fingerprint
from weft.domain.lesson import Lesson, LessonStatus
from weft.learning.lessons.measures import confidence_bands
from weft.lessons.markdown import from_markdown, to_markdown
from weft.lessons.sensitive import require_storable
from weft.settings import Settings


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


@command
def calibration(options: CommonOptions) -> Result:
    """How often lessons were good, by the P(good) that they were injected with; and what to make of it."""
    beliefs = beliefs_of(options.settings())
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


@command
def export_lessons(options: CommonOptions, status: Status = None) -> Result:
    """All lessons as a page of Markdown that `import` reads, edited or not; or as JSON lines with what is believed."""
    every = [row for row in with_texts(beliefs_of(options.settings())) if status in {None, row[0].status}]
    every.sort(key=lambda row: (row[1].section, -row[0].p_good))
    retired = {text.id for of, text in every if of.status is LessonStatus.RETIRED}
    return Result(
        ({**text.as_fields(), "p_good": round(of.p_good, 4), "status": of.status.value} for of, text in every),
        [to_markdown((text for _, text in every), retired).removesuffix("\n")],
    )


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
    of_store = list(with_texts(beliefs_of(settings)))
    retired = {str(belief.id) for belief, _ in of_store if belief.status is LessonStatus.RETIRED}
    return {belief.id: lesson for belief, lesson in of_store}, retired


COMMANDS: Mapping[str, Callable[..., None]] = {
    "hook": hook_,
    "calibration": calibration,
    "export": export_lessons,
    "import": import_lessons,
}
"""By their names."""
