"""Feedback as it comes where many ask at once: sessions take turns, each shows answers, and verdicts follow."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.feedback_events import NOON
from weft.domain.documents import Domain
from weft.domain.events import Impression, ShownResult
from weft.domain.ids import content_hash, question_hash
from weft.domain.matching import MatchFeatures
from weft.feedback.events.codec import encode

SESSIONS = 1_000
"""Each of a principal of its own."""
PER_QUERY = 20
"""Events of one query: what was shown, and verdicts."""
PAGE = 4
"""Results of an answer: its verdicts repeat each other. Where it has as many as verdicts, each is of another one."""
MINDS_CHANGE = 0.02
"""Share of verdicts that say the contrary."""
CONTENTS = 5_000
"""Of which answers show some, the first ones most often."""
SIGNALS = ("vector", "lexical", "cross_validation", "freshness", "graph", "trust")


def events_of(
    size: int, *, sessions: int = SESSIONS, page: int = PAGE, asked_again: float = 0.0, ts: int = NOON
) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of `size` records.

    Args:
        sessions: Divides the whole into equally many, whose events interleave.
        page: Results of an answer.
        asked_again: The share of queries that were asked before, so that precedent is told of what they are shown.
        ts: Their own time, in milliseconds: near now where a broker sets the times of records.
    """
    rng = random.Random(7)
    contents = [content_hash(f"content {number}") for number in range(CONTENTS)]
    shown: dict[int, list[str]] = {}
    for number in range(size):
        session, turn = number % sessions, number // sessions
        name = f"session-{session}"
        facts = {"event_id": f"{number:032x}", "ts": ts, "session_id": name, "principal": f"user-{session}"}
        query = f"q{session}-{turn // PER_QUERY}"
        if turn % PER_QUERY == 0:
            shown[session] = [contents[int(CONTENTS * rng.random() ** 2)] for _ in range(2 * page)]
            shown[session] = list(dict.fromkeys(shown[session]))[:page]
            again = asked_again > 0.0 and rng.random() < asked_again
            value = encode(_impression(rng, query, shown[session], facts, again=again))
        else:
            hash_ = shown[session][turn % len(shown[session])]
            signal = -0.5 if rng.random() < MINDS_CHANGE else 0.5
            verdict = {"type": "explicit", "query_id": query, "signal": signal, "content_hash": hash_}
            value = json.dumps({**facts, **verdict}, separators=(",", ":")).encode()
        yield name.encode(), value


def _impression(
    rng: random.Random, query: str, hashes: list[str], facts: Mapping[str, Any], *, again: bool
) -> Impression:
    results = [
        ShownResult(
            content_hash=each,
            rank=rank,
            domain=Domain.CODE,
            score=0.9 / rank,
            signals={name: round(rng.random(), 3) for name in SIGNALS},
            match=MatchFeatures(dense=round(rng.random(), 3), lexical=round(rng.random(), 3)),
            precedent=round(rng.random(), 3) if again else None,
        )
        for rank, each in enumerate(hashes, start=1)
    ]
    return Impression(
        query_id=query,
        query_hash=question_hash(query),
        question=query,
        results=results,
        **facts,
    )
