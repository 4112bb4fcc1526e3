"""The shortest way from one place of a graph to another, along edges both ways and through documents (GRA-1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from weft.indexes.graph.graph import EdgeArrays, EdgeKind

_KINDS = tuple(EdgeKind)


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of a way."""

    here: int  # Places: contents by row, then entities, then documents by number
    there: int
    kind: EdgeKind | None = None  # of the edge that is followed; None from a content to its document, and back
    forward: bool = True  # whether the edge leads that way


def shortest_path(
    edges: EdgeArrays, occurrences: tuple[np.ndarray, np.ndarray], start: Sequence[int], end: Sequence[int]
) -> list[PathStep]:
    """The way of fewest steps between two sets of places, of several the one of the strongest edges; empty if none.

    Examples:
        >>> kind, nothing = np.array([list(EdgeKind).index(EdgeKind.CAUSED)]), np.zeros(0, dtype=np.int64)
        >>> edges = EdgeArrays(kind, np.array([0]), np.array([1]), np.ones(1), contents=2, entities=0)
        >>> shortest_path(edges, (nothing, nothing), [1], [0])
        [PathStep(here=1, there=0, kind=<EdgeKind.CAUSED: 'caused'>, forward=False)]
    """
    rows, documents = occurrences
    first = edges.contents + edges.entities
    size = first + int(documents.max(initial=-1)) + 1
    source = np.concatenate([edges.source, rows]).astype(np.int64)
    target = np.concatenate([edges.target, first + documents]).astype(np.int64)
    # A step more always costs more than weaker edges: each costs between 1 and 1 + 1 / all places.
    cost = 1.0 + (1.0 - np.concatenate([edges.strength, np.ones(len(rows))])) / size
    both = np.concatenate([source, target]), np.concatenate([target, source])
    order = np.lexsort((np.tile(cost, 2), both[1], both[0]))
    pairs = both[0][order] * size + both[1][order]
    strongest = order[np.diff(pairs, prepend=-1) > 0]  # of several edges between two places the strongest
    steps = sparse.csr_array(
        (np.tile(cost, 2)[strongest], (both[0][strongest], both[1][strongest])), shape=(size, size)
    )
    costs, before, _ = csgraph.dijkstra(steps, indices=list(start), min_only=True, return_predecessors=True)
    nearest = min(end, key=lambda place: (costs[place], place))
    if not np.isfinite(costs[nearest]):
        return []
    followed = pairs[np.diff(pairs, prepend=-1) > 0]
    path: list[PathStep] = []
    there = int(nearest)
    while (here := int(before[there])) >= 0:
        at = int(strongest[np.searchsorted(followed, here * size + there)])
        number, forward = at % len(source), at < len(source)
        kind = _KINDS[edges.kind[number]] if number < len(edges.kind) else None
        path.append(PathStep(here, there, kind, forward))
        there = here
    return path[::-1]
