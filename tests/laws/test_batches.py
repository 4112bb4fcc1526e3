"""RET-20, ARC-9: queries that are ranked in one table do not mind each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from tests.support.memory_graph import MemoryGraph
from tests.support.retrieval_fakes import NOW, MemoryGeneration, a_query, a_searcher, settings
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash, QueryId
from weft.domain.ranking import Answer, Query, Repeats
from weft.domain.understanding import SessionMemory
from weft.indexes.graph.graph import EdgeKind
from weft.learning.calibration.matching import Answering, MatchCalibration, MatchCurve
from weft.learning.calibration.scores import Isotonic, ScoreCalibration
from weft.retrieval.settings import FusionMode, ResultUnit

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
_TART = tuple(GENERATION.encoder.encode(["plum tart"])[0].tolist())
ELSEWHERE = SessionMemory(queries=(_TART,) * 3, shift=(0.0,) * 3)  # most queries change its topic: they search deeper
GIVEN = SessionMemory(queries=(), shown=tuple(item.content_hash for item in GENERATION.held[:3]))
SURE = ScoreCalibration(
    Isotonic((0.0, 1.0), (0.0, 1.0)),
    MatchCalibration(MatchCurve(6.0, 3.0, -4.0), None, None, Answering(0.05, 0.05, 0.05, 100)),
)
SEARCHERS = {
    "learned": a_searcher(GENERATION, encode_batch=3),
    "diverse": a_searcher(
        GENERATION, diversity=settings().diversity.model_dump() | {"duplicate_cosine": 0.7, "mmr": 0.2}
    ),
    "shallow": a_searcher(GENERATION, depth=2, rerank=settings().rerank.model_dump() | {"depth": 2}),
    "calibrated": a_searcher(
        GENERATION, calibration=SURE, diversity=settings().diversity.model_dump() | {"least_similarity": 0.0}
    ),
    "chunks": a_searcher(GENERATION, unit=ResultUnit.CHUNK.value),
    **{mode.value: a_searcher(GENERATION, fusion=mode.value) for mode in FusionMode},
}


@st.composite
def queries(draw: st.DrawFn) -> list[Query]:
    """Queries of every kind, asked together."""
    return [
        replace(
            a_query(
                " ".join(
                    [*draw(st.lists(st.sampled_from(WORDS), max_size=4)), draw(st.sampled_from(["", "", "? why ?"]))]
                ),
                k=draw(st.integers(1, 6)),
                domain=draw(st.none() | st.sampled_from(Domain)),
                intent=draw(st.sampled_from(["*", "debug"])),
                model=draw(st.sampled_from(["*", "small"])),
                explore=draw(st.booleans()),
                filters=draw(st.sampled_from([{}, {"team": "one"}, {"team": "two"}, {"team": "nobody"}])),
                adaptive=draw(st.booleans()),
                across_domains=draw(st.booleans()),
                memory=draw(st.sampled_from([None, GIVEN, ELSEWHERE])),
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


@pytest.mark.parametrize("name", list(SEARCHERS))
@budget(deadline=None, max_examples=12)
@given(asked=queries())
def test_a_ranking_alone_is_that_of_the_answer_to_the_bit(name: str, asked: list[Query]) -> None:
    """RET-20, ARC-7, EVA-7: the score of a result is what its contributions add up to."""
    searcher = SEARCHERS[name]
    explained = [answer.results for answer in searcher.search_many(asked)]
    assert searcher.rank_many(asked) == [
        tuple((result.content_hash, result.uris, result.score) for result in results) for results in explained
    ]


def test_who_searches_deeper_takes_nobody_along() -> None:
    """RET-3, RET-6: a change of topic deepens its own search, not that of another query asked in other words."""
    texts = [f"red {word} {other}" for word in WORDS[1:] for other in WORDS[1:]]
    generation = MemoryGeneration({f"d{number}": [text] for number, text in enumerate(texts)})
    searcher = a_searcher(generation, depth=6)
    wall = tuple(generation.encoder.encode(["jam"])[0].tolist())
    moved = a_query("red pear", memory=SessionMemory(queries=(wall,) * 3, shift=(0.0,) * 3))
    complex_ones = [a_query(f"red {word} ? why ?") for word in WORDS[1:]]
    together, alone = searcher.search_many([moved, *complex_ones])[1:], list(map(searcher.search, complex_ones))
    assert any(answer.understanding.variants for answer in alone)  # type: ignore[union-attr]
    assert [told(answer) for answer in together] == [told(answer) for answer in alone]


def test_a_channel_is_missed_by_those_alone_who_wanted_it() -> None:
    """RET-7: what fails over one query's other words is not left out for its neighbour."""

    class FailsOnce:
        def __init__(self, index: Any) -> None:
            self.index, self.calls = index, 0

        def search_many(self, *asked: Any) -> Any:
            self.calls += 1
            if self.calls == 3:  # opening asks first, then the first of the two
                raise OSError("the index is gone")
            return self.index.search_many(*asked)

    generation = MemoryGeneration({f"d{n}": [f"red w{n} {'apple pie' if n % 3 else 'plum'}"] for n in range(40)})
    generation.lexical = FailsOnce(generation.lexical)
    plain, other_words = a_searcher(generation).search_many([a_query("red"), a_query("what ? red ? w1 w2 w4")])
    assert plain.failed_channels == {}
    assert other_words.understanding is not None
    assert other_words.understanding.variants
    assert other_words.failed_channels == {"lexical": "OSError: the index is gone"}


def test_what_is_left_out_for_one_query_stays_in_for_another() -> None:
    """RET-19: one session's results are suppressed, those of the next one not."""
    shown = GENERATION.held[GENERATION.row_of("red apple")].content_hash
    memory = SessionMemory(shown=(ContentHash(shown),))
    once = a_query("red apple", memory=memory, repeats=Repeats.SUPPRESS)
    without, whole = SEARCHERS["learned"].search_many([once, replace(once, repeats=Repeats.KEEP)])
    assert shown not in {result.content_hash for result in without.results}
    assert shown in {result.content_hash for result in whole.results}
