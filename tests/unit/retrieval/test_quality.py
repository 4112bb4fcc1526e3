"""RET-13, RET-19: what is known of a content beside its likeness to the query, and what a session was given before."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec import structs

from tests.support.candidate_tables import AHit, a_context, a_hit, a_table
from tests.support.candidate_tables import told as told_of
from tests.support.memory_graph import MemoryGraph
from tests.support.retrieval_fakes import NOW, EvenBeliefs, MemoryGeneration, a_place, a_query, a_searcher, settings
from weft.domain.links import Authority, Measure, Quadrant, WorkCounts
from weft.domain.ranking import Channel, ChannelHit, Contribution, Repeats, Signal
from weft.domain.reasons import reasons
from weft.domain.understanding import SessionMemory
from weft.indexes.graph.graph import EdgeKind
from weft.retrieval.ranking.final_score import REPEATED
from weft.retrieval.ranking.signals import with_propagated, with_quality
from weft.retrieval.snapshot.documents import GenerationFacts, read_facts

HOUR = 3600.0
TEXTS = {"a": ["one two three x"], "b": ["one two three y"]}


def told(facts: dict[str, object], **query: object) -> dict[Signal, float]:
    """Signals of the result in document "a", of which these facts are known."""
    answer = a_searcher(MemoryGeneration(TEXTS, {"a": facts})).search(a_query("one two", **query))
    return dict(next(result.signals for result in answer.results if result.uris == ("a",)))


@pytest.mark.parametrize(
    ("facts", "signal", "expected"),
    [
        ({"tier": "Core"}, Signal.TIER, EvenBeliefs.declared.tiers["core"]),
        ({"validation": "reviewed"}, Signal.VALIDATION, EvenBeliefs.declared.validations["reviewed"]),
        ({"indexed_at": NOW - 12 * HOUR}, Signal.NOVELTY, 1 / 2),
        ({"citations": 30}, Signal.AUTHORITY, 0.2 + 0.1 * math.log(31) / math.log(1001)),
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


def authority_in(generation: MemoryGeneration) -> dict[str, Authority]:
    answer = a_searcher(generation).search(a_query("one two"))
    told = {result.uris[0]: result.authority for result in answer.results}
    signals = {result.uris[0]: result.signals[Signal.AUTHORITY] for result in answer.results}
    assert all(each is not None and each.value == signals[uri] for uri, each in told.items())
    return {uri: each for uri, each in told.items() if each is not None}


def test_documents_that_refer_to_one_another_are_cited_from_the_first_day() -> None:
    """CIT-2: each other document once, however often and in whatever way it does; not what is said of oneself."""
    texts = {name: [f"one two {name}"] for name in "abcd"} | {"e": ["one two e", "one two f"]}
    generation = MemoryGeneration(texts)
    rows = {name: generation.row_of(f"one two {name}") for name in "abcdef"}
    edges = [
        *[(EdgeKind.CITES, rows[one], rows["c"]) for one in "abd"],
        (EdgeKind.IMPORTS, rows["a"], rows["c"]),
        (EdgeKind.REFERENCES, rows["e"], rows["c"]),
        (EdgeKind.REFERENCES, rows["f"], rows["c"]),
        (EdgeKind.REFERENCES, rows["e"], rows["f"]),
        (EdgeKind.SIMILAR, rows["a"], rows["b"]),
    ]
    generation.graph = MemoryGraph(6, *edges)
    found = authority_in(generation)
    here = math.log(1 + 4) / math.log(1 + 20)
    assert found["c"].internal == pytest.approx(here)
    assert found["c"].quadrant is Quadrant.INTERNAL
    assert found["c"].value == pytest.approx(0.5 + 0.3 * here)
    assert {name: found[name].internal for name in "abde"} == dict.fromkeys("abde", 0.0)


def test_counts_come_with_the_document() -> None:
    """CIT-1, CIT-3: citations and facts named as measures are, and the quadrant is told with its confidence."""
    texts = {name: [f"one two {name}"] for name in "abc"}
    facts = {"a": {"citations": 1000}, "b": {"metadata": {"stars": "50000", "downloads": "many"}}}
    found = authority_in(MemoryGeneration(texts, facts))
    assert {name: (each.quadrant, each.confidence, each.external) for name, each in found.items()} == {
        "a": (Quadrant.EXTERNAL, 0.6, 1.0),
        "b": (Quadrant.EXTERNAL, 0.6, 1.0),
        "c": (Quadrant.NEITHER, 0.4, 0.0),
    }


def test_what_providers_say_goes_before_what_documents_declare() -> None:
    """CIT-1."""
    generation = MemoryGeneration(TEXTS, {"a": {"citations": 7, "metadata": {"doi": "10.1/x"}}, "b": {"citations": 2}})
    counted = {"semantic_scholar:DOI:10.1/x": WorkCounts(0.0, {Measure.CITATIONS: 90.0, Measure.H_INDEX: 12.0})}
    facts = read_facts(generation, generation.encoder.name, counted=counted)
    assert facts.citations.counts(np.array([0, 1])).tolist() == [90.0, 2.0]


def test_explanations_name_the_quadrant_with_its_confidence() -> None:
    """CIT-3: in words and in JSON."""
    answer = a_searcher(MemoryGeneration(TEXTS, {"a": {"citations": 1000}})).search(a_query("one two"))
    result = next(each for each in answer.results if each.uris == ("a",))
    told = result.to_dict()["authority"]
    assert told == {"quadrant": "external", "value": 0.55, "confidence": 0.6, "external": 1.0, "internal": 0.0}
    loudest = structs.replace(result, contributions=(Contribution("authority", 0.55, 1.0, 0.55),))
    assert reasons(loudest) == ("much refers to it elsewhere (confidence 0.60)",)
    plain = a_searcher(MemoryGeneration(TEXTS)).search(a_query("one two")).results[0]
    assert plain.authority is None
    assert plain.to_dict()["authority"] is None


def test_structure_is_how_whole_and_readable_a_chunk_is() -> None:
    """RET-13: the parse's quality times the share of the unit that the chunk holds."""
    facts = GenerationFacts(available_signals=frozenset({Signal.STRUCTURE}), structure=np.array([1.0, 0.8 * 0.5]))
    found = a_table(a_hit("text", {}, places=(a_place("a", "text", place=1),)), context=a_context(facts=facts))
    seen = with_quality(found, settings().quality)
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


def test_a_memory_reads_back() -> None:
    """RET-19, LRN-15: what was given is part of it."""
    memory = SessionMemory().given(["a", "b"], limit=5)
    assert SessionMemory.from_json(memory.to_json()) == memory
