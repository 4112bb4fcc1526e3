"""Logged queries, built as briefly as a test of what is read from the log allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.retrieval_fakes import NOW
from weft.domain.ids import ContentHash, QueryId
from weft.domain.ranking import ANY
from weft.evaluation.queries.reader import LoggedHit, LoggedOutcome, LoggedQuery, LoggedResult

BOTH = {"dense": 1, "lexical": 1}


def a_result(
    content: str,
    score: float = 0.5,
    *,
    rank: int = 1,
    channels: Mapping[str, int] = BOTH,
    parts: Mapping[str, float] | None = None,
    relevance: float = 0.5,
    propensity: float = 1.0,
) -> LoggedResult:
    return LoggedResult(
        rank=rank,
        content_hash=ContentHash(content),
        score=score,
        relevance=relevance,
        propensity=propensity,
        channels=channels,
        signals={},
        contributions=parts or {"vector": score},
        facts={"domain": "general", "uris": [f"{content}.md"]},
    )


def an_outcome(content: str | None, kind: str = "selection", value: float = 1.0, **facts: Any) -> LoggedOutcome:
    known = {"at": NOW, "principal": "ada", **facts}
    return LoggedOutcome(
        kind=kind, content_hash=None if content is None else ContentHash(content), value=value, **known
    )


def a_logged(
    number: int,
    results: Sequence[LoggedResult],
    *,
    text: str | None = None,
    at: float = NOW,
    intent: str = "*",
    explored: bool = False,
    heads: Mapping[str, Sequence[tuple[str, float]]] | None = None,
    outcomes: Sequence[LoggedOutcome] = (),
    failed: Sequence[str] = (),
    agent: str = ANY,
    kind: str | None = None,
    confidence: float | None = None,
) -> LoggedQuery:
    told = heads or {}
    return LoggedQuery(
        at=at,
        query_id=QueryId(f"q{number}"),
        text=text or f"query {number}",
        domain=None,
        intent=intent,
        explored=explored,
        heads={
            channel: [LoggedHit(rank, ContentHash(name), score) for rank, (name, score) in enumerate(hits, start=1)]
            for channel, hits in told.items()
        },
        results=results,
        outcomes=outcomes,
        facts={
            "model": ANY,
            "agent": agent,
            "type": kind,
            "intent_confidence": confidence,
            "failed_channels": [{"channel": name, "reason": "late"} for name in failed],
            "timings_ms": [{"name": "channels", "value": 5.0}],
        },
    )
