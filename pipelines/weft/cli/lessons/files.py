"""Files of lessons: pages of Markdown, JSON lines, and what an older store left; read, and said to the topic."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft.app.lessons.lesson_sender import lesson_sender
from weft.cli.console.terminal import reading
from weft.domain.errors import InvalidLessonError
from weft.domain.ids import principal_fingerprint
from weft.domain.lesson import Lesson, LessonResult, LessonStatus
from weft.lessons.markdown import from_markdown
from weft.lessons.migration import migrate
from weft.lessons.sensitive.parts import require_storable
from weft.settings import Settings

_MOST_OUTCOMES = 100  # of a kind and lesson: more of one principal and day say no more (LRN-20)


@dataclass(frozen=True, slots=True)
class LessonFile:
    """What a file says of lessons."""

    lessons: Sequence[Lesson]
    problems: Sequence[tuple[int, str]]  # what is wrong, by the number of its line or record
    # by the id of a lesson, the id of the one that it is said instead of
    revised: Mapping[str, str] = field(default_factory=dict)
    retired: frozenset[str] = frozenset()  # ids of those that were out of use
    # by the id of a lesson, what was counted of it: how often it helped, and how often it harmed
    outcomes: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def beyond(self, existing: Mapping[str, Lesson], retired: Collection[str]) -> LessonFile:
        """Without the lessons that stand there as the store has them: a page that comes back says nothing again."""

        def unchanged(lesson: Lesson) -> bool:
            return existing.get(lesson.id) == lesson and (lesson.id in self.retired) == (lesson.id in retired)

        return replace(self, lessons=[each for each in self.lessons if not unchanged(each)])

    def counted(self, lesson_id: str) -> Iterator[tuple[LessonResult, int]]:
        """What was counted of a lesson, each outcome with its number, from 0; in proportion where there are many."""
        helped, harmed = self.outcomes.get(lesson_id, (0, 0))
        share = min(1.0, _MOST_OUTCOMES / max(1, helped, harmed))
        for result, count in ((LessonResult.SUCCESS, helped), (LessonResult.FAILURE, harmed)):
            yield from ((result, number) for number in range(round(count * share)))


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
        outcomes = {str(each.lesson.id): (each.helpful, each.harmful) for each in report.lessons}
        return LessonFile([each.lesson for each in report.lessons], problems, retired=retired, outcomes=outcomes)
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
            for result, number in file.counted(each.id):
                event_id = f"import-{principal_fingerprint(by)}-{each.id}-{result.value}-{number}"
                why = "it was counted where it came from"
                producer.lesson_outcome(of, each.id, result.value, principal=by, why=why, event_id=event_id)
            if each.id in file.retired:
                producer.lesson_retired(of, each.id, principal=by, why="it was out of use where it came from")
