"""Building the graph of a generation from its staged tables: cross-references, entities, mentions (ING-14, ING-17)."""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import graspologic_native
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import rustworkx as rx
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from weft.domain.arrays import Flags, Floats, Ints
from weft.domain.errors import CorruptionError
from weft.indexes.graph.graph import (
    ANALYTICS,
    ANALYTICS_FILE,
    FORMER_DEGREES,
    GRAPH_FOLDER,
    RELATIONS,
    SYMBOL_LABEL,
    EdgeArrays,
    EdgeKind,
    Graph,
)
from weft.indexes.graph.links import (
    link_values,
    list_bearers,
    list_modules,
    list_wanted,
    read_scopes,
)
from weft.indexes.graph.nodes import (
    join_names,
    list_doubtful,
    list_similar,
    list_spellings,
    list_surroundings,
    name_values,
    write_edges,
    write_nodes,
    write_unmet,
)
from weft.indexes.graph.rounds import ALL, OWN, GraphTask, PartitionTask, Round, run_partition, run_rounds
from weft.indexes.manifest import read_generation_manifest, tables_of
from weft.indexes.rows import Hashes, evenly_spaced, read_hashes
from weft.indexes.shards import MapTasks, await_all
from weft.runtime.storage.files import verify_some

# What a graph says of each place in it: rank, bridges, communities, degree, causes and contradictions (GRA-2).
#
# Pure functions of the edges; an edge weighs what its strength is. The bits depend on nothing else: whatever is drawn
# is drawn by a seed, and nothing is summed by several threads.

DAMPING = 0.85  # chance that PageRank's walk follows an edge; the authors' own
EXACT_BELOW = 2_000  # places; from there on bridges are estimated, since exact ones take the square
PIVOTS = 64  # places that bridges are estimated from

_FORWARD = (EdgeKind.CAUSED, EdgeKind.ENABLED)
_BACKWARD = (EdgeKind.DERIVED_FROM,)  # what something derives from comes before it
_KINDS = tuple(EdgeKind)
_NO_HISTORY: Floats = np.zeros((0, FORMER_DEGREES))
_DEGREE_LIST = ANALYTICS.field("former_degrees").type

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WeightedEdges:
    """Edges between different places: source, target and weight, (edges,) each, and how many places there are."""

    source: Ints
    target: Ints
    weight: Floats
    places: int

    @classmethod
    def of(cls, edges: EdgeArrays, kinds: Iterable[EdgeKind] = _KINDS) -> WeightedEdges:
        """The edges of some kinds, as strong as they are."""
        some = np.isin(edges.kind, [_KINDS.index(kind) for kind in kinds]) & (edges.source != edges.target)
        return cls(edges.source[some], edges.target[some], edges.strength[some], edges.contents + edges.entities)

    def both_ways(self) -> sparse.csr_array:
        """Symmetric weights, float64 (places, places); those of several edges between two places are summed."""
        ends = np.concatenate([self.source, self.target]), np.concatenate([self.target, self.source])
        matrix = sparse.csr_array((np.tile(self.weight, 2), ends), shape=(self.places, self.places))
        matrix.sum_duplicates()
        return matrix


def analytics(edges: EdgeArrays, former: Floats = _NO_HISTORY) -> pa.Table:
    """A row of `ANALYTICS` for each place: contents by row, then entities."""
    whole = WeightedEdges.of(edges)
    degree = degrees(whole)
    history = np.full((whole.places, FORMER_DEGREES), np.nan)
    history[: len(former)] = former
    columns: dict[str, Any] = {
        "pagerank": pagerank(whole),
        "betweenness": betweenness(whole),
        "community": communities(whole),
        "degree": degree,
        "causal_degree": degrees(WeightedEdges.of(edges, RELATIONS)),
        "causal_depth": causal_depths(edges),
        "contradiction": contradictions(edges),
        "former_degrees": pa.FixedSizeListArray.from_arrays(pa.array(history.ravel()), type=_DEGREE_LIST),
        "degree_change": degree_changes(degree, history),
    }
    return pa.table([pa.array(columns[field.name], field.type) for field in ANALYTICS], schema=ANALYTICS)


def pagerank(edges: WeightedEdges) -> Floats:
    """Share of a walk's time at each place, (places,), summing to 1: with chance `DAMPING` it follows an edge.

    PageRank (Page, Brin, Motwani and Winograd, 1998); what points nowhere leads everywhere.
    """
    ranks = rx.pagerank(_graph(edges), alpha=DAMPING, weight_fn=float)
    return np.fromiter((ranks[place] for place in range(edges.places)), np.float64, edges.places)


def betweenness(edges: WeightedEdges, *, exact_below: int = EXACT_BELOW, pivots: int = PIVOTS) -> Floats:
    """Share of the shortest ways between two others that lead over each place, in [0, 1], (places,), undirected.

    Brandes, 2001. From `exact_below` places on it is estimated by the ways from `pivots` of those that have edges
    (Brandes and Pich, 2007), evenly spaced over the places, whose order is that of hashes.
    """
    if edges.places < exact_below:
        graph = rx.PyGraph(multigraph=False)
        graph.add_nodes_from(range(edges.places))
        graph.add_edges_from_no_data(list(zip(edges.source.tolist(), edges.target.tolist(), strict=True)))
        shares = rx.betweenness_centrality(graph, parallel_threshold=edges.places + 1)
        return np.fromiter((shares[place] for place in range(edges.places)), np.float64, edges.places)
    near = edges.both_ways()
    connected = np.flatnonzero(np.diff(near.indptr))
    starts = connected[evenly_spaced(len(connected), pivots)]
    total = sum((_dependencies(near, int(start)) for start in starts), np.zeros(edges.places))
    others = max(1, (edges.places - 1) * (edges.places - 2))
    return np.asarray(total * len(connected) / max(1, len(starts)) / others)


def _dependencies(near: sparse.csr_array, start: int) -> Floats:
    """How much the shortest ways from one place lead over each other (Brandes 2001, eq. 2), level by level."""
    places = near.shape[0]
    distance, ways = np.full(places, -1), np.zeros(places)
    distance[start], ways[start] = 0, 1.0
    levels: list[tuple[Ints, Ints]] = []
    frontier = np.array([start])
    while len(frontier):
        begins, counts = near.indptr[frontier].astype(np.int64), np.diff(near.indptr)[frontier].astype(np.int64)
        # All edges of the frontier at once: of each place, the range of its edges, one range after the other.
        steps = np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        here, there = np.repeat(frontier, counts), near.indices[steps].astype(np.int64)
        # Of places first reached now every way counts, of those reached earlier none: those ways are longer.
        fresh = distance[there] < 0
        here, there = here[fresh], there[fresh]
        ways += np.bincount(there, weights=ways[here], minlength=places)
        frontier = np.unique(there)
        distance[frontier] = len(levels) + 1
        levels.append((here, there))
    dependency = np.zeros(places)
    for here, there in reversed(levels):
        shares = ways[here] / ways[there] * (1.0 + dependency[there])
        dependency += np.bincount(here, weights=shares, minlength=places)
    dependency[start] = 0.0
    return dependency


def communities(edges: WeightedEdges) -> Ints:
    """Number of each place's community, (places,), the largest first; −1 of what has no edge (Leiden, by modularity).

    Traag, Waltman and van Eck, 2019.
    """
    near = edges.both_ways()
    if not near.nnz:
        return np.full(edges.places, -1)
    _, community = graspologic_native.leiden_csr(
        near.indptr.astype(np.int64),
        near.indices.astype(np.int32),
        near.data,
        edges.places,
        resolution=1.0,  # modularity's own; a higher one gives more and smaller communities
        seed=0,
    )
    labels = np.fromiter((community[place] for place in range(edges.places)), np.int64, edges.places)
    return _by_size(labels, np.diff(near.indptr) > 0)


def degrees(edges: WeightedEdges) -> Floats:
    """Sum of the weights of each place's edges, (places,)."""
    ends = np.concatenate([edges.source, edges.target])
    sums = np.bincount(ends, weights=np.tile(edges.weight, 2), minlength=edges.places)
    return np.asarray(sums, dtype=np.float64)


def causal_depths(edges: EdgeArrays) -> Ints:
    """Steps from the furthest root cause to each place, (places,); −1 of what neither causes nor is caused.

    What leads in a circle counts as one.
    """
    first, last = WeightedEdges.of(edges, _FORWARD), WeightedEdges.of(edges, _BACKWARD)
    causes = np.concatenate([first.source, last.target])
    effects = np.concatenate([first.target, last.source])
    depths = np.full(first.places, -1)
    involved = np.unique(np.concatenate([causes, effects]))
    if not len(involved):
        return depths
    ends = np.searchsorted(involved, causes), np.searchsorted(involved, effects)
    graph = sparse.csr_array((np.ones(len(causes)), ends), shape=(len(involved),) * 2)
    # Circles become one place each, so that what is left has an order; a depth is the longest way to it.
    circles, circle_of = csgraph.connected_components(graph, directed=True, connection="strong")
    steps = {(int(a), int(b)) for a, b in zip(circle_of[ends[0]], circle_of[ends[1]], strict=True) if a != b}
    condensed = rx.PyDiGraph(multigraph=False)
    condensed.add_nodes_from(range(circles))
    condensed.add_edges_from_no_data(sorted(steps))
    depth = np.zeros(circles, dtype=np.int64)
    for level, together in enumerate(rx.topological_generations(condensed)):
        depth[list(together)] = level
    depths[involved] = depth[circle_of]
    return depths


def contradictions(edges: EdgeArrays) -> Ints:
    """Number of each place's cluster of contradictions, (places,), the largest first; −1 without any."""
    near = WeightedEdges.of(edges, [EdgeKind.CONTRADICTS]).both_ways()
    _, labels = csgraph.connected_components(near, directed=False)
    return _by_size(labels.astype(np.int64), np.diff(near.indptr) > 0)


def _by_size(labels: Ints, counted: Flags) -> Ints:
    """Labels numbered by how many places have them, then by the first place; −1 of what is not counted."""
    numbers = np.full(len(labels), -1, dtype=np.int64)
    some = np.flatnonzero(counted)
    _, first, at, sizes = np.unique(labels[some], return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    numbers[some] = rank[at]
    return numbers


def _graph(edges: WeightedEdges) -> rx.PyDiGraph[int, float]:
    graph: rx.PyDiGraph[int, float] = rx.PyDiGraph(multigraph=True)
    graph.add_nodes_from(range(edges.places))
    graph.add_edges_from(list(zip(edges.source.tolist(), edges.target.tolist(), edges.weight.tolist(), strict=True)))
    return graph


def former_degrees(contents: NDArray[np.bytes_], earlier: Path | None) -> Floats:
    """Degrees in the last generations, (contents, `FORMER_DEGREES`), the newest last; NaN where unknown."""
    former = np.full((len(contents), FORMER_DEGREES), np.nan)
    if earlier is None or not (earlier / GRAPH_FOLDER / ANALYTICS_FILE).exists():
        return former
    tables = [file.relative_to(earlier).as_posix() for file in tables_of(earlier, _CONTENTS)]
    names = [*tables, f"{GRAPH_FOLDER}/{ANALYTICS_FILE}"]
    files = read_generation_manifest(earlier).files
    try:
        verify_some(earlier, {name: files[name] for name in names})
    except (CorruptionError, KeyError) as error:
        log.warning("how degrees change begins anew, for the generation before cannot be read: %s", error)
        return former
    held = hashes_in(earlier)
    table = pq.read_table(earlier / names[-1]).slice(0, len(held))
    had = table["degree"].to_numpy()[:, None]
    former_had = pc.list_flatten(table["former_degrees"]).to_numpy()
    had = np.concatenate([former_had.reshape(-1, FORMER_DEGREES), had], axis=1)[:, -FORMER_DEGREES:]
    _, here, there = np.intersect1d(contents, held, assume_unique=True, return_indices=True)
    former[here, FORMER_DEGREES - had.shape[1] :] = had[there]
    return former


def degree_changes(degrees: Floats, former: Floats) -> Floats:
    """What degrees are above the oldest that is kept of each, (contents,); NaN of what was not there before."""
    oldest = np.argmax(~np.isnan(former), axis=1)
    return np.asarray(degrees - former[np.arange(len(former)), oldest], dtype=np.float64)


def hashes_in(generation: Path) -> NDArray[np.bytes_]:
    """The content hashes of a generation's tables of contents, in their order."""
    return np.concatenate([read_hashes(pq.ParquetFile(file)) for file in tables_of(generation, _CONTENTS)])


_CONTENTS = "contents"

# Documents, and what belongs to a URI, are worked on in the partition of the URI, contents in their shard, keys and
# nodes where their hash says; the names of all entities, which are few, in the first partition. A digest decides as it
# does of documents, and of nodes so that their order is that of partitions (`shards.bounds`).
_AT_DIGEST = "(('0x' || left(sha256({}), 8))::BIGINT * {{partitions}}) >> 32"
_AT_URI, _AT_SOURCE, _AT_BEARER, _AT_TARGET = map(_AT_DIGEST.format, ("uri", "source", "source_uri", "target_uri"))
_AT_NODE = _AT_DIGEST.format("label || chr(10) || root")
_AT_SYMBOL = _AT_DIGEST.format(f"'{SYMBOL_LABEL}' || chr(10) || name")
_AT_KEY, _AT_LINK, _FIRST = "hash(key) % {partitions}", "number % {partitions}", "0"
_AT_ROW, _AT_EDGE = map("len(list_filter({{ends}}, lambda one: one <= {}))".format, ("row", "source_row"))
ROUNDS = (
    # In the shard: what stands there.
    Round(
        ("placed", "chunk_rows", "mentioned", list_spellings, "names", list_similar),
        {"placed": _AT_URI, "chunk_rows": _AT_URI, "mentioned": OWN, "spelled": OWN, "names": _FIRST, "near": ALL},
    ),
    # At the URI: documents, and where they point.
    Round(
        ("files", "packages", "places", "anchored", "defined", "links", "asked", "defining", "together", list_doubtful),
        dict.fromkeys(("files", "places", "anchored", "defined", "links"), OWN)
        | {"packages": ALL, "asked": ALL, "doubtful": ALL, "defining": _AT_SYMBOL, "together": _AT_ROW},
    ),
    # The keys of what is there, and of what is imported.
    Round(
        (list_bearers, list_modules, "modules", "borne", "file_keys", "surrounding", list_surroundings),
        {"bearers": _AT_KEY, "modules": _AT_KEY, "borne": _AT_KEY, "file_keys": OWN, "surroundings": _FIRST},
    ),
    # At the key: who bears it.
    Round(
        ("reaching", "implemented", join_names),
        {"reaching": _AT_LINK, "implemented": _AT_BEARER, "stands": "partition"},
    ),
    # What files import, which the imported file is asked about: what it holds, then twice what it imports itself.
    Round(
        ("reached", "imported", "spellings", "mentioning"),
        {"reached": OWN, "imported": _AT_URI, "spellings": _AT_NODE, "mentioning": _AT_NODE},
    ),
    Round(
        ("typed", "symbols", "nodes", "node_counts"),
        {"typed": _AT_SOURCE, "symbols": OWN, "nodes": OWN, "node_counts": ALL},
    ),
    Round(("taken", "asking", "named", write_nodes), {"taken": OWN, "asking": _AT_URI, "named": _AT_ROW}),
    Round(("passed_on", "passed", "asking_again"), {"passed": _AT_SOURCE, "asking_again": _AT_URI}),
    Round(("passed_on", "imports"), {"imports": _AT_SOURCE}),
    # Links, by their keys, and back.
    Round((list_wanted, "wants", "inner_wants"), {"wants": _AT_KEY, "inner_wants": _AT_KEY}),
    Round(("few", "met"), {"met": _AT_LINK}),
    # Edges, by the document that they lead to, into the shard that they begin in.
    Round(("found", read_scopes, "crossed", "crossing", "unmet", write_unmet), {"crossing": _AT_TARGET}),
    Round(("linked",), {"linked": _AT_EDGE}),
    Round((write_edges,), {}),
)


def analyse(task: GraphTask) -> None:
    """Write what the graph of a staged generation says of each place (GRA-2)."""
    folder = task.staging / GRAPH_FOLDER
    folder.mkdir(exist_ok=True)
    contents = hashes_in(task.staging)
    former = former_degrees(contents, task.earlier)
    with closing(Graph(folder, Hashes(contents))) as graph:
        table = analytics(graph.arrays(), former)
    pq.write_table(table, folder / ANALYTICS_FILE, compression="zstd", write_page_checksum=True)


def build_graph(task: GraphTask, run: MapTasks = map) -> dict[str, int]:
    """Write the nodes and edges of a staged generation, whose tables and vectors are there, and what they say."""
    if not task.settings.enabled:
        return {}
    for shard in (task.staging, *task.shards):
        shutil.rmtree(shard / GRAPH_FOLDER, ignore_errors=True)  # whatever a worker left that died over it
    counts = run_rounds(task, ROUNDS, _work, run)
    await_all(run(analyse, [task]))
    kinds = {f"edges_{kind}": counts[f"edges_{kind}"] for kind in EdgeKind if f"edges_{kind}" in counts}
    unmet = {"unmet_relations": counts["unmet_relations"]} if counts["unmet_relations"] else {}
    return {"entities": counts["entities"], "edges": sum(kinds.values()), **kinds, **unmet}


def _work(task: PartitionTask) -> Counter[str]:
    settings = task.graph.settings
    return run_partition(task, ROUNDS, {**link_values(settings), **name_values(settings)})
