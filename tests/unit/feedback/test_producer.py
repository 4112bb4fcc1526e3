"""FBK-1, FBK-2: what the producer sends, and what a search may expect of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from typing import Any

import numpy as np
import pytest

from tests.support.feedback_events import HASHES, LESSON, NOON, RULES, stamp
from tests.support.feedback_publisher import MemoryPublisher
from weft.domain.documents import Domain
from weft.domain.errors import InvalidEventError
from weft.domain.events import Attribution, Explicit, Impression, InjectedLesson, Selection, SessionPhase
from weft.domain.ids import GenerationId, QueryId, SessionId, VersionName
from weft.domain.ranking import Answer, Contribution, Query, RankedResult, Signal
from weft.feedback.events.codec import EVENT_TYPES
from weft.feedback.events.producer import FeedbackProducer, impression_of


def a_producer(publisher: MemoryPublisher) -> FeedbackProducer:
    numbers = count(1)
    return FeedbackProducer(publisher, clock=lambda: NOON / 1000, new_id=lambda: f"event {next(numbers)}")


def a_query(session_id: str | None = "s1") -> Query:
    session = None if session_id is None else SessionId(session_id)
    return Query(
        text="how", query_id=QueryId("q1"), k=2, model="small", agent="coder", session_id=session, principal="ada"
    )


def an_answer(query: Query) -> Answer:
    results = tuple(
        RankedResult(
            rank=rank,
            content_hash=HASHES[rank],
            chunk_id=f"chunk {rank}",
            uris=("file:///a",),
            text="text",
            kind="paragraph",
            symbol=None,
            heading_path=(),
            start_line=1,
            end_line=2,
            domain=Domain.CODE,
            channels={},
            signals={Signal.VECTOR: value, Signal.TRUST: 0.5},
            contributions=(Contribution("vector", value, 1.0, value),),
            relevance=value,
        )
        for rank, value in ((1, 1.0 + 1e-9), (2, 0.25))
    )
    return Answer(
        query=query, results=results, generation=GenerationId("g"), learned=VersionName("l"), fusion="learned"
    )


def test_an_answer_becomes_its_impression() -> None:
    """FBK-1: signals, scores, ranks and domains of what was shown; the query's text only as a hash."""
    publisher = MemoryPublisher()
    a_producer(publisher).emit(an_answer(a_query()))
    (sent,) = publisher.events
    assert isinstance(sent, Impression)
    assert publisher.keys == [b"s1"]
    assert (sent.event_id, sent.ts, sent.principal, sent.model, sent.agent) == (
        "event 1",
        NOON,
        "ada",
        "small",
        "coder",
    )
    assert sent.query_hash == hashlib.sha256(b"how").hexdigest()
    assert [(one.rank, one.content_hash, one.domain, one.included) for one in sent.results] == [
        (1, HASHES[1], Domain.CODE, True),
        (2, HASHES[2], Domain.CODE, True),
    ]
    assert [one.score for one in sent.results] == [1.0, 0.25]
    assert [one.signals for one in sent.results] == [{"vector": 1.0, "trust": 0.5}, {"vector": 0.25, "trust": 0.5}]


@pytest.mark.parametrize(("characters", "text"), [(0, None), (3, "how"), (2, "ho")])
def test_a_questions_text_goes_along_as_far_as_it_may(characters: int, text: str | None) -> None:
    """LRN-19: near questions are told by it; 0 keeps it private, and its hash alone goes."""
    sent = impression_of(an_answer(a_query()), question_characters=characters, **stamp("e"))
    assert sent.question == text
    assert sent.query_hash == hashlib.sha256(b"how").hexdigest()


def test_feedback_carries_what_joins_it_to_its_impression() -> None:
    """FBK-1: session and query id."""
    publisher, query = MemoryPublisher(), a_query()
    producer = a_producer(publisher)
    producer.explicit(query, -0.5, content_hash=HASHES[1])
    producer.selection(query, HASHES[2], 2, principal="grace")
    producer.session("s1", "complete", principal="ada")
    verdict, chosen, phase = publisher.events
    assert isinstance(verdict, Explicit)
    assert isinstance(chosen, Selection)
    assert isinstance(phase, SessionPhase)
    assert (verdict.session_id, verdict.query_id, verdict.signal, verdict.content_hash) == ("s1", "q1", -0.5, HASHES[1])
    assert (chosen.session_id, chosen.query_id, chosen.rank, chosen.principal) == ("s1", "q1", 2, "grace")
    assert (phase.session_id, phase.phase) == ("s1", "complete")
    assert set(publisher.keys) == {b"s1"}


def test_there_is_a_method_for_every_type() -> None:
    """FBK-2: what each sends carries the facts it was given, and the stamp of its session."""
    publisher, query, code = MemoryPublisher(), a_query(), Domain.CODE
    producer = a_producer(publisher)
    sent = [
        producer.impression(an_answer(query)),
        producer.retrieval(query, [HASHES[2]]),
        producer.inclusion(query, [HASHES[1]]),
        producer.reference(query, content_hashes=[HASHES[1]], match=0.5),
        producer.success(query, response="so"),
        producer.explicit(query, 1.0),
        producer.selection(query, HASHES[1], 1),
        producer.correction(query, right=False, uri="a.md#how"),
        producer.review("s1", code, confidence=0.5, good=True, principal="ada", agent="coder"),
        producer.accuracy("s1", code, age_hours=48.0, accurate=False, principal="ada", content_hash=HASHES[1]),
        producer.model_quality("s1", "small", turn=7, quality=0.5, principal="ada"),
        producer.trust("s1", "blog", verified=False, principal="ada", model="small"),
        producer.lesson_added("s1", LESSON, principal="ada", why="it broke"),
        producer.lessons_injected("s1", "i-1", [InjectedLesson(lesson_id=LESSON.id)], principal="ada", tool="Bash"),
        producer.lesson_outcome("s1", "testing-00012", "failure", principal="ada"),
        producer.session("s1", "start", principal="ada"),
        producer.trigger_removal(HASHES[1], "flush", principal="ada"),
    ]
    events = publisher.events
    assert [event.event_id for event in events] == sent
    assert {type(event) for event in events} == set(EVENT_TYPES.values())
    assert set(publisher.keys) == {b"s1", f"trigger-{HASHES[1]}".encode()}
    assert {(event.session_id, event.principal) for event in events[:-1]} == {("s1", "ada")}
    assert [event.ts - NOON for event in events] == list(range(len(events)))  # no two words at one time
    told = {type(event).__name__: event for event in events}
    assert told["Retrieval"].content_hashes == (HASHES[2],)
    assert told["Inclusion"].content_hashes == (HASHES[1],)
    assert (told["Reference"].content_hashes, told["Reference"].match) == ((HASHES[1],), 0.5)
    assert told["Success"].response == "so"
    correction = told["Correction"]
    assert (correction.question, correction.uri, correction.right) == (query.text, "a.md#how", False)
    assert (told["Review"].domain, told["Review"].agent, told["Review"].confidence) == (code, "coder", 0.5)
    assert (told["Accuracy"].age_hours, told["Accuracy"].accurate) == (48.0, False)
    assert (told["ModelQuality"].model, told["ModelQuality"].turn, told["ModelQuality"].quality) == ("small", 7, 0.5)
    assert (told["Trust"].source, told["Trust"].model, told["Trust"].verified) == ("blog", "small", False)
    assert (told["TriggerRemoval"].content_hash, told["TriggerRemoval"].term) == (HASHES[1], "flush")
    assert (told["LessonChange"].stated(), told["LessonChange"].why) == (LESSON, "it broke")
    assert [each.lesson_id for each in told["LessonInjection"].lessons] == [LESSON.id]
    assert (told["LessonOutcome"].lesson_id, told["LessonOutcome"].outcome) == ("testing-00012", "failure")


def test_a_query_without_session_is_a_session_of_its_own() -> None:
    """FBK-1: its events still meet, in one partition."""
    publisher, query = MemoryPublisher(), a_query(None)
    producer = a_producer(publisher)
    producer.emit(an_answer(query))
    producer.explicit(query, 1.0)
    assert publisher.keys == [b"q1", b"q1"]
    assert [event.session_id for event in publisher.events] == ["q1", "q1"]


def test_a_search_never_fails_over_its_impression() -> None:
    """FBK-1: what cannot be sent is counted."""
    producer = a_producer(MemoryPublisher(available=False))
    producer.emit(an_answer(a_query()))
    assert producer.lost == 1


def shares(value: Any) -> Attribution:
    return Attribution(method="semantic", shares={HASHES[1]: value})


Call = Callable[[Any, Query], str]
REFUSED: dict[str, tuple[Call, str]] = {
    "nobody's review": (
        lambda sender, _: sender.review("s1", Domain.CODE, confidence=0.5, good=True, principal=None),
        "principal",
    ),
    "a principal without a letter": (lambda sender, query: sender.explicit(query, 1.0, principal=""), "principal"),
    "bytes for a principal": (
        lambda sender, query: sender.explicit(query, 1.0, principal=b"ada"),
        "principal",
    ),
    "a session that is a number": (lambda sender, _: sender.session(41, "start", principal="ada"), "session_id"),
    "half of a surrogate pair": (lambda sender, query: sender.success(query, response="a \ud800"), "response"),
    "NaN": (lambda sender, query: sender.explicit(query, float("nan")), "signal"),
    "NaN in an optional field": (
        lambda sender, query: sender.reference(query, response="r", match=float("nan")),
        "match",
    ),
    "an infinity": (
        lambda sender, _: sender.accuracy("s1", Domain.CODE, age_hours=float("inf"), accurate=True, principal="ada"),
        "age_hours",
    ),
    "a decimal": (lambda sender, query: sender.explicit(query, Decimal("0.5")), "signal"),
    "a float of numpy": (lambda sender, query: sender.explicit(query, np.float64(0.5)), "signal"),
    "a single of numpy": (
        lambda sender, query: sender.success(query, attribution=shares(np.float32(0.5))),
        "attribution.shares",
    ),
    "a rank of numpy": (lambda sender, query: sender.selection(query, HASHES[1], np.int64(7)), "rank"),
    "a rank in letters": (lambda sender, query: sender.selection(query, HASHES[1], "7"), "rank"),
    "a bool of numpy": (lambda sender, query: sender.explicit(query, 1.0, asked=np.True_), "asked"),
    "bytes for a hash": (lambda sender, query: sender.selection(query, bytes(48), 1), "content_hash"),
    "a hash in upper case": (
        lambda sender, query: sender.inclusion(query, [HASHES[1], HASHES[2].upper()]),
        "content_hashes[1]",
    ),
    "a time": (lambda sender, query: sender.explicit(query, datetime.now(UTC)), "signal"),
}


@pytest.mark.parametrize(("call", "field"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_schema_refuses_is_refused_where_it_is_said(call: Call, field: str) -> None:
    """FBK-2: at once, with the name of the field; nothing is sent, nothing becomes another value on the way."""
    publisher = MemoryPublisher()
    sender = FeedbackProducer(publisher, triggers=RULES.triggers)
    with pytest.raises(InvalidEventError, match=rf"at `\$\.{re.escape(field)}"):
        call(sender, a_query())
    assert not publisher.events


def test_a_query_without_a_text_asks_no_question() -> None:
    """FBK-1: blanks have no hash, so that what comes of the results is a precedent of nothing."""
    publisher = MemoryPublisher()
    a_producer(publisher).emit(an_answer(replace(a_query(), text=" ")))
    (sent,) = publisher.events
    assert isinstance(sent, Impression)
    assert sent.query_hash is None


def test_whoever_names_no_principal_is_anonymous() -> None:
    """FBK-11: all of them share one principal's caps."""
    publisher, query = MemoryPublisher(), replace(a_query(), principal="")
    producer = a_producer(publisher)
    producer.emit(an_answer(query))
    producer.explicit(query, 1.0)
    assert [event.principal for event in publisher.events] == ["anonymous", "anonymous"]
