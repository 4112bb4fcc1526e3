"""The degree channel: which of the first hits are most connected, by kind of edge (RET-7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from pipelines.domain.ranking import Channel
from pipelines.indexes.graph.graph import EdgeArrays, EdgeKind
from pipelines.retrieval.channels.rankings import NOTHING, Floats, Hits, Ints
from pipelines.retrieval.channels.run import Among, Ranked
from pipelines.retrieval.settings import DegreeSettings

_KINDS = tuple(EdgeKind)


class DegreeChannel:
    """Ranks what other channels found by degree; it finds nothing of its own, since degree knows no query."""

    def __init__(self, edges: EdgeArrays, settings: DegreeSettings, *, excluded: Collection[int] = ()) -> None:
        """Weigh every content's edges once.

        Args:
            excluded: Rows that have no degree: what always holds need not be well connected.
        """
        self._scores = degree_scores(edges, settings.edge_weights, cap=settings.cap, excluded=excluded)

    def follow(
        self,
        _texts: Sequence[str],
        _among: Among,  # the others' hits are among what may be found
        first: Sequence[Mapping[Channel, Ranked]],
        depth: int,
    ) -> list[Ranked]:
        """The first `depth` hits of each text that have any edges, the most connected first."""
        return [self._ranked(found, depth) for found in first]

    def _ranked(self, first: Mapping[Channel, Ranked], depth: int) -> Ranked:
        rows = np.unique(np.concatenate([NOTHING.rows, *(ranked.ranking.rows for ranked in first.values())]))
        scores = self._scores[rows]
        order = np.argsort(-scores, kind="stable")[:depth]
        order = order[scores[order] > 0.0]
        return Ranked(Hits(rows[order], scores[order]), self._score_rows)

    def _score_rows(self, rows: Ints) -> Floats:
        return np.asarray(self._scores[rows])


def degree_scores(
    edges: EdgeArrays, weights: Mapping[EdgeKind, float], *, cap: float, excluded: Collection[int] = ()
) -> np.ndarray:
    """log(1 + d) / log(1 + d_max), at most `cap`, where d is the sum of weight · strength of a content's edges.

    Returns:
        float64 (contents,) in [0, cap].
    """
    of_kind = np.array([weights.get(kind, 0.0) for kind in _KINDS])
    weight = of_kind[edges.kind] * edges.strength
    degree = np.zeros(edges.contents + edges.entities)
    np.add.at(degree, edges.source, weight)
    np.add.at(degree, edges.target, weight)
    of_contents: np.ndarray = degree[: edges.contents]
    of_contents[list(excluded)] = 0.0
    highest = of_contents.max(initial=0.0)
    if highest <= 0.0:
        return of_contents
    scores: np.ndarray = np.minimum(np.log1p(of_contents) / np.log1p(highest), cap)
    return scores
