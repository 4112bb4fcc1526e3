"""Lessons of other stores: read as far as they can be, with one report of what was changed (LES-12).

    python -m jobs.import_lessons FILE --store DIR [--bootstrap HOST:PORT] [--dry-run] [--json]

What was archived retires, and outcomes that were counted count as the importer's, a hundred of a kind and lesson at
most. Exit codes: 0 read, 1 with a reason, 2 usage.

Three forms are known: records of a skill store with a status ("draft", "active", "archived", "promoted"), bullets of a
playbook, in JSON or one a line ("[ctx-00012] helpful=3 harmful=1 :: text"), and plain notes with a confidence.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from weft.app.lessons.operations import lesson_sender
from weft.cli.console.options import Bootstrap, CommonOptions, Principal, command, run_job
from weft.cli.console.output import Result
from weft.cli.console.terminal import note, reading
from weft.cli.lessons.listing import Session
from weft.cli.lessons.telling import first_event_notes
from weft.domain.errors import InvalidLessonError
from weft.domain.ids import principal_fingerprint
from weft.domain.lesson import Lesson, LessonKind, LessonPriority, LessonResult, LessonSource, LessonStatus
from weft.lessons.sensitive import sensitive_parts
from weft.settings import Settings

PROMOTED = 0.95
"""Confidence of what was promoted: a person has looked at it."""

_MOST_OUTCOMES = 100  # of a kind and lesson: more of one principal and day say no more (LRN-20)

_STATUSES: Mapping[str, LessonStatus] = {
    "promoted": LessonStatus.ACTIVE,
    "active": LessonStatus.ACTIVE,
    "draft": LessonStatus.NEEDS_VALIDATION,
    "needs_validation": LessonStatus.NEEDS_VALIDATION,
    "dormant": LessonStatus.DORMANT,
    "archived": LessonStatus.RETIRED,
    "retired": LessonStatus.RETIRED,
}
_NAMES: Mapping[str, tuple[str, ...]] = {
    "content": ("content", "text", "lesson", "rule", "insight", "description", "note", "title"),
    "section": ("section", "category", "topic", "area", "domain"),
    "kind": ("kind", "type"),
    "priority": ("priority", "importance", "severity"),
    "source": ("source", "origin"),
    "status": ("status", "state"),
    "confidence": ("confidence", "score", "certainty"),
    "helpful": ("helpful", "helpful_count", "successes", "success_count"),
    "harmful": ("harmful", "harmful_count", "failures", "failure_count"),
    "reasoning": ("reasoning", "why", "rationale", "explanation"),
    "missed": ("missed", "missed_item"),
    "tools": ("tools", "tool"),
    "files": ("files", "file_patterns", "globs"),
    "actions": ("actions", "action_words"),
    "words": ("words", "keywords", "tags", "context_words"),
}
_HOLDERS = ("lessons", "skills", "bullets", "playbook", "entries", "records", "notes", "items")
_BULLET = re.compile(
    r"\[(?P<id>[^\]]+)\]\s*helpful=(?P<helpful>-?\d+)\s+harmful=(?P<harmful>-?\d+)\s*::\s*(?P<content>.+)"
)
_HEADING = re.compile(r"#{1,6}\s+(?P<name>.+)")


@dataclass(frozen=True, slots=True)
class MigratedLesson:
    """A lesson of an older store."""

    lesson: Lesson
    confidence: float | None  # as it was, in [0, 1]; None where none was stated
    status: LessonStatus  # as it was; what was unknown needs validation
    helpful: int  # Outcomes that were counted
    harmful: int


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What became of records: every one is in `lessons` or in `rejected`."""

    lessons: tuple[MigratedLesson, ...]
    warnings: tuple[tuple[int, str], ...]  # record from 0, and what was changed in it
    rejected: tuple[tuple[int, str], ...]  # record from 0, and why it is no lesson
    forms: Mapping[str, int]  # records of each form

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {form}" for form, count in sorted(self.forms.items()))
        head = (
            f"{len(self.lessons)} lessons of {len(self.lessons) + len(self.rejected)} records ({counts}), "
            f"{len(self.rejected)} rejected, {len(self.warnings)} warnings"
        )
        lines = [f"  record {at}: rejected: {why}" for at, why in self.rejected]
        lines += [f"  record {at}: {what}" for at, what in self.warnings]
        return "\n".join([head, *lines])


def migrate(text: str) -> MigrationReport:
    """The lessons of an older store's file: JSON, JSON lines, or a playbook in text.

    Examples:
        >>> old = '[{"text": "Sign commits", "topic": "git", "status": "active", "confidence": 1.7}, {"status": 3}]'
        >>> print(migrate(old))
        1 lessons of 2 records (2 skills), 1 rejected, 1 warnings
          record 1: rejected: content: expected a text, found None: say what to do in one line
          record 0: confidence: expected a number from 0 to 1, found 1.7: 1.0 is taken
    """
    lessons: list[MigratedLesson] = []
    warnings: list[tuple[int, str]] = []
    rejected: list[tuple[int, str]] = []
    forms: Counter[str] = Counter()
    for at, record in enumerate(_records(text)):
        forms[_form(record)] += 1
        changed: list[str] = []
        try:
            lessons.append(_migrated(record, changed))
            warnings.extend((at, each) for each in changed)
        except InvalidLessonError as error:
            rejected.append((at, str(error)))
    return MigrationReport(tuple(lessons), tuple(warnings), tuple(rejected), dict(forms))


def _records(text: str) -> list[object]:
    try:
        return list(_flattened(json.loads(text), None))
    except (ValueError, RecursionError):
        pass
    records: list[object] = []
    section = None
    for line in text.splitlines():
        if heading := _HEADING.fullmatch(line.strip()):
            section = heading["name"]
        elif bullet := _BULLET.fullmatch(line.strip().removeprefix("- ")):
            records.append(bullet.groupdict() | {"section": section, "form": "bullets"})
        elif line.strip():
            try:
                records.extend(_flattened(json.loads(line), None))
            except (ValueError, RecursionError):
                records.append(line.strip())
    return records


def _flattened(value: object, section: str | None) -> Iterable[object]:
    """Records of a structure: a list of them, one under a name that holds such, or lists by section."""
    if isinstance(value, list):
        for each in value:
            yield each | {"section": section} if isinstance(each, dict) and section and "section" not in each else each
    elif isinstance(value, dict) and (holder := next((name for name in _HOLDERS if name in value), None)):
        yield from _flattened(value[holder], section)
    elif isinstance(value, dict) and value and all(isinstance(each, list) for each in value.values()):
        for name, each in value.items():
            yield from _flattened(each, str(name))
    else:
        yield value


def _form(record: object) -> str:
    if not isinstance(record, dict):
        return "unknown"
    if any(name in record for name in _NAMES["status"]):
        return "skills"
    if any(name in record for name in (*_NAMES["helpful"], *_NAMES["harmful"])):
        return "bullets"
    return "notes"


def _migrated(record: object, changed: list[str]) -> MigratedLesson:
    if not isinstance(record, dict):
        raise InvalidLessonError([f"expected a record, found {type(record).__name__}: it is passed over"])
    stated = {name: next((record[key] for key in keys if key in record), None) for name, keys in _NAMES.items()}
    whole = json.dumps(record, ensure_ascii=False, default=str)
    if kinds := sensitive_parts(whole):
        raise InvalidLessonError([f"expected nothing that must not be stored, found: {', '.join(kinds)}: leave it out"])
    word = str(stated["status"]).strip().lower()
    status = _STATUSES.get(word, LessonStatus.NEEDS_VALIDATION)
    if word not in _STATUSES and stated["status"] is not None:
        changed.append(
            f"status: expected one of {', '.join(_STATUSES)}, found {stated['status']!r}: it needs validation"
        )
    confidence = _share(stated["confidence"], changed)
    fields: dict[str, object] = {
        "content": stated["content"],
        "section": _section(stated["section"], changed),
        "kind": _one_of(LessonKind, "kind", stated["kind"], LessonKind.PATTERN, changed),
        "priority": _one_of(LessonPriority, "priority", stated["priority"], LessonPriority.MEDIUM, changed),
        # Promoting it was a person's word.
        "source": LessonSource.USER_CORRECTION.value
        if word == "promoted"
        else _one_of(LessonSource, "source", stated["source"], LessonSource.OTHER, changed),
        "conditions": {name: _texts(name, stated[name], changed) for name in ("tools", "files", "actions", "words")},
        "reasoning": stated["reasoning"] if isinstance(stated["reasoning"], str) else None,
        "missed": stated["missed"] if isinstance(stated["missed"], str) else None,
    }
    return MigratedLesson(
        lesson=Lesson.from_fields(fields),
        confidence=PROMOTED if word == "promoted" else confidence,
        status=status,
        helpful=_count("helpful", stated["helpful"], changed),
        harmful=_count("harmful", stated["harmful"], changed),
    )


def _share(value: object, changed: list[str]) -> float | None:
    if value is None:
        return None
    number = _number(value)
    if number is None:
        changed.append(f"confidence: expected a number from 0 to 1, found {value!r}: it is left out")
        return None
    share = min(1.0, max(0.0, number))
    if share != number:
        changed.append(f"confidence: expected a number from 0 to 1, found {value!r}: {share} is taken")
    return share


def _count(name: str, value: object, changed: list[str]) -> int:
    number = _number(0 if value is None else value)
    if number is None or number < 0 or number != int(number):
        changed.append(f"{name}: expected a count, found {value!r}: {max(0, int(number or 0))} is taken")
    return max(0, int(number or 0))


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _section(value: object, changed: list[str]) -> str:
    slug = re.sub(r"[^a-z0-9_.]+", "-", str(value or "").lower())[:64].strip("-_.")
    if not slug:
        changed.append(f"section: expected a name, found {value!r}: general is taken")
    return slug or "general"


def _one_of(kind: type[StrEnum], name: str, value: object, default: str, changed: list[str]) -> str:
    word = str(value).strip().lower() if value is not None else default
    if word in set(kind):
        return word
    changed.append(f"{name}: expected one of {', '.join(kind)}, found {value!r}: {default} is taken")
    return default


def _texts(name: str, value: object, changed: list[str]) -> list[str]:
    values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    texts = [each.strip()[:200] for each in values if isinstance(each, str) and each.strip()][:32]
    if value is not None and (not isinstance(value, list | str) or len(texts) != len(values)):
        changed.append(f"{name}: expected a list of texts, found {value!r}: {texts} is taken")
    return texts


@command
def import_lessons(
    file: Annotated[Path, typer.Argument(help="JSON, JSON lines, or a playbook in text.")],
    options: CommonOptions,
    *,
    principal: Principal = None,
    session: Session = None,
    bootstrap: Bootstrap = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what is wrong, and send nothing.")] = False,
) -> Result:
    """Say the lessons of another store's file; what is no lesson is named with its record, and stops nothing."""
    settings = options.settings(bootstrap=bootstrap)
    with reading(file):
        report = migrate(file.read_text(encoding="utf-8"))
    note(str(report))
    if not dry_run and report.lessons:
        with first_event_notes(settings):
            send(report.lessons, settings, principal=principal, session=session)
    retired = sum(each.status is LessonStatus.RETIRED for each in report.lessons)
    counts = {"lessons": len(report.lessons), "retired": retired, "rejected": len(report.rejected)}
    return Result([counts | {"sent": bool(report.lessons) and not dry_run}])


def send(lessons: Iterable[MigratedLesson], settings: Settings, *, principal: str | None, session: str | None) -> None:
    """Say lessons and what was counted of them; imported twice within a day, each counts once."""
    with lesson_sender(settings, principal, session) as sender:
        by, producer = sender.principal, sender.producer
        for each in lessons:
            lesson_id = each.lesson.id
            of, event_id = sender.session_of(lesson_id), f"import-{principal_fingerprint(by)}-{lesson_id}"
            producer.lesson_added(of, each.lesson, principal=by, event_id=event_id)
            share = min(1.0, _MOST_OUTCOMES / max(1, each.helpful, each.harmful))
            for result, count in ((LessonResult.SUCCESS, each.helpful), (LessonResult.FAILURE, each.harmful)):
                for number in range(round(count * share)):
                    why, numbered = "it was counted where it came from", f"{event_id}-{result.value}-{number}"
                    producer.lesson_outcome(of, lesson_id, result.value, principal=by, why=why, event_id=numbered)
            if each.status is LessonStatus.RETIRED:
                producer.lesson_retired(of, lesson_id, principal=by, why="it was out of use where it came from")


main = partial(run_job, import_lessons)
"""Run the job on arguments."""
