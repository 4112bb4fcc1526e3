"""Lessons: short, atomic pieces of procedural knowledge, named by their hash (LES-1).

What is here is content, which never changes. That a lesson exists, who says so and what comes of it is evidence;
status and confidence are read from that.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import UnionType
from typing import NewType, TypeVar

from weft.domain.errors import InvalidLessonError
from weft.domain.ids import normalise

_E = TypeVar("_E", bound=StrEnum)

LessonId = NewType("LessonId", str)
"""First 16 hex digits of the SHA-256 over section, normalised text and conditions."""

LONGEST_CONTENT = 600
"""Characters of a lesson's text: some 120 words."""

_LONGEST = {"section": 64, "content": LONGEST_CONTENT, "missed": 500, "reasoning": 2_000, "span": 2_000}
_MOST_CONDITIONS = 32
_LONGEST_CONDITION = 200
_SECTION = re.compile(r"[a-z0-9]+(?:[-_.][a-z0-9]+)*")


class LessonKind(StrEnum):
    """What following a lesson means."""

    CHECKLIST = "checklist"  # an item that is not to be missed
    PATTERN = "pattern"  # a way that works
    WARNING = "warning"  # a way that does not
    REQUIREMENT = "requirement"  # what a person or a project wants


class LessonPriority(StrEnum):
    """How much it matters that a lesson is followed."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class LessonSource(StrEnum):
    """Where a lesson comes from: its first confidence is a prior by source (LES-2)."""

    USER_CORRECTION = "user_correction"
    KNOWLEDGE_BLOCK = "knowledge_block"
    REPEATED_MISTAKE = "repeated_mistake"
    AGENT_INFERENCE = "agent_inference"
    SUGGESTION = "suggestion"
    OTHER = "other"


class LessonResult(StrEnum):
    """What came of a lesson: the `outcome` of `LessonOutcome` events (LES-4)."""

    SUCCESS = "success"
    CONFIRMATION = "confirmation"
    FAILURE = "failure"
    CONTRADICTION = "contradiction"


class LessonStatus(StrEnum):
    """What may be done with a lesson; read from its belief, never stored (LES-3)."""

    ACTIVE = "active"
    NEEDS_VALIDATION = "needs_validation"
    DORMANT = "dormant"
    RETIRED = "retired"


INJECTABLE = frozenset({LessonStatus.ACTIVE, LessonStatus.NEEDS_VALIDATION})
"""Dormant and retired lessons are there for audit, and never injected."""


def one_line(text: str) -> str:
    """The normalised form of a lesson's text: NFC, in one line, single blanks, without what steers a terminal."""
    return " ".join(normalise(text).translate(_CONTROLS).split())


# Also what has no width, or turns the direction of what follows: a text reads as it stands. (A table: a pattern of such
# characters takes milliseconds to compile, and hooks import this.)
_CONTROLS = dict.fromkeys(
    [
        *range(0x20),
        *range(0x7F, 0xA0),
        0x200B,
        0x200E,
        0x200F,
        *range(0x202A, 0x202F),
        0x2060,
        *range(0x2066, 0x206A),
        0xFEFF,
    ],
    " ",
)


_CONDITIONS = ("tools", "files", "actions", "words")


def _by_name(conditions: Conditions) -> dict[str, tuple[str, ...]]:
    return {name: getattr(conditions, name) for name in _CONDITIONS}


def _condition_problems(conditions: Conditions) -> Iterable[str]:
    for name, values in _by_name(conditions).items():
        if not isinstance(values, tuple) or not all(isinstance(value, str) for value in values):
            yield f"conditions.{name}: expected a list of texts, found {values!r}: state one text for each"
            continue
        if len(values) > _MOST_CONDITIONS:
            yield f"conditions.{name}: expected at most {_MOST_CONDITIONS}, found {len(values)}: name the telling ones"
        for value in values:
            if not 0 < len(value.strip()) <= _LONGEST_CONDITION:
                yield (
                    f"conditions.{name}: expected 1 to {_LONGEST_CONDITION} characters, found {value[:40]!r} of "
                    f"{len(value)}: name one thing"
                )


@dataclass(frozen=True, slots=True)
class Conditions:
    """When a lesson is of use; every tuple is sorted, each value once, so that equal conditions are equal values."""

    tools: tuple[str, ...] = ()  # names of tools, such as "Bash"; `*` stands for anything: "mcp__*"
    files: tuple[str, ...] = ()  # patterns of files, such as "*.py" or "migrations/**"
    actions: tuple[str, ...] = ()  # lower-case words that say what is done: "commit", "deploy"
    words: tuple[str, ...] = ()  # lower-case words that the context names: "database", "migration"

    def __post_init__(self) -> None:
        problems = list(_condition_problems(self))
        if problems:
            raise InvalidLessonError(problems)
        for name in _CONDITIONS:
            values = (one_line(value) for value in getattr(self, name))
            folded = (value.lower() if name in {"actions", "words"} else value for value in values)
            object.__setattr__(self, name, tuple(sorted(set(folded))))

    @property
    def empty(self) -> bool:
        """Whether nothing is asked for: such a lesson is found by meaning and words alone."""
        return not (self.tools or self.files or self.actions or self.words)


ANYWHERE = Conditions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One lesson, as it was said; InvalidLessonError names every problem of its values."""

    section: str  # what it is about, such as "testing": lower-case words joined by "-", "_" or "."
    content: str  # what to do, or not to, in one line of at most `LONGEST_CONTENT` characters
    kind: LessonKind = LessonKind.PATTERN
    priority: LessonPriority = LessonPriority.MEDIUM
    source: LessonSource = LessonSource.OTHER
    conditions: Conditions = ANYWHERE
    missed: str | None = None  # the item that was missed, where one was: a later failure names it
    reasoning: str | None = None  # why
    span: str | None = None  # the piece of a conversation that it came from, word for word
    id: LessonId = field(init=False)

    def __post_init__(self) -> None:
        for name in ("section", "content", "missed", "reasoning"):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, one_line(value) or (None if name in {"missed", "reasoning"} else ""))
        if problems := list(_problems(self)):
            raise InvalidLessonError(problems)
        object.__setattr__(self, "id", lesson_id(self.section, self.content, self.conditions))

    def as_fields(self) -> dict[str, object]:
        """Plain values by name, as JSON holds them; what is not stated is left out."""
        stated: dict[str, object] = {"id": self.id, "section": self.section, "content": self.content}
        stated |= {"kind": self.kind.value, "priority": self.priority.value, "source": self.source.value}
        conditions = {name: list(values) for name, values in _by_name(self.conditions).items() if values}
        if conditions:
            stated["conditions"] = conditions
        optional = {"missed": self.missed, "reasoning": self.reasoning, "span": self.span}
        return stated | {name: value for name, value in optional.items() if value is not None}

    @classmethod
    def from_fields(cls, stated: Mapping[str, object]) -> Lesson:
        """The lesson that `as_fields` states; names that it does not know are passed over."""
        problems = [
            f"{name}: expected a text, found {stated.get(name)!r}: {_ADVICE[name]}"
            for name, kind in _TEXTS.items()
            if not isinstance(stated.get(name), kind)
        ]
        kind = _member(LessonKind, "kind", stated.get("kind", LessonKind.PATTERN), problems)
        priority = _member(LessonPriority, "priority", stated.get("priority", LessonPriority.MEDIUM), problems)
        source = _member(LessonSource, "source", stated.get("source", LessonSource.OTHER), problems)
        conditions = _conditions_of(stated.get("conditions", {}), problems)
        if problems:
            raise InvalidLessonError(problems)
        texts = {name: stated.get(name) for name in _TEXTS}
        lesson = cls(kind=kind, priority=priority, source=source, conditions=conditions, **texts)  # type: ignore[arg-type]
        if (named := stated.get("id", lesson.id)) != lesson.id:
            raise InvalidLessonError(
                [f"id: expected {lesson.id}, which section, text and conditions make, found {named!r}: leave it out"]
            )
        return lesson

    def to_json(self) -> str:
        """One JSON object, always in the same order."""
        return json.dumps(self.as_fields(), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Lesson:
        """The lesson that `to_json` wrote."""
        try:
            stated = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidLessonError([f"expected a JSON object, found: {error}: write one object a lesson"]) from error
        if not isinstance(stated, dict):
            kind = type(stated).__name__
            raise InvalidLessonError([f"expected a JSON object, found {kind}: write one object a lesson"])
        return cls.from_fields(stated)


def lesson_id(section: str, content: str, conditions: Conditions) -> LessonId:
    """The same section, text and conditions make the same id, whoever says so: a hundred may add one lesson at once."""
    named = [one_line(section), one_line(content), *(list(values) for values in _by_name(conditions).values())]
    canonical = json.dumps(named, ensure_ascii=False, separators=(",", ":"))
    return LessonId(hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()[:16])


def lesson_session(lesson: str) -> str:
    """The session of what is said of a lesson outside of conversations: one partition keeps it in order."""
    return f"lesson-{lesson}"


_ADVICE = {
    "section": "name what it is about in a word or two",
    "content": "say what to do in one line",
    "missed": "name the item alone",
    "reasoning": "say why in a sentence or two",
    "span": "quote what it came from, and no more",
}


def _problems(lesson: Lesson) -> Iterable[str]:
    for name, most in _LONGEST.items():
        value: object = getattr(lesson, name)
        optional = name in {"missed", "reasoning", "span"}
        if value is None and optional:
            continue
        if not isinstance(value, str):
            yield f"{name}: expected a text, found {value!r}: {_ADVICE[name]}"
        elif not 1 <= len(value) <= most:
            yield f"{name}: expected 1 to {most} characters, found {len(value)}: {_ADVICE[name]}"
        elif name == "content" and not any(map(str.isalnum, value)):
            yield f"content: expected words, found {value!r}: {_ADVICE[name]}"
        elif name == "section" and not _SECTION.fullmatch(value):
            yield f'section: expected lower-case words joined by "-", "_" or ".", found {value!r}: {_ADVICE[name]}'
    for name, kind in _ENUMS.items():
        if not isinstance(getattr(lesson, name), kind):
            yield _unknown(kind, name, getattr(lesson, name))
    conditions: object = lesson.conditions
    if not isinstance(conditions, Conditions):
        yield f"conditions: expected Conditions, found {conditions!r}: state tools, files, actions or words"


_TEXTS: Mapping[str, UnionType | type] = {
    "section": str,
    "content": str,
    "missed": str | None,
    "reasoning": str | None,
    "span": str | None,
}
_ENUMS: Mapping[str, type[StrEnum]] = {"kind": LessonKind, "priority": LessonPriority, "source": LessonSource}


def _unknown(kind: type[StrEnum], name: str, value: object) -> str:
    return f"{name}: expected one of {', '.join(kind)}, found {value!r}: choose one of them"


def _member(kind: type[_E], name: str, value: object, problems: list[str]) -> _E:
    if isinstance(value, str) and value in set(kind):
        return kind(value)
    problems.append(_unknown(kind, name, value))
    return next(iter(kind))


def _conditions_of(stated: object, problems: list[str]) -> Conditions:
    if not isinstance(stated, Mapping):
        problems.append(f"conditions: expected an object, found {stated!r}: state tools, files, actions or words")
        return ANYWHERE
    lists: dict[str, tuple[str, ...]] = {}
    for name in _CONDITIONS:
        values = stated.get(name, [])
        # A text alone would be read letter by letter.
        if isinstance(values, str) or not isinstance(values, Iterable):
            problems.append(f"conditions.{name}: expected a list of texts, found {values!r}: state one text for each")
        else:
            lists[name] = tuple(values)
    try:
        return Conditions(**lists)
    except InvalidLessonError as error:
        problems.extend(error.problems)
        return ANYWHERE
