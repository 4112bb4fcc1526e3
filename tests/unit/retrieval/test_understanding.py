"""RET-1 … RET-6: what a query asks for, and how that changes the way it is answered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.retrieval_fakes import (
    MemoryGeneration,
    MemoryGraph,
    a_query,
    a_searcher,
    settings,
)
from weft.domain.documents import Domain
from weft.domain.ranking import ANY, Channel
from weft.domain.understanding import Complexity, QueryType
from weft.indexes.graph.graph import EdgeKind
from weft.learning.calibration.matching import Answering, MatchCalibration, MatchCurve
from weft.learning.calibration.scores import Isotonic, ScoreCalibration
from weft.retrieval.answer.trace import understanding_line
from weft.retrieval.channels.second_pass import feedback_variant, neighbour_variant
from weft.retrieval.query.understanding import (
    compares,
    complexity,
    inferred_filters,
    query_type,
)
from weft.retrieval.snapshot.documents import GenerationFacts

TUNED = settings().understanding
FRUIT = MemoryGeneration(
    {
        "a": ["red apple pie"],
        "b": ["green apple tart"],
        "c": ["yellow banana bread"],
        "d": ["Store.get_page reads a page"],
        "e": ["pages are written in order"],
        "f": ["a tart is baked"],
    }
)


def understanding(**changes: dict[str, object]) -> dict[str, object]:
    """Settings with some values of some sections changed."""
    held = TUNED.model_dump()
    return {"understanding": {**held, **{name: {**held[name], **values} for name, values in changes.items()}}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How does the updater commit its offsets?", QueryType.HOW),
        ("explain what happens when a broker is killed", QueryType.HOW),
        ("TypeError: expected str in line 40", QueryType.DEBUG),
        ("search crashes with an exception", QueryType.DEBUG),
        ("overview of alternatives to BM25", QueryType.EXPLORATORY),
        ("where is `Store.get_page` defined", QueryType.SPECIFIC),
    ],
)
def test_the_type_is_told_by_cues(text: str, expected: QueryType) -> None:
    """RET-1: and the cues are told."""
    kind, confidence, cues = query_type(text, TUNED.type)
    assert kind is expected
    assert confidence >= TUNED.type.intent_from
    assert cues


def test_cues_of_two_types_leave_doubt() -> None:
    """RET-1: confidence is the share of the cues, with one more for what was not seen."""
    assert query_type("explain the alternatives", TUNED.type)[1] == pytest.approx(1 / 3)
    assert query_type("bananas", TUNED.type) == (QueryType.SPECIFIC, 0.0, ())


def test_an_inferred_intent_is_read_once_and_a_stated_one_stands() -> None:
    """RET-1, LRN-5: it is the intent of the query that is ranked and shown, so that weights and feedback share it."""
    searcher = a_searcher(FRUIT)
    assert searcher.search(a_query("how does an apple pie work")).query.intent == QueryType.HOW.value
    assert searcher.search(a_query("how does an apple pie work", intent="mine")).query.intent == "mine"
    assert searcher.search(a_query("apple pie")).query.intent == ANY


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("get_page", Complexity.SIMPLE),
        ("Store.get_page read_page", Complexity.SIMPLE),
        ('"late events"', Complexity.SIMPLE),
        ("page", Complexity.SIMPLE),
        ("docs/install/linux.md", Complexity.SIMPLE),
        ("/etc/weft.toml", Complexity.SIMPLE),
        ("breast cancer", Complexity.SIMPLE),
        ("read one page slowly again", Complexity.MODERATE),
        ("how pages", Complexity.MODERATE),
        ("Nutmeg toxicity?", Complexity.MODERATE),
        ("what does Store.get_page do", Complexity.MODERATE),
        ("run my notebooks in VS Code", Complexity.MODERATE),
        ("levels, which fall, are measured", Complexity.MODERATE),
        ("What is a page? Who writes it?", Complexity.COMPLEX),
        ("what is a lock and when should I hold one", Complexity.COMPLEX),
        ("locks vs. leases", Complexity.COMPLEX),
        ("difference between editable mode of uv sync and uv pip install", Complexity.COMPLEX),
        ("trade-offs of caching pages", Complexity.COMPLEX),
        ("word " * 30, Complexity.COMPLEX),
        ("", Complexity.MODERATE),
    ],
)
def test_complexity_is_told_by_what_is_asked(text: str, expected: Complexity) -> None:
    """RET-2."""
    assert complexity(text, TUNED.router) is expected


def test_a_name_is_searched_for_in_all_channels() -> None:
    """RET-2, RET-22: also where the number of results is left open; three by words alone answer no name."""
    generation = MemoryGeneration({f"d{number}": [f"get_page {number}"] for number in range(6)})
    searcher = a_searcher(generation)
    routed, asked = (searcher.search(a_query("get_page", adaptive=adaptive, k=20)) for adaptive in (True, False))
    assert routed.results == asked.results
    assert len(routed.results) == 6
    assert {Channel.DENSE, Channel.LEXICAL} <= set(asked.results[0].channels)


def test_a_simple_query_that_one_channel_cannot_answer_searches_all() -> None:
    """RET-2: cheap where it does, never worse where it does not."""
    answer = a_searcher(FRUIT).search(a_query("get_pages", adaptive=True))
    assert answer.results
    assert {channel for result in answer.results for channel in result.channels} == {Channel.DENSE}


def test_keywords_are_simple_where_the_best_by_words_bears_them_as_its_name() -> None:
    """RET-2: title, headings, symbol or path name it; else all channels answer, as they do a moderate query."""
    texts = {f"n{number}": [f"pie number {number}"] for number in range(5)}
    named = MemoryGeneration({**texts, "docs/apple-pies.md": ["apple pie"]})
    routed = a_searcher(named).search(a_query("apple pie", adaptive=True, k=20))
    assert routed.understanding is not None
    assert (routed.understanding.complexity, len(routed.results)) == (Complexity.SIMPLE, 3)
    assert {channel for result in routed.results for channel in result.channels} == {Channel.LEXICAL}
    unnamed = a_searcher(MemoryGeneration({**texts, "x": ["apple pie"]}))
    other = unnamed.search(a_query("apple pie", adaptive=True, k=20))
    assert other.understanding is not None
    assert (other.understanding.complexity, other.understanding.limit) == (Complexity.MODERATE, 10)
    assert other.results == unnamed.search(a_query("apple pie", k=20)).results


def test_the_router_can_be_switched_off() -> None:
    """ARC-8."""
    answer = a_searcher(FRUIT, **understanding(router={"enabled": False})).search(a_query("get_page", adaptive=True))
    assert any(Channel.DENSE in result.channels for result in answer.results)


def test_terms_of_the_first_results_make_a_variant() -> None:
    """RET-3: those that the first results share and the others lack, without the query's own."""
    first = ["apple pie with cinnamon", "apple tart with cinnamon", "the cinnamon apple"]
    variant = feedback_variant("apple", first, ["the pie", "the bread with butter", "with jam"])
    assert variant is not None
    assert variant.text.split()[0] == "cinnamon"
    assert "apple" not in variant.text.split()
    assert feedback_variant("apple", ["apple"], []) is None


def test_names_beside_those_in_the_query_make_a_variant() -> None:
    """RET-3: what the query names already is left out."""
    variant = neighbour_variant("what is Kafka", ["Kafka", "Zookeeper", "Zookeeper"])
    assert variant is not None
    assert variant.text == "Zookeeper"
    assert neighbour_variant("what is Kafka", ["kafka"]) is None


def test_a_complex_query_is_asked_in_other_words_too_and_says_so() -> None:
    """RET-3: at most three variants; a moderate query with enough results has none."""
    sweet = {f"s{number}": [f"apple cinnamon {name}"] for number, name in enumerate(("pie", "tart", "jam"))}
    others = {f"o{number}": [f"stone {number}"] for number in range(9)}
    searcher = a_searcher(MemoryGeneration({**sweet, **others}))
    complex_one = searcher.search(a_query("which apple ? which tart ?"))
    assert complex_one.understanding is not None
    assert 1 <= len(complex_one.understanding.variants) <= 3
    assert complex_one.to_dict()["understanding"]["variants"]
    moderate = searcher.search(a_query("apple tart"))
    assert moderate.understanding is not None
    assert moderate.understanding.variants == ()


SURE = ScoreCalibration(
    Isotonic((0.0, 1.0), (0.0, 1.0)),
    MatchCalibration(MatchCurve(6.0, 3.0, -4.0), None, None, Answering(0.3, None, 0.05, 100)),
)


@pytest.mark.parametrize(
    ("least", "good", "expands"), [(1, 0, True), (1, 1, False), (5, 0, True), (5, 4, True), (5, 5, False)]
)
def test_a_gap_in_the_evidence_is_searched_in_other_words_too(least: int, good: int, expands: bool) -> None:
    """RET-3: fewer results that match better than what has no answer, however many there are."""
    sweet = {f"s{number}": [f"apple cinnamon sugar {number}"] for number in range(good)}
    others = {f"o{number}": [f"apple stone rock pebble gravel grit flint {number}"] for number in range(6)}
    far = {f"f{number}": [f"sand {number}"] for number in range(30)}
    generation = MemoryGeneration({**sweet, **others, **far})
    wordy = a_query("apple cinnamon")
    rules = understanding(expansion={"fewer_than": least})
    known = a_searcher(generation, calibration=SURE, **rules).search(wordy)
    unknown = a_searcher(generation).search(wordy)
    assert known.understanding is not None
    assert unknown.understanding is not None
    assert bool(known.understanding.variants) is expands
    assert unknown.understanding.variants == ()


@pytest.mark.parametrize("weight", [2.0, 8.0])
def test_the_query_counts_several_variants(weight: float) -> None:
    """RET-3: a content's score is (weight · query + Σ variants) / (weight + variants)."""
    generation = MemoryGeneration({"a": ["red apple"], "b": ["banana bread"]})
    hits = [generation.row_of("red apple"), generation.row_of("banana bread")]
    generation.graph = MemoryGraph(2, (EdgeKind.MENTIONS, hits[0], "apple"), (EdgeKind.MENTIONS, hits[0], "banana"))
    names_alone = understanding(expansion={"variants": 1, "original_weight": weight})
    answer = a_searcher(generation, **names_alone).search(a_query("apple ? apple ?"))
    assert answer.understanding is not None
    assert [variant.text for variant in answer.understanding.variants] == ["banana"]
    found = {result.text: result.channels[Channel.LEXICAL].score for result in answer.results}
    assert found == pytest.approx({"red apple": weight / (weight + 1), "banana bread": 1 / (weight + 1)})


def test_a_match_is_that_of_the_querys_own_words() -> None:
    """RET-3, RET-15: other words help to find a result; how well it answers the query they do not say."""
    sweet = {f"s{number}": [f"apple cinnamon {name}"] for number, name in enumerate(("pie", "tart", "jam"))}
    generation = MemoryGeneration({**sweet, **{f"o{number}": [f"stone {number}"] for number in range(9)}})
    query = a_query("which apple ? which tart ?")
    expanded = a_searcher(generation).search(query)
    plain = a_searcher(generation, **understanding(expansion={"enabled": False})).search(query)
    assert expanded.understanding is not None
    assert expanded.understanding.variants
    assert [result.score for result in expanded.results] != [result.score for result in plain.results]
    own = {result.content_hash: result.match for result in plain.results}
    shared = [result for result in expanded.results if result.content_hash in own]
    assert len(shared) > 3
    for result in shared:
        assert result.match == own[result.content_hash]


def test_expansion_can_be_switched_off() -> None:
    """ARC-8: bit for bit what it was before."""
    query = a_query("which apple ? which tart ?")
    off = a_searcher(FRUIT, **understanding(expansion={"enabled": False})).search(query)
    none = a_searcher(FRUIT, **understanding(expansion={"variants": 0, "fewer_than": 0})).search(query)
    assert off.results == none.results
    assert off.understanding is not None
    assert off.understanding.variants == ()


FACTS = GenerationFacts(
    {"folder": frozenset({"src", "src/store", "src/log"}), "domain": frozenset({"code", "general"})}
)


@pytest.mark.parametrize(
    ("text", "kept", "filters"),
    [
        ("layout domain:code", "layout", {"domain": ("code", True)}),
        ("layout domain:poetry", "layout domain:poetry", {}),
        ("pages in src/store", "pages in src/store", {"folder": ("src/store", True)}),
        ("what is src/store", "what is src/store", {"folder": ("src/store", False)}),
        ("pages in lib/store", "pages in lib/store", {}),
        ("changes since:2024-05-31", "changes", {"since": ("2024-05-31", True)}),
        ("see http://src/store", "see http://src/store", {}),
        ("domain:code", "domain:code", {"domain": ("code", True)}),
    ],
)
def test_filters_are_inferred_as_far_as_they_are_sure(text: str, kept: str, filters: dict[str, object]) -> None:
    """RET-4: above .8 they leave documents out; what no document has is no filter."""
    sought, found = inferred_filters(text, FACTS.has_value, TUNED.prefilter)
    assert sought == kept
    assert {each.name: (each.value, each.applied) for each in found} == filters


@pytest.mark.parametrize(
    "text",
    [
        "difference between retries in src/store and in src/log",
        "pages in src/store and in src/log",
        "how do pages in src/store differ from others",
        "compare pages in src/store with files",
        "pages folder:src/store folder:src/log",
        "locks domain:code domain:general",
    ],
)
def test_a_query_that_names_two_values_or_compares_leaves_nothing_out(text: str) -> None:
    """RET-4: both are told, none is applied, and what was stated stays among the words."""
    sought, found = inferred_filters(text, FACTS.has_value, TUNED.prefilter, compares=compares(text, TUNED.router))
    assert found
    assert not any(each.applied for each in found)
    assert sought == text


def test_a_comparison_between_folders_searches_both() -> None:
    """RET-4: through the whole search."""
    texts = {"src/store/a": ["retries of a"], "src/log/b": ["retries of b"], "lib/c": ["retries of c"]}
    answer = a_searcher(MemoryGeneration(texts)).search(
        a_query("difference between retries in src/store and in src/log")
    )
    assert {result.uris[0] for result in answer.results} == set(texts)


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("apple langauge:python", ("langauge:python",)),
        ('apple team:b team:"d e"', ('team:"d e"',)),
        ("apple since:yesterday", ("since:yesterday",)),
        ("apple team:b at 10:30 x:int https://a/b std::sort", ()),
    ],
)
def test_a_filter_that_no_document_meets_is_told(text: str, unknown: tuple[str, ...]) -> None:
    """RET-4: it becomes words, and whoever mistyped it sees that; what no filter looks like is not told."""
    searcher = a_searcher(MemoryGeneration({"b": ["apple b"]}, {"b": {"metadata": {"team": "b"}}}))
    answer = searcher.search(a_query(text))
    assert answer.understanding is not None
    assert answer.understanding.unknown == unknown
    assert answer.to_dict()["understanding"]["unknown_filters"] == list(unknown)
    line = understanding_line(answer.understanding)
    assert all(f"no document has {each}: taken as words" in line for each in unknown)
    off = a_searcher(MemoryGeneration({"b": ["apple"]}), **understanding(prefilter={"enabled": False}))
    assert off.search(a_query(text)).understanding.unknown == ()  # type: ignore[union-attr]


def test_an_inferred_filter_leaves_documents_out_and_an_explicit_one_stands_above_it() -> None:
    """RET-4."""
    facts = {name: {"metadata": {"team": name}} for name in "abc"}
    searcher = a_searcher(MemoryGeneration({name: [f"apple {name}"] for name in "abc"}, facts))
    assert [result.uris for result in searcher.search(a_query("apple team:b")).results] == [("b",)]
    explicit = searcher.search(a_query("apple team:b", filters={"team": "c"}))
    assert [result.uris for result in explicit.results] == [("c",)]
    off = understanding(prefilter={"enabled": False})
    assert (
        len(a_searcher(MemoryGeneration({"a": ["apple"], "b": ["pie"]}), **off).search(a_query("team:b")).results) == 2
    )


def test_an_agent_searches_its_home_unless_it_asks_for_more() -> None:
    """RET-5."""
    facts = {"c": {"domain": Domain.CODE}}
    generation = MemoryGeneration({"c": ["apple def"], "t": ["apple text"]}, facts)
    searcher = a_searcher(generation, **understanding(scope={"homes": {"coder": "code"}}))
    at_home = searcher.search(a_query("apple", agent="coder"))
    assert [result.domain for result in at_home.results] == [Domain.CODE]
    assert at_home.understanding is not None
    assert at_home.understanding.home == "code"
    for more in ({"across_domains": True}, {"domain": Domain.GENERAL}, {"agent": "other"}):
        assert len(searcher.search(a_query("apple", **{"agent": "coder", **more})).results) == 2


def test_a_query_leaves_its_query_as_it_was() -> None:
    """RET-1: only what was left open is filled in."""
    query = a_query("how does an apple pie work", domain=Domain.CODE, filters={"team": "x"})
    read = a_searcher(FRUIT).search(query).query
    assert replace(read, intent=ANY) == query
