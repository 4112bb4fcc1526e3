"""RET-20, ARC-9: queries that are ranked in one table do not mind each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from pipelines.domain.documents import Domain
from pipelines.domain.ids import ContentHash, QueryId
from pipelines.domain.ranking import Answer, Query, Repeats
from pipelines.domain.sessions import SessionMemory
from pipelines.indexes.graph_schemas import EdgeKind
from pipelines.learning.calibration import Calibration, Isotonic
from pipelines.learning.matching import Answering, MatchCalibration, MatchCurve
from pipelines.retrieval.settings import FusionMode, ResultUnit
from tests.support.retrieval_fakes import NOW, MemoryGeneration, MemoryGraph, a_query, a_searcher, settings

WORDS = ("red", "green", "apple", "pear", "pie", "plum", "tart", "jam")
TEXTS = {
    "a": ["red apple", "green apple pie", "jam"],
    "b": ["red pear", "red apple"],
    "c": ["plum tart", "plum jam tart"],
    "d": ["green pear", "pear tart", "apple jam"],
    "e": ["red plum", "pie"],
    "f": ["stone wall house roof"],
}
FACTS = {
    "a": {"domain": Domain.CODE, "trust_level": 90, "metadata": {"team": "one"}, "tier": "core"},
    "b": {"modified_at": NOW - 3600.0, "metadata": {"team": "two"}, "triggers": ("red pear",)},
    "c": {"domain": Domain.HISTORY, "modified_at": NOW - 9e6, "intent": "debug", "citations": 3},
    "f": {"triggers": ("apple", "tart")},  # found by no other channel: to be shown it takes somebody's place
    "d": {"validation": "draft", "trust_level": 10, "metadata": {"team": "one", "source_type": "blog"}},
}
GENERATION = MemoryGeneration(TEXTS, FACTS)
GENERATION.graph = MemoryGraph(
    len(GENERATION.held),
    (EdgeKind.CALLS, 0, 1),
    (EdgeKind.REFERENCES, 2, 5),
    (EdgeKind.CITES, 3, 4),
    (EdgeKind.MENTIONS, 6, "Apple"),
)
GIVEN = SessionMemory(queries=(), shown=tuple(item.content_hash for item in GENERATION.held[:3]))
SURE = Calibration(
    Isotonic((0.0, 1.0), (0.0, 1.0)),
    MatchCalibration(MatchCurve(6.0, 3.0, -4.0), None, None, Answering(0.05, 0.05, 0.05, 100)),
)
SEARCHERS = {
    "learned": a_searcher(GENERATION, encode_batch=3),
    "diverse": a_searcher(GENERATION, diversity=settings().diversity.model_dump() | {"alike": 0.7, "mmr": 0.2}),
    "shallow": a_searcher(GENERATION, depth=2, rerank=settings().rerank.model_dump() | {"depth": 2}),
    "calibrated": a_searcher(
        GENERATION, calibration=SURE, diversity=settings().diversity.model_dump() | {"least_similarity": 0.0}
    ),
    "chunks": a_searcher(GENERATION, unit=ResultUnit.CHUNK.value),
    **{mode.value: a_searcher(GENERATION, fusion=mode.value, convergence_bonus=0.3) for mode in FusionMode},
}


@st.composite
def queries(draw: st.DrawFn) -> list[Query]:
    """Queries of every kind, asked together."""
    return [
        replace(
            a_query(
                " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=4))),
                k=draw(st.integers(1, 6)),
                domain=draw(st.none() | st.sampled_from(Domain)),
                intent=draw(st.sampled_from(["*", "debug"])),
                model=draw(st.sampled_from(["*", "small"])),
                explore=draw(st.booleans()),
                filters=draw(st.sampled_from([{}, {"team": "one"}, {"team": "two"}, {"team": "nobody"}])),
                adaptive=draw(st.booleans()),
                across_domains=draw(st.booleans()),
                memory=draw(st.sampled_from([None, GIVEN])),
                repeats=draw(st.sampled_from(Repeats)),
            ),
            query_id=QueryId(f"q{number}"),
        )
        for number in range(draw(st.integers(1, 7)))
    ]


def told(answer: Answer) -> Answer:
    """All of it but what the clock says."""
    return replace(answer, timings_ms={})


@pytest.mark.parametrize("name", list(SEARCHERS))
@budget(deadline=None, max_examples=12)
@given(asked=queries())
def test_a_batch_answers_bit_for_bit_as_single_searches_do(name: str, asked: list[Query]) -> None:
    """RET-20, ARC-9: whatever else is asked along with a query."""
    searcher = SEARCHERS[name]
    together = searcher.search_many(asked)
    assert [told(answer) for answer in together] == [told(searcher.search(query)) for query in asked]


def test_what_is_left_out_for_one_query_stays_in_for_another() -> None:
    """RET-19: one session's results are suppressed, those of the next one not."""
    shown = GENERATION.held[GENERATION.row_of("red apple")].content_hash
    memory = SessionMemory(shown=(ContentHash(shown),))
    once = a_query("red apple", memory=memory, repeats=Repeats.SUPPRESS)
    without, whole = SEARCHERS["learned"].search_many([once, replace(once, repeats=Repeats.KEEP)])
    assert shown not in {result.content_hash for result in without.results}
    assert shown in {result.content_hash for result in whole.results}
