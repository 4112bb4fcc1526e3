"""Lessons as a page that a person reads and edits, and back (LES-10).

A heading names a section, a list item is a lesson, and items below it state what else is known of it. What is left out
has its default, so that a plain list of sentences is a page of lessons, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from weft.domain.errors import InvalidLessonError
from weft.domain.lesson import Lesson, LessonId, one_line
from weft.lessons.sensitive import require_storable

TITLE = "# Lessons"
_SECTION = re.compile(r"#{1,6}\s+(?P<name>.+?)\s*#*")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,3}[.)]) (?P<text>.*)")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_FIELD = re.compile(
    r"(?P<name>id|status|kind|priority|source|tools|files|actions|words|missed|reasoning|span): (?P<value>.*)"
)
_LISTS = ("tools", "files", "actions", "words")
_PLAIN = re.compile(r"[^,\[\]\"'`\s](?:[^,\[\]\"`]*[^,\[\]\"'`\s])?")
_GENERAL = "general"
_RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class ReadPage:
    """What a page says."""

    lessons: tuple[Lesson, ...]  # in their order
    # by the id of a lesson whose text or conditions were edited, the id that it had
    revised: Mapping[LessonId, LessonId]
    problems: tuple[tuple[int, str], ...]  # line from 1, and what is wrong there; everything else is read
    retired: frozenset[LessonId] = frozenset()  # ids of those that are out of use


def to_markdown(lessons: Iterable[Lesson], retired: Collection[LessonId] = ()) -> str:
    """A page of lessons by section, sections and lessons in the order in which they come first."""
    sections: dict[str, list[str]] = {}
    for lesson in lessons:
        sections.setdefault(lesson.section, []).append(_item(lesson, retired=lesson.id in retired))
    parts = [TITLE, *(f"## {section}\n\n" + "\n".join(items) for section, items in sections.items())]
    return "\n\n".join(parts) + "\n"


def from_markdown(text: str) -> ReadPage:
    r"""The lessons of a page: those that `to_markdown` wrote, as they were; and those of a person.

    Examples:
        >>> page = from_markdown("## Git\n- Sign every commit\n- Never force-push\n  - priority: high\n")
        >>> [(lesson.section, lesson.content, lesson.priority.value) for lesson in page.lessons]
        [('git', 'Sign every commit', 'medium'), ('git', 'Never force-push', 'high')]
    """
    reader = _PageReader()
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        reader.read(number, line)
    return reader.page()


class _PageReader:
    """Reads a page line by line; the lesson that was begun ends where another begins, or a section."""

    def __init__(self) -> None:
        self._section = _GENERAL
        self._lessons: list[Lesson] = []
        self._revised: dict[LessonId, LessonId] = {}
        self._retired: set[LessonId] = set()
        self._problems: list[tuple[int, str]] = []
        self._stated: dict[str, object] | None = None
        self._line = self._indent = 0
        self._fenced = False

    def read(self, number: int, line: str) -> None:
        """One line more."""
        if _FENCE.match(line):
            self._fenced = not self._fenced
        elif self._fenced:
            return  # code is no lesson
        elif heading := _SECTION.fullmatch(line):
            self._end()
            self._section = _slug(heading["name"])
        elif item := _ITEM.fullmatch(line):
            indent = len(item["indent"].expandtabs(4))
            if self._stated is not None and indent > self._indent:
                if problem := _state(self._stated, item["text"]):
                    self._problems.append((number, f"{problem}: write it as an exported page has it"))
            else:
                self._end()
                self._line, self._indent = number, indent
                self._stated = {"section": self._section, "content": item["text"]}
        elif self._stated is not None and line.strip() and line[:1] in " \t":
            # A long sentence, wrapped by an editor.
            self._stated["content"] = f"{self._stated['content']} {line.strip()}"

    def page(self) -> ReadPage:
        """What was read."""
        self._end()
        return ReadPage(tuple(self._lessons), self._revised, tuple(self._problems), frozenset(self._retired))

    def _end(self) -> None:
        if self._stated is None:
            return
        stated, self._stated = self._stated, None
        named, status = stated.pop("id", None), stated.pop("status", None)
        if status not in {None, _RETIRED}:
            self._problems.append((self._line, f"status: expected {_RETIRED}, or no status, found {status!r}"))
        try:
            lesson = Lesson.from_fields(stated)
            require_storable(lesson)
        except InvalidLessonError as error:
            self._problems.extend((self._line, problem) for problem in error.problems)
            return
        self._lessons.append(lesson)
        if status == _RETIRED:
            self._retired.add(lesson.id)
        if named is not None and named != lesson.id:
            self._revised[lesson.id] = LessonId(str(named))


def _item(lesson: Lesson, *, retired: bool) -> str:
    lines = [f"- {lesson.content}", f"  - id: {lesson.id}", *([f"  - status: {_RETIRED}"] if retired else [])]
    stated = {"kind": lesson.kind.value, "priority": lesson.priority.value, "source": lesson.source.value}
    lines += [f"  - {name}: {value}" for name, value in stated.items()]
    lines += [f"  - {name}: {_listed(values)}" for name in _LISTS if (values := getattr(lesson.conditions, name))]
    texts = {"missed": lesson.missed, "reasoning": lesson.reasoning, "span": lesson.span}
    lines += [f"  - {name}: {_quoted(value)}" for name, value in texts.items() if value is not None]
    return "\n".join(lines)


def _listed(values: Sequence[str]) -> str:
    plain = all(_PLAIN.fullmatch(value) for value in values)
    return ", ".join(values) if plain else json.dumps(list(values), ensure_ascii=False)


def _quoted(text: str) -> str:
    return text if text == one_line(text) and not text.startswith('"') else json.dumps(text)


def _state(stated: dict[str, object], text: str) -> str | None:
    """Takes over what a line states, or says what is wrong with it."""
    if (field := _FIELD.fullmatch(text)) is None:
        return f"expected a field, found {text[:40]!r}"
    name, value = field["name"], field["value"].strip()
    try:
        if name in _LISTS:
            values = json.loads(value) if value.startswith("[") else [part.strip() for part in value.split(",")]
            stated["conditions"] = {**_conditions(stated), name: values}
        else:
            stated[name] = json.loads(value) if value.startswith('"') else value
    except ValueError as error:
        return f"{name}: expected JSON or plain text, found {value[:40]!r} ({error})"
    return None


def _conditions(stated: Mapping[str, object]) -> Mapping[str, object]:
    conditions = stated.get("conditions")
    return conditions if isinstance(conditions, dict) else {}


def _slug(name: str) -> str:
    """A section's name of a heading.

    Examples:
        >>> _slug("API design & errors")
        'api-design-errors'
    """
    if name == TITLE.removeprefix("# "):
        return _GENERAL
    return re.sub(r"[^a-z0-9_.]+", "-", name.lower()).strip("-_.") or _GENERAL
