"""Building the graph of a generation from its staged tables: cross-references, entities, mentions (ING-14, ING-17)."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Mapping, Sequence
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
from weft.indexes.dense.vectors import DenseIndex, open_dense
from weft.indexes.graph.aliases import LONGEST_GROUP, Key, Name, cosines, entity_key, merged
from weft.indexes.graph.graph import (
    ANALYTICS,
    ANALYTICS_FILE,
    EDGES,
    FORMER_DEGREES,
    GRAPH_FOLDER,
    NODES,
    RELATIONS,
    SYMBOL_LABEL,
    UNMET_FILE,
    EdgeArrays,
    EdgeKind,
    Graph,
)
from weft.indexes.graph.links import resolve_links
from weft.indexes.manifest import CHUNKS_FOLDER, VECTORS_FOLDER, DenseFacts, encoder_folder, read_generation_manifest
from weft.indexes.rows import Hashes, evenly_spaced, read_hashes
from weft.indexes.schemas import without_nulls
from weft.indexes.settings import GraphIndexSettings, MergeSettings
from weft.indexes.shards import shards_of, tables_of
from weft.runtime.storage.files import verify_some
from weft.runtime.storage.tables import Database, create, database, insert, rows_of, stacked_rows

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
_SPELLINGS = {"text": "VARCHAR", "spelling": "VARCHAR", "key": "VARCHAR"}
_STANDS = {"label": "VARCHAR", "key": "VARCHAR", "root": "VARCHAR"}
_WANTED_NAMES = {"label": "VARCHAR", "key": "VARCHAR"}
_MOST_SURROUNDINGS = 256  # texts that make up a name's surroundings: more change the mean little
SIMILAR_CONTENTS = 20_000  # contents above which none are linked as similar: the search grows with their square
_SIMILAR_NEIGHBOURS = 5  # most similar contents that each is linked with
_NEAR = {"row": "BIGINT", "other": "BIGINT", "cosine": "DOUBLE"}
_ROWS = 100_000  # rows written at once


UNMET = without_nulls(uri=pa.string(), kind=pa.string(), target=pa.string(), documents=pa.int64())
"""One row per declared relation that leads to no document, or to several: who declares it, and what was looked for."""


@dataclass(frozen=True, slots=True)
class GraphTask:
    """The graph of one staged generation, wherever it is built."""

    staging: Path
    dense: Mapping[str, DenseFacts]  # how the vectors of each encoder are searched; the first one's are used
    settings: GraphIndexSettings
    merge: MergeSettings
    earlier: Path | None = None  # the folder of the generation before, which says what degrees were


def analyse(task: GraphTask) -> None:
    """Write what the graph of a staged generation says of each place (GRA-2)."""
    if task.settings.enabled:
        folder = task.staging / GRAPH_FOLDER
        contents = hashes_in(task.staging)
        former = former_degrees(contents, task.earlier)
        with closing(Graph(folder, Hashes(contents))) as graph:
            table = analytics(graph.arrays(), former)
        pq.write_table(table, folder / ANALYTICS_FILE, compression="zstd", write_page_checksum=True)


def build_graph_of(task: GraphTask) -> dict[str, int]:
    """Build the graph of a staged generation, whose tables and vectors are there; see `build_graph`."""
    # Whatever a worker left that died over it.
    shutil.rmtree(task.staging / GRAPH_FOLDER, ignore_errors=True)
    dense = None
    if task.dense:
        encoder = min(task.dense)
        folders = [shard / VECTORS_FOLDER / encoder_folder(encoder) for shard in shards_of(task.staging)]
        dense = open_dense(folders, task.dense[encoder])
    counts = build_graph(task.staging / CHUNKS_FOLDER, task.staging / GRAPH_FOLDER, dense, task.settings, task.merge)
    analyse(task)
    return counts


def build_graph(
    tables: Path, folder: Path, dense: DenseIndex | None, settings: GraphIndexSettings, merge: MergeSettings
) -> dict[str, int]:
    """Write the nodes and edges of a generation."""
    if not settings.enabled:
        return {}
    folder.mkdir(parents=True)
    with database(folder / "scratch", memory_mb=merge.memory_mb, threads=merge.threads) as connection:
        resolve_links(connection, tables, settings)
        _mentioned(connection, tables, settings)
        _joined(connection, dense, settings)
        _symbols(connection)
        _nodes(connection)
        _similar(connection, dense, settings)
        _write(connection, _NODES, NODES, folder / "nodes.parquet")
        strengths = {"auto": settings.found_strength, "declared": 1.0}
        _write(connection, _EDGES, EDGES, folder / "edges.parquet", strengths)
        _write(connection, "SELECT * FROM unmet ORDER BY ALL", UNMET, folder / UNMET_FILE)
        kinds = dict(connection.execute(f"SELECT kind, count(*) FROM ({_EDGES}) GROUP BY kind", strengths).fetchall())  # noqa: S608
        (unmet,) = connection.execute("SELECT count(*) FROM unmet").fetchone() or (0,)
        (entities,) = connection.execute("SELECT count(*) FROM nodes").fetchone() or (0,)
    return {
        "entities": entities,
        "edges": sum(kinds.values()),
        **{f"edges_{kind}": kinds[kind] for kind in EdgeKind if kind in kinds},
        **({"unmet_relations": unmet} if unmet else {}),
    }


_NODES = "SELECT node_id, label, name, aliases, mentions FROM nodes ORDER BY node"
_EDGES = """
    SELECT s.row AS source_row, kind, t.row AS target_row, NULL::BIGINT AS target_node, s.chunk_id AS source_chunk,
           t.chunk_id AS target_chunk, confidence, CASE WHEN declared THEN $declared ELSE $auto END AS strength,
           CASE WHEN declared THEN 'declared' ELSE 'auto' END AS source, time
    FROM crossed JOIN places s ON s.place = crossed.source JOIN places t ON t.place = crossed.target
    UNION ALL
    SELECT row, kind, NULL, node, NULL, NULL, confidence, $auto, 'auto', NULL FROM named
    UNION ALL
    SELECT row, 'similar', other, NULL, NULL, NULL, cosine, $auto, 'auto', NULL FROM similar_pairs
    ORDER BY ALL"""


def _mentioned(connection: Database, tables: Path, settings: GraphIndexSettings) -> None:
    for name in ("contents", "mentions"):
        stacked_rows(connection, f"{name}_rows", tables_of(tables.parent, name))
    connection.execute(
        """CREATE TABLE mentioned AS
           SELECT c.place AS row, m.label, m.text, m.score
           FROM mentions_rows m JOIN contents_rows c USING (content_hash) WHERE m.score >= ?""",
        [settings.least_mention_confidence],
    )
    create(connection, "spelled", _SPELLINGS)
    texts = (text for (text,) in rows_of(connection, "SELECT DISTINCT text FROM mentioned"))
    insert(connection, "spelled", _SPELLINGS, ((text, " ".join(text.split()), entity_key(text)) for text in texts))


def _joined(connection: Database, dense: DenseIndex | None, settings: GraphIndexSettings) -> None:
    """Which name stands for which: the table `stands` of (label, key, root)."""
    counted = "SELECT label, key, count(*) FROM mentioned JOIN spelled USING (text) WHERE key <> '' GROUP BY ALL"
    names = [Name((label, key), count) for label, key, count in rows_of(connection, counted)]

    def similarity(pairs: Sequence[tuple[Key, Key]]) -> Sequence[float]:
        wanted = sorted({key for pair in pairs for key in pair})
        return cosines(pairs, {} if dense is None else _surroundings(connection, wanted, dense))

    roots = merged(names, similarity, least=settings.aliases.similarity, longest=LONGEST_GROUP)
    create(connection, "stands", _STANDS)
    insert(connection, "stands", _STANDS, ((label, key, root) for (label, key), (_, root) in roots.items()))


def _surroundings(connection: Database, keys: Sequence[Key], dense: DenseIndex) -> dict[Key, list[float]]:
    """Mean vector of the texts that mention each name."""
    create(connection, "wanted_names", _WANTED_NAMES)
    insert(connection, "wanted_names", _WANTED_NAMES, keys)
    mentioning = rows_of(
        connection,
        """SELECT label, key, list_slice(list_sort(list(DISTINCT row)), 1, $most)
           FROM mentioned JOIN spelled USING (text) JOIN wanted_names USING (label, key) GROUP BY ALL""",
        {"most": _MOST_SURROUNDINGS},
    )
    return {
        (label, key): np.mean(dense.vectors(rows).astype(np.float64), axis=0).tolist()
        for label, key, rows in mentioning
    }


def _symbols(connection: Database) -> None:
    """Symbols that code defines, each by the content where its definition begins."""
    connection.execute(
        """CREATE TABLE symbols AS
           SELECT DISTINCT p.row, s.name FROM (
               SELECT unit, symbol AS name FROM places WHERE symbol IS NOT NULL
               UNION SELECT unit, name FROM defined
           ) s JOIN places p ON p.place = s.unit"""
    )


def _nodes(connection: Database) -> None:
    connection.execute(
        """CREATE TABLE spellings AS
           SELECT label, root, spelling, count(*) AS times
           FROM mentioned JOIN spelled USING (text) JOIN stands USING (label, key) GROUP BY ALL"""
    )
    connection.execute(
        """CREATE TABLE nodes AS
           WITH every AS (
               SELECT left(sha256(label || chr(10) || root), 32) AS node_id, label, root AS key,
                      first(spelling ORDER BY times DESC, spelling) AS name,
                      list_sort(list(spelling)) AS aliases, sum(times)::BIGINT AS mentions
               FROM spellings GROUP BY label, root
               UNION ALL
               SELECT left(sha256($1 || chr(10) || name), 32), $1, name, name, [name], count(*)
               FROM symbols GROUP BY name
           )
           SELECT row_number() OVER (ORDER BY node_id) - 1 AS node, * FROM every""",
        [SYMBOL_LABEL],
    )
    connection.execute(
        """CREATE TABLE named AS
           SELECT 'mentions' AS kind, row, node, max(score) AS confidence
           FROM mentioned JOIN spelled USING (text) JOIN stands s USING (label, key)
           JOIN nodes n ON n.label = s.label AND n.key = s.root GROUP BY ALL
           UNION ALL
           SELECT 'defines', row, node, 1.0 FROM symbols JOIN nodes USING (name) WHERE label = ?""",
        [SYMBOL_LABEL],
    )


def _similar(connection: Database, dense: DenseIndex | None, settings: GraphIndexSettings) -> None:
    create(connection, "near", _NEAR)
    if dense is not None and len(dense) <= SIMILAR_CONTENTS:
        insert(connection, "near", _NEAR, dense.near_pairs(_SIMILAR_NEIGHBOURS, settings.similar_from))
    # Windows of one document overlap: that they are similar says nothing.
    connection.execute(
        """CREATE TABLE similar_pairs AS SELECT * FROM near ANTI JOIN (
               SELECT a.row, b.row AS other FROM places a JOIN places b USING (uri)
               JOIN near n ON n.row = a.row AND n.other = b.row) USING (row, other)"""
    )


def _write(
    connection: Database, query: str, schema: pa.Schema, path: Path, values: dict[str, float] | None = None
) -> None:
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in connection.sql(query, params=values or {}).to_arrow_reader(_ROWS):
            writer.write_table(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
