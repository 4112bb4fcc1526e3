"""Examples of what a night changes, by step: rows that its tables hold and its page shows.

Every step gives them in one form: a row is a mapping of names to values, the same names in all rows of a step, the most
important row first. The page shows what is named `text` or ends with `_text` side by side, and the rest before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from weft.consolidation.candidate import Proposal
from weft.consolidation.night import TextLookup
from weft.consolidation.report.findings import Findings
from weft.consolidation.tending.steps import alias_changes, edge_changes
from weft.learning.beliefs import Beliefs
from weft.learning.lessons.beliefs import LessonBelief
from weft.learning.observe.triggers import LearnedTrigger
from weft.learning.uses import Uses
from weft.runtime.clock import SECONDS_PER_DAY

EXAMPLES = 10
"""Of a step, at most."""

Row = Mapping[str, Any]


def examples_of(findings: Findings) -> dict[str, Sequence[Row]]:
    """The examples of every step that has any."""
    every = {
        **findings.tended.examples(),
        "expiry": findings.expired,
        "lessons": lesson_changes(findings.candidate, findings.before, findings.after),
    }
    return {name: rows for name, rows in every.items() if rows}


def expired(candidate: Proposal, then: Sequence[LearnedTrigger], after: Beliefs, texts: TextLookup | None) -> list[Row]:
    """Triggers that were in force when the live version was made and no longer are, then aliases and edges that go."""
    still = {(each.term, each.content_hash) for each in after.triggers.every()}
    gone = [each for each in then if (each.term, each.content_hash) not in still]
    gone.sort(key=lambda each: (each.on_trial, -each.strength, each.term, each.content_hash))
    stale = sorted(alias_changes(candidate)[1])
    edges = sorted(edge_changes(candidate)[1])
    rows = [
        *(("trigger", each.content_hash, each.term, _day(each.last)) for each in gone),
        *(("alias", content, f"stood for by {other[:12]}", "") for content, other in stale),
        *(("edge", content, f"{kind} {target[:12]}", "") for content, kind, target in edges),
    ][:EXAMPLES]
    read_texts = {} if texts is None else texts(sorted({content for _, content, _, _ in rows}))
    return [
        {"kind": kind, "what": what, "last_picked": last, "content": content, "text": read_texts.get(content, "")}
        for kind, content, what, last in rows
    ]


def lesson_changes(candidate: Proposal, before: Beliefs, after: Beliefs) -> list[Row]:
    """Lessons that something new was heard of, those whose status changed first, then by how far P(good) moved."""
    places = after.lessons.counts.place
    named = sorted({name for name in Uses.of(candidate.fresh.usage).columns().content.values if name in places})
    both = [(each, before.lessons.of(name)) for name in named if (each := after.lessons.of(name)) is not None]
    changed = [(now, was) for now, was in both if was is None or _state_of(now) != _state_of(was)]
    changed.sort(
        key=lambda pair: (not _is_other(*pair), -abs(pair[0].p_good - (pair[1] or pair[0]).p_good), pair[0].id)
    )
    return [_lesson_row(now, was, after) for now, was in changed[:EXAMPLES]]


def _state_of(lesson: LessonBelief) -> tuple[object, ...]:
    return lesson.status, lesson.representative, lesson.p_good, lesson.observations


def _is_other(now: LessonBelief, was: LessonBelief | None) -> bool:
    return was is None or (now.status, now.representative) != (was.status, was.representative)


def _lesson_row(now: LessonBelief, was: LessonBelief | None, after: Beliefs) -> Row:
    lesson = after.lessons.lesson(now.id)
    return {
        "lesson": now.id,
        "status_before": "new" if was is None else was.status.value,
        "status": now.status.value,
        "reason": now.reason,
        "p_good_before": None if was is None else was.p_good,
        "p_good": now.p_good,
        "observations": now.observations,
        "merged_into": "" if now.representative == now.id else now.representative,
        "text": "" if lesson is None else lesson.content,
    }


def _day(day: int) -> str:
    return datetime.fromtimestamp(day * SECONDS_PER_DAY, UTC).date().isoformat()
