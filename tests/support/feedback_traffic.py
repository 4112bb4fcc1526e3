"""Feedback traffic as users make it: sessions that ask, look, choose and judge, and a network that repeats itself."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.support.lesson_fold import lesson_event
from weft.domain.ids import content_hash, question_hash

DOMAINS = ("code", "academic", "history", "general")
SIGNALS = ("vector", "lexical", "cross_validation", "freshness", "graph", "trust")

PHASES = ("start", "start", "start", "suspend", "resume", "complete", "complete", "abandon", "unlearn")


def traffic(
    rng: random.Random,
    size: int,
    *,
    until_ms: int,
    duplicates: float,
    garbage: float,
    foreign: float = 0.0,
    sessions: int = 60,
    users: int = 20,
    lessons_alone: bool = False,
) -> list[tuple[bytes, bytes]]:
    """Keys and values of `size` records, that share of them repeated event ids, that share no events at all.

    They happened within 40 ms of each other, the last one before `until_ms`: no record is sent before what it tells of.
    Phases of sessions are their owner's, but for the share `foreign`; what is said in them is anybody's. With
    `lessons_alone` nothing is shown, and all is about lessons.
    """
    repeated, wrong = round(size * duplicates), round(size * garbage)
    of_session = _said_of_lessons if lessons_alone else _answered_query
    events = _events(rng, size - repeated - wrong, until_ms, foreign, (sessions, users), of_session=of_session)
    placed = [(index + rng.random(), record) for index, record in enumerate(events)]
    # A producer's retry comes after the original, soon or much later.
    again = rng.sample(range(len(events)), repeated)
    placed += [(index + 1 + rng.random() * rng.choice((3, 300, len(events))), events[index]) for index in again]
    placed += [(rng.random() * len(events), (b"%d" % rng.randrange(99), _garbage(rng))) for _ in range(wrong)]
    return [record for _, record in sorted(placed, key=lambda one: one[0])]


def _events(
    rng: random.Random,
    size: int,
    until_ms: int,
    foreign: float,
    names: tuple[int, int],
    *,
    of_session: Callable[[random.Random, str, int, int], list[dict[str, Any]]],
) -> list[tuple[bytes, bytes]]:
    sessions, users = names
    made: list[dict[str, Any]] = []
    held: deque[dict[str, Any]] = deque()
    while len(made) < size:
        number = rng.randrange(sessions)
        answers = of_session(rng, f"session-{number}", until_ms - 40 * (size + 1 - len(made)), users)
        for event in answers:
            if event["type"] == "session" and rng.random() >= foreign:
                event["principal"] = f"user-{number % users}"
        if rng.random() < 0.2:
            answers.append(answers.pop(0))  # feedback overtakes its impression
        held.extend(answers)
        while held and (len(held) > 20 or rng.random() < 0.7):
            made.append(held.popleft())
    return [(event["session_id"].encode(), json.dumps(event).encode()) for event in made[:size]]


def _said_of_lessons(rng: random.Random, session: str, ts: int, users: int) -> list[dict[str, Any]]:
    events = [lesson_event(rng) for _ in range(rng.randint(1, 4))]
    events += [{"type": "session", "phase": rng.choice(PHASES)}] if rng.random() < 0.3 else []
    by = {"session_id": session, "principal": f"user-{rng.randrange(users)}"}
    return [{**by, **each, "event_id": f"{rng.getrandbits(128):032x}", "ts": ts + rng.randrange(30)} for each in events]


def _answered_query(rng: random.Random, session: str, ts: int, users: int) -> list[dict[str, Any]]:
    query = f"query-{rng.getrandbits(64):016x}"
    facts = {"session_id": session, "principal": f"user-{rng.randrange(users)}", "query_id": query}
    scope = {"model": rng.choice(("*", "small", "large")), "agent": rng.choice(("*", "coder"))}
    results = [_result(rng, rank) for rank in range(1, rng.randint(2, 8))]
    _tell_precedent(rng, results)
    events = [{"type": "impression", "results": results, **_question(rng, query), **scope}]
    for _ in range(rng.randrange(4)):
        result = rng.choice((results[0], rng.choice(results)))  # often the first one: minds change, and people differ
        by = {"principal": f"user-{rng.randrange(users)}"} if rng.random() < 0.3 else {}
        named = [one["content_hash"] for one in rng.choices(results, k=rng.randint(1, 3))]
        events.append(
            rng.choice(
                (
                    {
                        "type": "explicit",
                        "signal": round(rng.uniform(-1, 1), 2),
                        "content_hash": result["content_hash"],
                        **by,
                    },
                    {"type": "explicit", "signal": rng.choice((-1.0, 0.0, 1.0)), **by},
                    {"type": "correction", "right": rng.random() < 0.5, **_place(rng, result), **by},
                    {
                        "type": "correction",
                        "query_id": None,
                        "question": _asked(rng),
                        "right": rng.random() < 0.5,
                        **_place(rng, result),
                    },
                    {"type": "selection", "content_hash": result["content_hash"], "rank": result["rank"]},
                    {"type": "session", "phase": rng.choice(PHASES)},
                    {"type": "inclusion", "content_hashes": named},
                    {"type": "retrieval", "content_hashes": [*named, content_hash(query)]},
                    {"type": "reference", "content_hashes": named, "match": round(rng.random(), 2)},
                    {"type": "success", "response": "as the manual says"},
                    _report(rng),
                )
            )
        )
    if rng.random() < 0.1:  # a link scanner opens everything, or nearly everything
        opened = rng.sample(results, max(1, len(results) - rng.randrange(3)))
        events += [{"type": "selection", "content_hash": one["content_hash"], "rank": one["rank"]} for one in opened]
    return [
        {**facts, **event, "event_id": f"{rng.getrandbits(128):032x}", "ts": ts + rng.randrange(30)} for event in events
    ]


def _asked(rng: random.Random) -> str:
    """One of the questions that everybody asks."""
    return f"How to make  dish {rng.randrange(9)}?"


def _question(rng: random.Random, query: str) -> dict[str, Any]:
    """What was asked: in words that many use, known or private; or by nobody else, and private."""
    text = _asked(rng)
    known = {"query_hash": question_hash(text), "question": text}
    return rng.choice((known, {"query_hash": question_hash(text)}, {"query_hash": content_hash(query)}))


def _place(rng: random.Random, result: dict[str, Any]) -> dict[str, Any]:
    """What a correction names."""
    return rng.choice(({"content_hash": result["content_hash"]}, {"uri": f"file:///page.md#part-{rng.randrange(9)}"}))


def _report(rng: random.Random) -> dict[str, Any]:
    """Something reported outright."""
    domain = rng.choice(DOMAINS)
    return rng.choice(
        (
            {"type": "review", "domain": domain, "confidence": rng.random(), "good": rng.random() < 0.5},
            {"type": "accuracy", "domain": domain, "age_hours": rng.expovariate(0.01), "accurate": rng.random() < 0.5},
            {"type": "model_quality", "model": "small", "turn": rng.randint(1, 60), "quality": round(rng.random(), 2)},
            {"type": "trust", "source": rng.choice(("blog", "paper")), "verified": rng.random() < 0.5},
            lesson_event(rng),
        )
    )


def _result(rng: random.Random, rank: int) -> dict[str, Any]:
    return {
        "content_hash": content_hash(f"content {rank} {rng.randrange(50)}"),
        "rank": rank,
        "domain": rng.choice(DOMAINS),
        "score": rng.random(),
        "signals": {name: rng.random() for name in rng.sample(SIGNALS, rng.randint(1, len(SIGNALS)))},
        "included": rng.random() < 0.9 or rank == 1,
        "examination": rng.choice((0.0, 0.3, rank**-0.5)),
    }


def _tell_precedent(rng: random.Random, results: list[dict[str, Any]]) -> None:
    """Say of some results of some pages what came of the same question; a half says nothing, 0 and 1 say all."""
    values = rng.choice(((), (0.5,), (0.0, 0.5, 1.0), (0.5, rng.random(), rng.random())))
    for result in results:
        if values and rng.random() < 0.7:
            result["precedent"] = rng.choice(values)


def _garbage(rng: random.Random) -> bytes:
    return rng.choice(
        (
            b"",
            rng.randbytes(40),
            b'{"type": "explicit", "event_id": "x"',
            b'{"type": "applause"}',
            b"[" * 5_000,
            b'{"type": "explicit", "event_id": "x", "ts": 1, "session_id": "s", "query_id": "q", "signal": 7}',
        )
    )
