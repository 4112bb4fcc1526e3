"""Builders of feedback events: what a test does not name has a plain default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.domain.documents import Domain
from weft.domain.events import (
    Accuracy,
    AnyEvent,
    Correction,
    Explicit,
    Impression,
    Inclusion,
    InjectedLesson,
    LessonChange,
    LessonInjection,
    LessonOutcome,
    ModelQuality,
    Reference,
    Retrieval,
    Review,
    Selection,
    SessionPhase,
    ShownResult,
    Success,
    TriggerRemoval,
    Trust,
)
from weft.domain.ids import content_hash
from weft.domain.lesson import Lesson, LessonResult, LessonSource
from weft.feedback.events.codec import encode
from weft.feedback.events.lesson_events import lesson_text
from weft.feedback.settings import FeedbackSettings
from weft.runtime.kafka.log import Record
from weft.settings import load_settings

NOON = 1_790_000_000_000 // 86_400_000 * 86_400_000 + 43_200_000
"""Noon UTC of some day, in milliseconds: minutes around it stay within the day."""

HASHES = [content_hash(f"content {number}") for number in range(12)]
SETTINGS = load_settings(environment={})
RULES: FeedbackSettings = SETTINGS.feedback
WEIGHTS = RULES.credit.model_dump() | {
    name: getattr(RULES.limits, name) for name in ("principal_daily", "reports_daily", "newcomers")
}
"""What an independent reading of a log weighs by."""


def rules(**changes: Any) -> FeedbackSettings:
    """The base settings with some values changed: `limits__event_bytes=10` reaches into a section."""
    sections: dict[str, Any] = RULES.model_dump()
    for path, value in changes.items():
        *parents, key = path.split("__")
        place = sections
        for parent in parents:
            place = place[parent]
        place[key] = value
    return FeedbackSettings.model_validate(sections)


def reports_daily(observations: float) -> dict[str, float]:
    """The same allowance for everything that is reported."""
    return dict.fromkeys(RULES.limits.reports_daily, observations)


def stamp(event_id: str, **changes: Any) -> dict[str, Any]:
    return {"event_id": event_id, "ts": NOON, "session_id": "s1", "principal": "ada", **changes}


def shown(rank: int, *, value: float = 0.5, score: float = 0.5, **changes: Any) -> ShownResult:
    facts = {"content_hash": HASHES[rank], "rank": rank, "domain": Domain.CODE, "score": score}
    return ShownResult(**{**facts, "signals": {"vector": value}, **changes})


def impression(query_id: str = "q1", results: Iterable[ShownResult] = (), **changes: Any) -> Impression:
    results = list(results) or [shown(rank) for rank in (1, 2, 3, 4)]
    facts = stamp(**{"event_id": f"impression-{query_id}", **changes})
    return Impression(**facts, query_id=query_id, query_hash=content_hash(query_id), results=results)


def explicit(
    signal: float = 1.0, rank: int | None = 1, *, query_id: str = "q1", event_id: str = "explicit", **changes: Any
) -> Explicit:
    of = None if rank is None else HASHES[rank]
    own = {name: changes.pop(name) for name in ("attribution", "asked") if name in changes}
    facts = stamp(event_id, **changes)
    return Explicit(**facts, query_id=query_id, signal=signal, content_hash=of, **own)


def selection(rank: int, *, query_id: str = "q1", event_id: str | None = None, **changes: Any) -> Selection:
    facts = stamp(event_id or f"selection-{query_id}-{rank}", **changes)
    return Selection(**facts, query_id=query_id, content_hash=HASHES[rank], rank=rank)


def correction(content: str | None = HASHES[1], *, event_id: str = "correction", **changes: Any) -> Correction:
    own = {name: changes.pop(name) for name in ("question", "uri", "right") if name in changes}
    query_id = changes.pop("query_id", None if "question" in own else "q1")
    return Correction(**stamp(event_id, **changes), query_id=query_id, content_hash=content, **own)


def retrieval(*ranks: int, query_id: str = "q1", **changes: Any) -> Retrieval:
    facts = {"content_hashes": tuple(HASHES[rank] for rank in ranks), **stamp("retrieval"), **changes}
    return Retrieval(**facts, query_id=query_id)


def inclusion(*ranks: int, query_id: str = "q1", **changes: Any) -> Inclusion:
    facts = {"content_hashes": tuple(HASHES[rank] for rank in ranks), **stamp("inclusion"), **changes}
    return Inclusion(**facts, query_id=query_id)


def reference(*ranks: int, query_id: str = "q1", **changes: Any) -> Reference:
    named = tuple(HASHES[rank] for rank in ranks) or None
    facts = {"content_hashes": named, **stamp("reference"), **changes}
    return Reference(**facts, query_id=query_id)


def success(*, query_id: str = "q1", **changes: Any) -> Success:
    return Success(**{**stamp("success"), **changes}, query_id=query_id)


def review(confidence: float, *, good: bool, **changes: Any) -> Review:
    facts = {"domain": Domain.CODE, **stamp(f"review {confidence} {good}"), **changes}
    return Review(**facts, confidence=confidence, good=good)


def accuracy(age_hours: float, *, accurate: bool, **changes: Any) -> Accuracy:
    facts = {"domain": Domain.CODE, **stamp(f"accuracy {age_hours} {accurate}"), **changes}
    return Accuracy(**facts, age_hours=age_hours, accurate=accurate)


def model_quality(turn: int, quality: float, **changes: Any) -> ModelQuality:
    facts = {"model": "small", **stamp(f"quality {turn} {quality}"), **changes}
    return ModelQuality(**facts, turn=turn, quality=quality)


def trust(source: str, *, verified: bool, **changes: Any) -> Trust:
    return Trust(**{**stamp(f"trust {source} {verified}"), **changes}, source=source, verified=verified)


def lesson_outcome(lesson_id: str, outcome: str, **changes: Any) -> LessonOutcome:
    facts = {**stamp(f"lesson {lesson_id} {outcome}"), **changes}
    return LessonOutcome(**facts, lesson_id=lesson_id, outcome=LessonResult(outcome))


LESSON = Lesson(
    section="api", content="Run the migrations before starting the API", source=LessonSource.USER_CORRECTION
)


def lesson_added(lesson: Lesson = LESSON, **changes: Any) -> LessonChange:
    own = {name: changes.pop(name) for name in ("op", "lesson_id", "why") if name in changes}
    facts = {**stamp(f"added {lesson.id}"), **changes}
    return LessonChange(**facts, **{"op": "add", **own}, lesson=lesson_text(lesson))


def lesson_changed(op: str, lesson_id: str, other: str | None = None, **changes: Any) -> LessonChange:
    facts = {**stamp(f"{op} {lesson_id} {other}"), **changes}
    return LessonChange(**facts, op=op, lesson_id=lesson_id, other=other)  # type: ignore[arg-type]


def injection(*lesson_ids: str, injection_id: str = "i-1", **changes: Any) -> LessonInjection:
    own = {name: changes.pop(name) for name in ("propensity", "p_good") if name in changes}
    facts = {**stamp(injection_id), **changes}
    injected = tuple(InjectedLesson(lesson_id=each, **own) for each in lesson_ids)
    return LessonInjection(**facts, injection_id=injection_id, lessons=injected)


def trigger_removal(content_hash: str, term: str, **changes: Any) -> TriggerRemoval:
    return TriggerRemoval(**{**stamp(f"removal {term}"), **changes}, content_hash=content_hash, term=term)


def one_of_each() -> list[AnyEvent]:
    """An event of every type, that belong together and can be consumed in this order."""
    return [
        session(session_id="s2"),
        impression(),
        retrieval(3, 4),
        inclusion(1, 2),
        reference(1, match=0.5),
        success(response="because"),
        explicit(-0.5, None),
        selection(2),
        correction(question="how?"),
        review(0.72, good=True),
        accuracy(48.0, accurate=False, content_hash=HASHES[1]),
        model_quality(7, 0.5),
        trust("blog", verified=False),
        lesson_added(),
        injection(LESSON.id, propensity=0.5, p_good=0.9),
        lesson_outcome("testing-00012", "success"),
        trigger_removal(HASHES[1], "flush"),
    ]


def session(phase: str = "suspend", *, event_id: str = "session", **changes: Any) -> SessionPhase:
    return SessionPhase(**stamp(event_id, **changes), phase=phase)


def unlearned(principal: str, *, event_id: str = "unlearned", **changes: Any) -> SessionPhase:
    return session("unlearn_principal", event_id=event_id, principal=principal, **changes)


def records(contents: Iterable[AnyEvent | bytes | None], *, partition: int = 0, timestamp: int = NOON) -> list[Record]:
    """Records that lie one after the other in one partition; an event's record carries the event's own time."""
    return [
        Record(partition, offset, timestamp, b"s1", content)
        if content is None or isinstance(content, bytes)
        else Record(partition, offset, content.ts, content.session_id.encode(), encode(content))
        for offset, content in enumerate(contents)
    ]
