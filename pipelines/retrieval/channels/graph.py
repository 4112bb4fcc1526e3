"""The graph channel: activation spreads from what a query names and from the first hits along typed edges (RET-7).

Collins and Loftus, A spreading-activation theory of semantic processing, Psychological Review 1975. A place that passes
energy e on gives each neighbour e · decay · weight of the edge / √(its edges): a hub tells little about each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import sparse

from pipelines.domain.ranking import Channel
from pipelines.indexes.graph import EdgeArrays
from pipelines.indexes.graph_schemas import EdgeKind
from pipelines.indexes.rows import RowSet
from pipelines.retrieval.channels.names import Vocabulary
from pipelines.retrieval.channels.run import Among, Ranked
from pipelines.retrieval.settings import GraphSettings

_KINDS = tuple(EdgeKind)


class GraphChannel:
    """Follows the edges of one generation's graph, both ways."""

    def __init__(self, edges: EdgeArrays, names: Vocabulary, settings: GraphSettings) -> None:
        self._contents = edges.contents
        self._names = names
        self._settings = settings
        self._passes = passing(edges, settings.edge_weights)

    def follow(
        self, texts: Sequence[str], among: Among, first: Sequence[Mapping[Channel, Ranked]], depth: int
    ) -> list[Ranked]:
        """The `depth` contents of each text that most energy reached, not counting what they started with."""
        seeds = [self._seeds(text, found) for text, found in zip(texts, first, strict=True)]
        if not seeds:
            return []
        reached = spread(sparse.vstack(seeds, format="csr"), self._passes, self._settings)[:, : self._contents]
        bounds = zip(reached.indptr[:-1], reached.indptr[1:], strict=True)
        return [
            _ranked(reached.indices[start:end], reached.data[start:end], rows, depth)
            for (start, end), rows in zip(bounds, among, strict=True)
        ]

    def knows(self, name: str) -> bool:
        """Whether any entity bears that name."""
        return bool(self._names.named_in(name))

    def names_near(self, text: str, count: int) -> list[str]:
        """At most `count` names that most energy reaches from those in a text, by way of contents that hold both."""
        reached = spread(self._seeds(text, {}), self._passes, self._settings)[:, self._contents :]
        order = np.lexsort((reached.indices, -reached.data))[:count]
        return [self._names.name_of(int(reached.indices[at])) for at in order]

    def _seeds(self, text: str, first: Mapping[Channel, Ranked]) -> sparse.csr_array:
        energies: dict[int, float] = {}
        for entities in self._names.named_in(text):
            # A name that may mean several is shared by them.
            for entity in entities:
                place = self._contents + entity
                energies[place] = energies.get(place, 0.0) + self._settings.name_energy / len(entities)
        for ranked in first.values():
            for rank, (row, _) in enumerate(ranked.ranking[: self._settings.seed_hits], start=1):
                energies[row] = energies.get(row, 0.0) + self._settings.hit_energy / rank
        places = sorted(energies)
        return sparse.csr_array(
            ([energies[place] for place in places], ([0] * len(places), places)), shape=(1, self._passes.shape[0])
        )


def passing(edges: EdgeArrays, weights: Mapping[EdgeKind, float]) -> sparse.csr_array:
    """What share of a place's energy passes to each other: weight of the edge · its strength / √(edges of the place).

    Returns:
        float64 (places, places), by row what a place gives; edges lead both ways, edges of weight 0 nowhere.
    """
    of_kind = np.array([weights[kind] for kind in _KINDS])
    weight = of_kind[edges.kind] * edges.strength
    some = np.flatnonzero(weight > 0.0)
    source, target, weight = edges.source[some], edges.target[some], weight[some]
    size = edges.contents + edges.entities
    both = (np.concatenate([source, target]), np.concatenate([target, source]))
    passes = sparse.csr_array((np.concatenate([weight, weight]), both), shape=(size, size))
    passes.sum_duplicates()
    np.minimum(passes.data, 1.0, out=passes.data)
    fanout = np.diff(passes.indptr)
    passes.data /= np.sqrt(np.repeat(fanout, fanout))
    return passes


def spread(seeds: sparse.csr_array, passes: sparse.csr_array, settings: GraphSettings) -> sparse.csr_array:
    """Energy that reaches each place in `hops` steps, the energy it starts with not counted.

    Args:
        seeds: float64 (queries, places), energy at the start.
        passes: What `passing` made.

    Returns:
        float64 (queries, places); energies below `least_energy` are not passed on.
    """
    total = sparse.csr_array(seeds.shape)
    energy = seeds
    for _ in range(settings.hops):
        energy = (energy @ passes) * settings.decay
        total = total + energy
        energy.data[energy.data < settings.least_energy] = 0.0
        energy.eliminate_zeros()
    return total.tocsr()


def _ranked(rows: np.ndarray, energies: np.ndarray, among: RowSet | None, depth: int) -> Ranked:
    if among is not None:
        rows, energies = rows[among.mask[rows]], energies[among.mask[rows]]
    order = np.lexsort((rows, -energies))[:depth]
    ranking = [(int(rows[at]), float(energies[at])) for at in order]
    return Ranked(ranking, _look_up(dict(zip(rows.tolist(), energies.tolist(), strict=True))))


def _look_up(energies: Mapping[int, float]) -> Callable[[Sequence[int]], list[float]]:
    return lambda rows: [energies.get(row, 0.0) for row in rows]
