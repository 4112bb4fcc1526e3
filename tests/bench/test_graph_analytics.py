"""GRA-2: how long it takes to say of each place of a graph of a million edges what it is in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from weft.indexes.graph.build import (
    WeightedEdges,
    analytics,
    betweenness,
    causal_depths,
    communities,
    pagerank,
)
from weft.indexes.graph.graph import EdgeArrays, EdgeKind

pytestmark = pytest.mark.slow

EDGES = 1_000_000
CONTENTS = 250_000
ENTITIES = 50_000


def a_large_graph() -> EdgeArrays:
    """Few places have most edges, and most edges lead near: as in a corpus, whose topics link within themselves."""
    rng = np.random.default_rng(7)
    places = CONTENTS + ENTITIES
    source = rng.integers(0, CONTENTS, EDGES)
    near = (source + rng.geometric(0.01, EDGES)) % CONTENTS
    popular = (rng.zipf(1.6, EDGES) * 7919) % places
    target = np.where(rng.random(EDGES) < 0.7, near, popular)
    kind = rng.integers(0, len(EdgeKind), EDGES).astype(np.int8)
    strength = rng.choice([0.25, 0.5, 1.0], EDGES)
    return EdgeArrays(kind, source, target, strength, contents=CONTENTS, entities=ENTITIES)


def test_a_million_edges_are_analysed() -> None:
    """GRA-2: printed by step; every place has a row."""
    edges = a_large_graph()
    whole = WeightedEdges.of(edges)
    steps: dict[str, Callable[[], np.ndarray]] = {
        "pagerank": lambda: pagerank(whole),
        "betweenness": lambda: betweenness(whole),
        "communities": lambda: communities(whole),
        "causal depth": lambda: causal_depths(edges),
    }
    for name, step in steps.items():
        timed(name, step)
    table = timed(f"all of {EDGES:,} edges between {whole.places:,} places", lambda: analytics(edges))
    assert table.num_rows == CONTENTS + ENTITIES
    assert table["community"].to_numpy().max() > 0


def timed(name: str, work: Callable[[], Any]) -> Any:
    began, used = time.perf_counter(), time.process_time()
    result = work()
    wall, processor = time.perf_counter() - began, time.process_time() - used
    Console().print(f"{name}: {wall:.1f} s, {processor:.1f} s of a processor")
    return result
