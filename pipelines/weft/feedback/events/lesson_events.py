"""The part of the producer that speaks of lessons (LES-7)."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import convert

from weft.domain.documents import Domain
from weft.domain.events import (
    AnyEvent,
    InjectedLesson,
    LessonChange,
    LessonEvent,
    LessonInjection,
    LessonOutcome,
    LessonText,
)
from weft.domain.lesson import Lesson, LessonId, lesson_session
from weft.runtime.kafka.writer import partition_of


class LessonEvents(ABC):
    """Methods by which lessons are added, changed and judged; each returns the id of its event."""

    @abstractmethod
    def _stamp(self, session_id: str, principal: str) -> dict[str, Any]:
        """What every event carries."""

    @abstractmethod
    def _send(self, event: AnyEvent) -> str:
        """Hand an event over."""

    def say(self, session_id: str, principal: str, event_of: Callable[[dict[str, Any]], LessonEvent]) -> LessonEvent:
        """Any event about lessons, made from what every event carries; the event that was sent."""
        event = event_of(self._stamp(session_id, principal))
        self._send(event)
        return event

    def lesson_added(
        self, session_id: str, lesson: Lesson, *, principal: str, why: str | None = None, event_id: str | None = None
    ) -> str:
        """A lesson is said; said before, it is said once more."""
        stamp = self._stamp(session_id, principal) | ({} if event_id is None else {"event_id": event_id})
        return self._send(LessonChange(**stamp, op="add", lesson=lesson_text(lesson), why=why))

    def lesson_revised(
        self, session_id: str, parent: str, lesson: Lesson, *, principal: str, why: str | None = None
    ) -> str:
        """A lesson is said instead of another, whose belief it inherits in part."""
        stamp = self._stamp(session_id, principal)
        return self._send(LessonChange(**stamp, op="revise", lesson_id=parent, lesson=lesson_text(lesson), why=why))

    def lesson_retired(self, session_id: str, lesson_id: str, *, principal: str, why: str | None = None) -> str:
        """A lesson is no longer to be injected."""
        return self._send(LessonChange(**self._stamp(session_id, principal), op="retire", lesson_id=lesson_id, why=why))

    def lesson_restored(self, session_id: str, lesson_id: str, *, principal: str, why: str | None = None) -> str:
        """A retired lesson is to be used again."""
        return self._send(
            LessonChange(**self._stamp(session_id, principal), op="restore", lesson_id=lesson_id, why=why)
        )

    def lessons_linked(
        self, session_id: str, lesson_id: str, other: str, *, same: bool, principal: str, why: str | None = None
    ) -> str:
        """A lesson means the same as another, or does not."""
        stamp, op = self._stamp(session_id, principal), "alias" if same else "apart"
        return self._send(LessonChange(**stamp, op=op, lesson_id=lesson_id, other=other, why=why))  # type: ignore[arg-type]

    def lesson_forgotten(self, lesson_id: str, *, partitions: int, principal: str, why: str | None = None) -> list[str]:
        """A lesson's text is to go (LES-14); the ids of the events, one to a partition.

        That of the lesson's own partition has the key of what was said of it outside of conversations, which the
        compaction of a topic takes away for it.

        Args:
            partitions: How many the topic has.
        """
        own = lesson_session(lesson_id)
        sessions = one_to_a_partition(partitions)
        sessions[partition_of(own, partitions)] = own
        return [
            self._send(LessonChange(**self._stamp(session, principal), op="forget", lesson_id=lesson_id, why=why))
            for session in sessions
        ]

    def lessons_injected(
        self,
        session_id: str,
        injection_id: str,
        lessons: Sequence[InjectedLesson],
        *,
        principal: str,
        tool: str | None = None,
        at_ms: int | None = None,  # when, milliseconds since the epoch; now where it is left out
    ) -> str:
        """Lessons were put before an agent; the same injection, sent twice, counts once."""
        stamp = self._stamp(session_id, principal) | {"event_id": injection_id}
        moment = {} if at_ms is None else {"ts": at_ms}
        return self._send(
            LessonInjection(**(stamp | moment), injection_id=injection_id, lessons=tuple(lessons), tool=tool)
        )

    def lesson_outcome(
        self,
        session_id: str,
        lesson_id: LessonId | str,
        outcome: str,
        *,
        principal: str,
        domain: Domain = Domain.GENERAL,
        origin: str = "report",  # who tells it: a `person`, `detection`, an application's `report`, or `silence`
        injection_id: str | None = None,  # of the injection that it came of
        span: str | None = None,  # the words that it was told by
        why: str | None = None,
        event_id: str | None = None,  # where it may be detected twice, and is to count once
        sure: float = 1.0,  # probability that it is so, in [0, 1]: it counts as much
    ) -> str:
        """What came of a lesson: success, failure, confirmation or contradiction."""
        stamp = self._stamp(session_id, principal) | ({} if event_id is None else {"event_id": event_id})
        facts = {"origin": origin, "injection_id": injection_id, "span": span, "why": why, "sure": sure}
        return self._send(LessonOutcome(**stamp, domain=domain, lesson_id=lesson_id, outcome=outcome, **facts))  # type: ignore[arg-type]


def one_to_a_partition(partitions: int) -> list[str]:
    """Session ids whose events lie in every partition of a topic, in the order of the partitions."""
    ids: dict[int, str] = {}
    while len(ids) < partitions:
        session_id = secrets.token_hex(16)
        ids.setdefault(partition_of(session_id, partitions), session_id)
    return [ids[partition] for partition in range(partitions)]


def lesson_text(lesson: Lesson) -> LessonText:
    """A lesson as an event says it."""
    return convert({name: value for name, value in lesson.as_fields().items() if name != "id"}, LessonText)
