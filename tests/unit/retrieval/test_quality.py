"""RET-13, RET-19: what is known of a content beside its likeness to the query, and what a session was given before."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipelines.domain.ranking import Channel, ChannelHit, Repeats, Signal
from pipelines.domain.sessions import SessionMemory
from pipelines.indexes.graph.graph import EdgeKind
from pipelines.retrieval.ranking.final_score import REPEATED
from pipelines.retrieval.ranking.signals import Moment, with_propagated, with_quality
from pipelines.retrieval.snapshot.documents import GenerationFacts
from tests.support.candidate_tables import AHit, a_hit, a_table
from tests.support.candidate_tables import told as told_of
from tests.support.retrieval_fakes import (
    NOW,
    EvenBeliefs,
    MemoryGeneration,
    MemoryGraph,
    a_place,
    a_query,
    a_searcher,
    settings,
)

HOUR = 3600.0
TEXTS = {"a": ["one two three x"], "b": ["one two three y"]}


def told(facts: dict[str, object], **query: object) -> dict[Signal, float]:
    """Signals of the result in document "a", of which these facts are known."""
    answer = a_searcher(MemoryGeneration(TEXTS, {"a": facts})).search(a_query("one two", **query))
    return dict(next(result.signals for result in answer.results if result.uris == ("a",)))


@pytest.mark.parametrize(
    ("facts", "signal", "expected"),
    [
        ({"tier": "Core"}, Signal.TIER, settings().quality.tiers["core"]),
        ({"validation": "reviewed"}, Signal.VALIDATION, settings().quality.validations["reviewed"]),
        ({"indexed_at": NOW - 12 * HOUR}, Signal.NOVELTY, 1 / 2),
        ({"citations": 3}, Signal.AUTHORITY, 1.0),
        ({"intent": "Debug"}, Signal.CONGRUENCE, 1.0),
        ({"intent": "decision"}, Signal.CONGRUENCE, 0.0),
    ],
)
def test_what_a_document_declares_is_told(facts: dict[str, object], signal: Signal, expected: float) -> None:
    """RET-13."""
    assert told(facts, intent="debug")[signal] == pytest.approx(expected)


def test_what_nobody_declares_has_no_share() -> None:
    """RET-13: inactive where unknown; a word that nobody knows tells nothing."""
    plain = told({})
    optional = {Signal.TIER, Signal.VALIDATION, Signal.NOVELTY, Signal.AUTHORITY, Signal.CONGRUENCE, Signal.SESSION}
    assert optional.isdisjoint(plain)
    assert Signal.TIER not in told({"tier": "whatever"})
    answer = a_searcher(MemoryGeneration(TEXTS)).search(a_query("one two"))
    named = {part.name for result in answer.results for part in result.contributions}
    assert named.isdisjoint({signal.value for signal in optional})
    # Without a stated purpose of the query there is nothing to be congruent with.
    assert Signal.CONGRUENCE not in told({"intent": "decision"})


def test_authority_counts_citations_on_a_logarithmic_scale() -> None:
    """RET-13: those declared, and those found in the corpus itself, whichever are more."""
    texts = {name: [f"one two {name}"] for name in "abcd"}
    generation = MemoryGeneration(texts, {"a": {"citations": 7}, "b": {"citations": 1}})
    rows = {name: generation.row_of(f"one two {name}") for name in "abcd"}
    cites = [(EdgeKind.CITES, rows[one], rows["c"]) for one in "abd"]
    generation.graph = MemoryGraph(4, *cites)
    answer = a_searcher(generation).search(a_query("one two"))
    found = {result.uris[0]: result.signals[Signal.AUTHORITY] for result in answer.results}
    expected = {"a": 7, "b": 1, "c": 3, "d": 0}
    assert found == pytest.approx({name: math.log1p(count) / math.log1p(7) for name, count in expected.items()})


def test_structure_is_how_whole_and_readable_a_chunk_is() -> None:
    """RET-13: the parse's quality times the share of the unit that the chunk holds."""
    facts = GenerationFacts(available_signals=frozenset({Signal.STRUCTURE}), structure=np.array([1.0, 0.8 * 0.5]))
    found = a_table(a_hit("text", {}, places=(a_place("a", "text", place=1),)))
    seen = with_quality(found, [EvenBeliefs()], [Moment(a_query("q"), NOW, facts)], settings().quality)
    assert seen.signal(Signal.STRUCTURE).tolist() == pytest.approx([0.4])


def test_a_whole_gets_its_best_parts_score_per_level() -> None:
    """RET-13: 0.3 per level up, also over a level that is no candidate itself."""
    # section ← paragraph ← sentence, and section ← figure ← caption, whose figure nobody found
    parents = np.array([-1, 0, 1, 0, 3])
    facts = GenerationFacts(available_signals=frozenset({Signal.PROPAGATED}), parents=parents)

    def scored(name: str, place: int, score: float) -> AHit:
        return a_hit(
            name, {Channel.DENSE: ChannelHit(1, score)}, places=(a_place("d", name, place=place),), score=score
        )

    found = a_table(
        scored("a section", 0, 0.1), scored("paragraph", 1, 0.2), scored("sentence", 2, 0.5), scored("caption", 4, 0.9)
    )
    whole = with_propagated(found, facts, settings().quality)
    seen = {each.text: each.signals[Signal.PROPAGATED] for each in told_of(whole)}
    section = max(0.2 * 0.3, 0.5 * 0.09, 0.9 * 0.09)
    assert seen == pytest.approx({"a section": section, "paragraph": 0.5 * 0.3, "sentence": 0.0, "caption": 0.0})
    without = with_propagated(found, GenerationFacts(), settings().quality)
    assert all(Signal.PROPAGATED not in each.signals for each in told_of(without))


def test_signals_without_prior_weight_change_no_order() -> None:
    """ARC-8: with or without what documents declare, until evidence says otherwise; here every weight is even."""
    off = [signal.value for signal in (Signal.TIER, Signal.VALIDATION, Signal.STRUCTURE, Signal.PROPAGATED)]
    facts = {"b": {"tier": "core", "validation": "verified"}}
    with_facts = a_searcher(MemoryGeneration(TEXTS, facts), without_signals=off).search(a_query("one two three"))
    plain = a_searcher(MemoryGeneration(TEXTS), without_signals=off).search(a_query("one two three"))
    assert [result.score for result in with_facts.results] == [result.score for result in plain.results]


def remembering(*texts: str, **more: object) -> tuple[object, SessionMemory]:
    searcher = a_searcher(MemoryGeneration({"a": ["red apple"], "b": ["red pear"], "c": ["red plum"]}), **more)
    memory = SessionMemory()
    for text in texts:
        memory = searcher.search(a_query(text, k=1, memory=memory)).memory or memory
    return searcher, memory


def test_what_lies_near_the_sessions_questions_says_so() -> None:
    """RET-13: the cosine to the centroid of the recent queries."""
    searcher, memory = remembering("apple", "apple")
    answer = searcher.search(a_query("red", memory=memory))  # type: ignore[attr-defined]
    near = {result.uris[0]: result.signals[Signal.SESSION] for result in answer.results}
    assert near["a"] > max(near["b"], near["c"])


def test_results_given_before_can_be_left_out_or_lowered() -> None:
    """RET-19: as the query asks; kept where it does not, and the memory grows by what was given."""
    searcher, memory = remembering("red apple")
    assert len(memory.shown) == 1
    search = searcher.search  # type: ignore[attr-defined]
    kept = search(a_query("red apple", memory=memory))
    assert kept.results[0].content_hash == memory.shown[0]
    assert memory.shown[0] not in {
        result.content_hash for result in search(a_query("red apple", memory=memory, repeats=Repeats.SUPPRESS)).results
    }
    lowered = search(a_query("red apple", memory=memory, repeats=Repeats.LOWER))
    (repeated,) = [result for result in lowered.results if result.content_hash == memory.shown[0]]
    assert repeated.score == pytest.approx(kept.results[0].score * (1 - settings().session.repeat_penalty))
    assert repeated.contributions[-1].name == REPEATED
    assert len(search(a_query("red pear", k=1, memory=memory)).memory.shown) == 2


def test_a_memory_reads_back_and_older_ones_are_still_read() -> None:
    """RET-19, LRN-15: what was given is part of it."""
    memory = SessionMemory().given(["a", "b"], limit=5)
    assert SessionMemory.from_json(memory.to_json()) == memory
    assert SessionMemory.from_json('{"draws": 1, "shift": [], "queries": []}') == SessionMemory(draws=1)
