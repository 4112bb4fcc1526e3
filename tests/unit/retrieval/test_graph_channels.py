"""RET-7: the channels that follow a generation's edges, over graphs in memory."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.support.graphs import a_file, a_graph
from tests.support.memory_graph import MemoryGraph
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher, settings
from weft.domain.errors import StoreError
from weft.domain.links import Link, LinkKind
from weft.domain.ranking import Channel, Signal
from weft.indexes.graph.graph import EdgeKind
from weft.retrieval.channels.following import DegreeChannel, GraphChannel, Vocabulary, degree_scores, passing
from weft.retrieval.channels.run import NOTHING, Hits, Ranked
from weft.settings import load_settings

CALLS, MENTIONS, SIMILAR = EdgeKind.CALLS, EdgeKind.MENTIONS, EdgeKind.SIMILAR
WEIGHTS = dict.fromkeys(EdgeKind, 0.0) | {CALLS: 0.8, MENTIONS: 0.5}
TUNED = settings().graph.model_copy(update={"hops": 2, "decay": 0.5, "least_energy": 0.0, "seed_hits": 2})


def apply_operators(graph: MemoryGraph, text: str, *hits: int, depth: int = 9, **changes: object) -> dict[int, float]:
    """Energy by row, of a query whose dense channel found these rows."""
    names = Vocabulary(graph.spellings())
    channel = GraphChannel(graph.arrays(), names, WEIGHTS, TUNED.model_copy(update=changes))
    first = [{Channel.DENSE: Ranked(Hits.of((row, 0.5) for row in hits))}]
    return dict(channel.follow([text], [None], first, depth)[0].ranking)


def test_energy_decays_per_hop_and_by_the_root_of_the_fan_out() -> None:
    """RET-7: e · decay · weight / √fan-out, per hop."""
    line = MemoryGraph(4, (CALLS, 0, 1), (CALLS, 1, 2), (CALLS, 1, 3))
    once = 1.0 * 0.5 * 0.8 / math.sqrt(1)
    back_and_on = once * 0.5 * 0.8 / math.sqrt(3)
    expected = {1: once, 0: back_and_on, 2: back_and_on, 3: back_and_on}
    assert apply_operators(line, "", 0) == pytest.approx(expected)
    assert apply_operators(line, "", 0, hops=1) == pytest.approx({1: once})


def test_a_named_entity_leads_to_what_mentions_it() -> None:
    """RET-7: from the query's entities, however they are written."""
    graph = MemoryGraph(3, (MENTIONS, 1, "Apache Kafka"), (MENTIONS, 2, "Zookeeper"))
    assert apply_operators(graph, "what does apache-kafka store?", hops=1) == pytest.approx({1: 0.5 * 0.5})
    assert apply_operators(graph, "nothing of the kind") == {}


def test_edges_without_weight_lead_nowhere_and_weak_energy_is_not_passed_on() -> None:
    """RET-7: kinds are weighed; the work is bounded."""
    graph = MemoryGraph(3, (SIMILAR, 0, 1), (CALLS, 0, 2))
    assert set(apply_operators(graph, "", 0, hops=1)) == {2}
    line = MemoryGraph(3, (CALLS, 0, 1), (CALLS, 1, 2))
    assert 2 in apply_operators(line, "", 0, least_energy=0.1)
    assert 2 not in apply_operators(line, "", 0, least_energy=0.5)


def test_two_hits_that_point_to_one_content_lift_it_above_the_neighbour_of_one() -> None:
    """RET-7: activation adds up."""
    graph = MemoryGraph(5, (CALLS, 0, 2), (CALLS, 1, 2), (CALLS, 0, 3), (CALLS, 1, 4))
    energies = apply_operators(graph, "", 0, 1, hops=1)
    assert energies[2] == pytest.approx(energies[3] + energies[4])
    assert next(iter(energies)) == 2


def test_degree_is_its_formula() -> None:
    """RET-7: log(1 + d) / log(1 + d_max); excluded contents have none."""
    edges = MemoryGraph(4, (CALLS, 0, 1), (CALLS, 0, 2), (MENTIONS, 1, "x")).arrays()
    expected = np.log1p([1.6, 1.3, 0.8, 0.0]) / np.log1p(1.6)
    assert degree_scores(edges, WEIGHTS) == pytest.approx(expected)
    assert degree_scores(edges, WEIGHTS, excluded=[0]) == pytest.approx(
        [0.0, 1.0, math.log1p(0.8) / math.log1p(1.3), 0.0]
    )


CAUSAL_WEIGHTS = {
    "caused": 1.0,
    "derived_from": 0.9,
    "enabled": 0.8,
    "contradicts": 0.7,
    "supersedes": 0.6,
    "supports": 0.5,
}


@pytest.mark.parametrize(("kind", "weight"), CAUSAL_WEIGHTS.items())
def test_causal_relations_weigh_what_they_should(kind: str, weight: float) -> None:
    """RET-7, GRA-1: caused 1, derived_from .9 … supports .5, in degree and in spreading; found ones half."""
    tuned, built = settings(), load_settings(environment={}).index.graph
    edges = MemoryGraph(3, (EdgeKind(kind), 0, 1), (EdgeKind.CAUSED, 2, 2)).arrays()
    assert built.found_strength == tuned.graph.found_strength == 0.5
    for strength in (1.0, built.found_strength):
        some = replace(edges, strength=np.array([strength, 1.0]))
        passes = passing(some, tuned.graph_weights)
        assert passes[[0, 1], [1, 0]].tolist() == pytest.approx([weight * strength] * 2)
        assert passes[2, 2] == 0.0  # what stands in both documents of a relation gains nothing by it
        both = replace(some, kind=np.array([some.kind[0], some.kind[1]]), target=np.array([1, 0]))
        scores = degree_scores(both, tuned.degree_weights)
        assert scores[1] / scores[0] == pytest.approx(np.log1p(weight * strength) / np.log1p(weight * strength + 1.0))


def test_declared_relations_lead_to_what_no_channel_finds(tmp_path: Path) -> None:
    """RET-7, GRA-1: through a generation's own table, both ways, from what the words find."""
    page = partial(a_file, language=None)
    files = [
        page("t/cause.md", {}, links=(Link(LinkKind.CAUSED, "effect.md", declared=True),)),
        page("t/effect.md", {}),
        page("t/other.md", {}),
    ]
    graph = a_graph(tmp_path, files)
    hashes = sorted(chunks[0].content_hash for _, chunks in files)
    rows = {document.uri: hashes.index(chunks[0].content_hash) for document, chunks in files}
    channel = GraphChannel(graph.arrays(), Vocabulary([]), settings().graph_weights, TUNED)
    for here, there in (("t/cause.md", "t/effect.md"), ("t/effect.md", "t/cause.md")):
        (ranked,) = channel.follow([""], [None], [{Channel.DENSE: Ranked(Hits.of([(rows[here], 0.9)]))}], 1)
        assert ranked.ranking.rows.tolist() == [rows[there]]


def test_the_cap_of_degree_bounds_what_it_adds_and_makes_no_ties() -> None:
    """RET-7: contents are ranked by their degree as it is; the signal keeps that order, and none is above the cap."""
    texts = [f"page {number}" for number in range(6)]
    generation = MemoryGeneration({f"d{number}": [text] for number, text in enumerate(texts)})
    rows = [generation.row_of(text) for text in texts]
    chain = [(CALLS, rows[0], rows[at]) for at in range(1, 6)] + [(CALLS, rows[1], rows[at]) for at in range(2, 5)]
    generation.graph = MemoryGraph(6, *chain)
    degrees = np.bincount([row for _, *ends in chain for row in ends], minlength=6)
    answer = a_searcher(generation).search(a_query("page"))
    scored = {result.text: result.channels[Channel.DEGREE] for result in answer.results}
    by_degree = sorted(scored, key=lambda text: scored[text].rank)
    counted = [int(degrees[generation.row_of(text)]) for text in by_degree]
    assert counted == sorted(counted, reverse=True)
    assert len({hit.score for hit in scored.values()}) == len(set(counted)) > 2
    assert max(hit.score for hit in scored.values()) == 1.0
    cap = settings().degree.cap
    told = {result.text: result.signals[Signal.DEGREE] for result in answer.results}
    assert told == pytest.approx({text: cap * hit.score for text, hit in scored.items()})


def test_degree_ranks_what_others_found_and_nothing_else() -> None:
    """RET-7: it knows no query."""
    graph = MemoryGraph(4, (CALLS, 0, 1), (CALLS, 0, 2), (CALLS, 0, 3))
    channel = DegreeChannel(graph.arrays(), WEIGHTS)
    first = [{Channel.DENSE: Ranked(Hits.of([(2, 0.9), (0, 0.1)])), Channel.LEXICAL: Ranked(NOTHING)}]
    (ranked,) = channel.follow([""], [None], first, 9)
    assert [row for row, _ in ranked.ranking] == [0, 2]


def test_what_only_an_edge_leads_to_is_found_and_says_so() -> None:
    """RET-7, RET-8: a neighbour of the first hits is a candidate, with its own place and signal."""
    texts = ["how checkpoints are written", "flush pages in order", "yellow bananas"]
    generation = MemoryGeneration({f"d{number}": [text] for number, text in enumerate(texts)})
    hit, linked = generation.row_of(texts[0]), generation.row_of(texts[1])
    generation.graph = MemoryGraph(3, (CALLS, hit, linked))
    (answer,) = [a_searcher(generation, depth=1).search(a_query("checkpoints written"))]
    found = {result.text: result for result in answer.results}
    assert set(found) == {texts[0], texts[1]}
    assert found[texts[1]].channels.keys() == {Channel.GRAPH}
    assert found[texts[1]].signals[Signal.GRAPH] > 0.0
    assert answer.failed_channels == {}


def test_a_channel_without_its_index_is_named_and_changes_nothing_else() -> None:
    """RET-7, ARC-8: a generation without a graph is searched as if nobody had asked for one."""
    documents = {"a": ["how checkpoints are written"], "b": ["flush pages in order"]}

    class Bare(MemoryGeneration):
        @property
        def graph(self) -> object:
            raise StoreError("expected a graph, found none")

        @graph.setter
        def graph(self, _: object) -> None: ...

    query = a_query("checkpoints in order")
    without = a_searcher(Bare(documents)).search(query)
    off = a_searcher(Bare(documents), channels=["dense", "lexical", "triggers"]).search(query)
    assert set(without.failed_channels) == {"graph", "degree"}
    assert without.results == off.results


def test_a_query_that_reaches_no_edge_gives_the_graph_no_share() -> None:
    """RET-14: what cannot be told has no weight."""
    generation = MemoryGeneration({"a": ["how checkpoints are written"], "b": ["flush pages in order"]})
    query = a_query("checkpoints in order")
    off = a_searcher(generation, channels=["dense", "lexical", "triggers"]).search(query)
    assert a_searcher(generation).search(query).results == off.results


def test_a_declared_phrase_finds_its_document() -> None:
    """RET-7: by the share of the query that the phrase is; whole words, whatever their case."""
    facts = {"b": {"triggers": ("Disk Full", "no space left")}}
    generation = MemoryGeneration({"a": ["yellow"], "b": ["volumes and quotas", "more on quotas"]}, facts)
    searcher = a_searcher(generation, depth=1, unit="chunk")
    (found,) = [result for result in searcher.search(a_query("disk full again")).results if "volumes" in result.text]
    assert found.channels[Channel.TRIGGERS].score == pytest.approx(2 / 3)
    assert found.signals[Signal.TRIGGER] == pytest.approx(2 / 3)
    for other in ("diskfull", "full disk", ""):
        answer = searcher.search(a_query(other))
        assert all(Channel.TRIGGERS not in result.channels for result in answer.results)


def test_each_further_encoder_is_a_channel_of_its_own() -> None:
    """RET-7: it ranks, is told and weighs apart; without a second encoder there is no such channel."""
    generation = MemoryGeneration({"a": ["one two"], "b": ["two three"]})
    answer = a_searcher(generation, further=[generation.encoder]).search(a_query("two three"))
    best = answer.results[0]
    assert best.channels[Channel.DENSE_2] == best.channels[Channel.DENSE]
    assert best.signals[Signal.VECTOR_2] == best.signals[Signal.VECTOR]
    assert Signal.VECTOR_2 not in a_searcher(generation).search(a_query("two three")).results[0].signals
