"""Files of lessons: pages of Markdown, JSON lines, and what an older store left; read, and said to the topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.domain.errors import InvalidLessonError
from pipelines.domain.ids import principal_fingerprint
from pipelines.domain.lesson import Lesson, LessonStatus
from pipelines.lessons.markdown import from_markdown
from pipelines.lessons.migration import migrate
from pipelines.serving.console.terminal import reading
from pipelines.serving.lessons.speaking import speaking
from pipelines.settings import Settings


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
