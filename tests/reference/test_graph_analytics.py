"""GRA-2: what a graph says of its places, against NetworkX on small graphs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.indexes.graph.build import (
    DAMPING,
    WeightedEdges,
    analytics,
    betweenness,
    causal_depths,
    communities,
    contradictions,
    degrees,
    pagerank,
)
from weft.indexes.graph.graph import ANALYTICS, FORMER_DEGREES, EdgeArrays, EdgeKind

KINDS = list(EdgeKind)
Edge = tuple[EdgeKind, int, int, float]


def arrays(places: int, *edges: Edge) -> EdgeArrays:
    """Edges between contents; the last place is an entity."""
    kinds, sources, targets, strengths = [list(column) for column in zip(*edges, strict=True)] or ([], [], [], [])
    return EdgeArrays(
        np.array([KINDS.index(kind) for kind in kinds], dtype=np.int8),
        np.array(sources, dtype=np.int64),
        np.array(targets, dtype=np.int64),
        np.array(strengths, dtype=np.float64),
        contents=places - 1,
        entities=1,
    )


@st.composite
def graphs(draw: st.DrawFn) -> EdgeArrays:
    places = draw(st.integers(3, 12))
    place = st.integers(0, places - 1)
    edge = st.tuples(st.sampled_from(KINDS), place, place, st.sampled_from([0.25, 0.5, 1.0]))
    return arrays(places, *draw(st.lists(edge, max_size=40)))


def directed(edges: EdgeArrays) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(edges.contents + edges.entities))
    for source, target, weight in zip(
        edges.source.tolist(), edges.target.tolist(), edges.strength.tolist(), strict=True
    ):
        if source != target:
            held = graph.get_edge_data(source, target, {"weight": 0.0})["weight"]
            graph.add_edge(source, target, weight=held + weight)
    return graph


@given(graphs())
@settings(deadline=None, max_examples=60)
def test_pagerank_is_that_of_networkx(edges: EdgeArrays) -> None:
    """GRA-2."""
    theirs = nx.pagerank(directed(edges), alpha=DAMPING, tol=1e-9, max_iter=1000)
    ours = pagerank(WeightedEdges.of(edges))
    assert ours == pytest.approx([theirs[place] for place in range(len(ours))], abs=1e-4)
    assert ours.sum() == pytest.approx(1.0)


@given(graphs())
@settings(deadline=None, max_examples=60)
def test_betweenness_is_that_of_networkx_exact_or_from_every_place(edges: EdgeArrays) -> None:
    """GRA-2: where every place is a pivot the estimate is exact."""
    whole = WeightedEdges.of(edges)
    theirs = nx.betweenness_centrality(directed(edges).to_undirected())
    expected = pytest.approx([theirs[place] for place in range(whole.places)])
    assert betweenness(whole, exact_below=whole.places + 1, pivots=1) == expected
    assert betweenness(whole, exact_below=0, pivots=whole.places) == expected


@given(graphs())
@settings(deadline=None, max_examples=60)
def test_degree_and_clusters_are_those_of_networkx(edges: EdgeArrays) -> None:
    """GRA-2: weighted degree; clusters of contradictions are the components of such edges."""
    theirs = directed(edges)
    ours = degrees(WeightedEdges.of(edges))
    assert ours == pytest.approx([theirs.degree(place, weight="weight") for place in range(len(ours))])
    some = edges.kind == KINDS.index(EdgeKind.CONTRADICTS)
    pairs = zip(edges.source[some].tolist(), edges.target[some].tolist(), strict=True)
    parts = list(nx.connected_components(nx.Graph([pair for pair in pairs if pair[0] != pair[1]])))
    numbers = contradictions(edges)
    found = [set(np.flatnonzero(numbers == number).tolist()) for number in range(numbers.max() + 1)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, parts))
    assert [len(part) for part in found] == sorted(map(len, found), reverse=True)


@given(graphs())
@settings(deadline=None, max_examples=60)
def test_causal_depth_is_the_longest_way_from_a_root(edges: EdgeArrays) -> None:
    """GRA-2: by dynamic programming over NetworkX's condensation; what something derives from comes first."""
    graph = nx.DiGraph()
    for kind, source, target in zip(edges.kind.tolist(), edges.source.tolist(), edges.target.tolist(), strict=True):
        if source != target and KINDS[kind] in {EdgeKind.CAUSED, EdgeKind.ENABLED}:
            graph.add_edge(source, target)
        elif source != target and KINDS[kind] is EdgeKind.DERIVED_FROM:
            graph.add_edge(target, source)
    expected = np.full(edges.contents + edges.entities, -1)
    if graph:
        condensed = nx.condensation(graph)
        depth: dict[int, int] = {}
        for node in nx.topological_sort(condensed):
            depth[node] = max((depth[before] + 1 for before in condensed.predecessors(node)), default=0)
        for place, node in condensed.graph["mapping"].items():
            expected[place] = depth[node]
    assert causal_depths(edges).tolist() == expected.tolist()


def test_communities_are_about_as_good_as_those_of_networkx() -> None:
    """GRA-2: by modularity, on a planted partition, where Leiden finds the parts; the largest is number 0."""
    sizes = [30, 20, 10]
    planted = nx.random_partition_graph(sizes, 0.5, 0.02, seed=3)
    edges = arrays(61, *((EdgeKind.CALLS, source, target, 1.0) for source, target in planted.edges))
    numbers = communities(WeightedEdges.of(edges))
    assert numbers[60] == -1
    found = [set(np.flatnonzero(numbers == number).tolist()) for number in range(numbers.max() + 1)]
    theirs = nx.community.louvain_communities(planted, seed=0)
    assert nx.community.modularity(planted, found) >= nx.community.modularity(planted, theirs) - 0.01
    assert sorted(map(sorted, found)) == sorted(map(sorted, planted.graph["partition"]))
    assert [len(one) for one in found] == sizes
    assert numbers.tolist() == communities(WeightedEdges.of(edges)).tolist()


def test_sampled_bridges_rank_like_exact_ones() -> None:
    """GRA-2: from a tenth of the places, the one place that joins two halves is still first."""
    left, right = nx.gnm_random_graph(150, 600, seed=1), nx.gnm_random_graph(150, 600, seed=2)
    joined = nx.disjoint_union(left, right)
    joined.add_edges_from([(300, 0), (300, 150)])
    edges = arrays(302, *((EdgeKind.CALLS, source, target, 1.0) for source, target in joined.edges))
    whole = WeightedEdges.of(edges)
    exact = betweenness(whole, exact_below=1_000, pivots=1)
    sampled = betweenness(whole, exact_below=0, pivots=30)
    assert int(np.argmax(sampled)) in np.argsort(-exact)[:3]
    assert np.corrcoef(exact, sampled)[0, 1] > 0.9


def test_a_table_has_a_row_for_every_place_and_none_for_no_graph() -> None:
    """GRA-2: one table of all columns, also of a graph without edges or without places."""
    never = pytest.approx(float("nan"), nan_ok=True)
    assert (
        analytics(arrays(3)).to_pylist()
        == [
            {**dict.fromkeys(ANALYTICS.names, -1), "pagerank": pytest.approx(1 / 3)}
            | dict.fromkeys(["betweenness", "degree", "causal_degree"], 0.0)
            | {"former_degrees": [never] * FORMER_DEGREES, "degree_change": never}
        ]
        * 3
    )
    empty = EdgeArrays(*[np.zeros(0, dtype=np.int64)] * 3, np.zeros(0), contents=0, entities=0)
    assert analytics(empty).num_rows == 0
