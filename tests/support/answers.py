"""An answer as a search gives it, of two results, without any search."""

from __future__ import annotations

from typing import Any

from tests.support.feedback_events import HASHES
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash, GenerationId, QueryId, SessionId, VersionName
from weft.domain.ranking import Answer, Contribution, Query, RankedResult, Signal


def a_query(**changes: Any) -> Query:
    facts = {"query_id": QueryId("q1"), "session_id": SessionId("s1"), "principal": "ada", **changes}
    return Query(text="how", k=2, **facts)


def an_answer(query: Query) -> Answer:
    results = tuple(
        RankedResult(
            rank=rank,
            content_hash=ContentHash(HASHES[rank]),
            chunk_id=f"chunk {rank}",
            uris=("a.md",),
            text="text",
            kind="paragraph",
            symbol=None,
            heading_path=(),
            start_line=1,
            end_line=2,
            domain=Domain.CODE,
            channels={},
            signals={Signal.VECTOR: 0.5},
            contributions=(Contribution("vector", 0.5, 1.0, 0.5),),
            relevance=0.5,
        )
        for rank in (1, 2)
    )
    return Answer(
        query=query, results=results, generation=GenerationId("g"), learned=VersionName("l"), fusion="learned"
    )
