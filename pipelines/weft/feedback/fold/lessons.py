"""What is said of lessons and what comes of them, as evidence (LES-7). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from weft.domain.events import LessonChange, LessonEvent, LessonInjection, LessonOutcome
from weft.domain.ids import question_of
from weft.domain.lesson import lesson_session
from weft.feedback.settings import DAY_MS
from weft.learning.evidence import MICRO
from weft.learning.lessons.rows import (
    PERSON,
    REVISES,
    LessonNote,
    injected_bin,
    link_bin,
    note_bin,
    outcome_bin,
    statement_bin,
    text_bin,
    verdict_bin,
)
from weft.learning.uses import UsageKey


class _Moment(NamedTuple):
    day: int
    ms: int


def lesson_usage(event: LessonEvent, at_ms: int, *, principal: str) -> Iterator[tuple[UsageKey, int]]:
    """What is kept of an event about lessons, in micro-units: one observation a key, of an outcome as much as it is
    sure.
    """
    keys = _keys(event, at_ms, principal=principal)
    if isinstance(event, LessonOutcome) and event.origin != PERSON:
        yield next(keys), round(event.sure * MICRO)
    for key in keys:
        yield key, MICRO


def _keys(event: LessonEvent, at_ms: int, *, principal: str) -> Iterator[UsageKey]:
    """The keys; of an outcome its own is the first."""
    moment = _Moment(*divmod(at_ms, DAY_MS))
    if isinstance(event, LessonInjection):
        return _injected(event, moment, principal)
    return (
        _outcome(event, moment, principal) if isinstance(event, LessonOutcome) else _changed(event, moment, principal)
    )


def _injected(event: LessonInjection, moment: _Moment, principal: str) -> Iterator[UsageKey]:
    about = question_of(event.injection_id)
    for each in {each.lesson_id: each for each in event.lessons}.values():
        yield UsageKey(moment.day, each.lesson_id, injected_bin(each.propensity, each.p_good), principal, about)


def _outcome(event: LessonOutcome, moment: _Moment, principal: str) -> Iterator[UsageKey]:
    about = "" if event.injection_id is None else question_of(event.injection_id)
    typed = event.origin == PERSON
    bin_ = verdict_bin(event.outcome.value, moment.ms) if typed else outcome_bin(event.outcome, event.origin)
    yield UsageKey(moment.day, event.lesson_id, bin_, principal, about)
    note = LessonNote(
        **_facts(event, event.outcome.value, moment),
        origin=event.origin,
        why=event.why or "",
        span=event.span or "",
        injection=event.injection_id or "",
    )
    if event.sure != 1.0:  # a note leaves out what is usual
        note = msgspec.structs.replace(note, sure=event.sure)
    yield UsageKey(moment.day, event.lesson_id, note_bin(note), principal)


def _changed(event: LessonChange, moment: _Moment, principal: str) -> Iterator[UsageKey]:
    about, stated = event.lesson_id or "", event.stated()
    other, source, span = event.other or "", "", ""
    if stated is not None and event.op in {"add", "revise"}:
        about, source, span = stated.id, stated.source.value, stated.span or ""
        yield UsageKey(moment.day, about, text_bin(stated), principal)
        yield UsageKey(moment.day, about, statement_bin(stated.source, stated.priority), principal)
        if event.op == "revise":
            other = event.lesson_id or ""
            yield UsageKey(moment.day, about, REVISES, principal, other)
    elif event.op in {"retire", "restore"}:
        yield UsageKey(moment.day, about, verdict_bin(event.op, moment.ms), principal)
    elif event.op == "forget":
        if event.session_id != lesson_session(about):  # said in every partition, it is told once
            return
    else:
        yield UsageKey(moment.day, about, link_bin(moment.ms, same=event.op == "alias"), principal, other)
    facts = _facts(event, event.op, moment)
    note = LessonNote(**facts, source=source, why=event.why or "", span=span, other=other)
    yield UsageKey(moment.day, about, note_bin(note), principal)


def _facts(event: LessonEvent, what: str, moment: _Moment) -> dict[str, Any]:
    at = moment.day * DAY_MS + moment.ms
    return {"what": what, "at": at, "by": event.principal, "session": event.session_id, "event": event.event_id}
