"""The graph of a generation: entities as nodes; edges between contents, and from contents to entities."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.errors import CorruptionError
from weft.domain.ids import ChunkId, ContentHash
from weft.domain.links import CAUSAL, LinkKind
from weft.indexes.copies import TableCopies, read_whole
from weft.indexes.graph.aliases import entity_key
from weft.indexes.schemas import without_nulls
from weft.indexes.shards import shards_of


class EdgeKind(StrEnum):
    """What an edge says; every kind of link is one of them under the same name."""

    CALLS = "calls"
    EXTENDS = "extends"
    IMPLEMENTS = "implements"
    IMPORTS = "imports"
    REFERENCES = "references"
    TESTS = "tests"
    CITES = "cites"
    SIMILAR = "similar"
    CO_USED = "co_used"
    CAUSED = "caused"
    DERIVED_FROM = "derived_from"
    ENABLED = "enabled"
    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"
    SUPPORTS = "supports"
    MENTIONS = "mentions"  # a content names an entity
    DEFINES = "defines"  # a content defines a symbol


GRAPH_FOLDER = "graph"
"""Folder of the graph in a generation and in its shards."""

NODES_FILE, EDGES_FILE, UNMET_FILE = "nodes.parquet", "edges.parquet", "unmet.parquet"
"""Files of nodes, of edges, and of declared relations that lead nowhere: a shard has those of its ids, of its contents
and of the documents whose URIs belong to it."""

ANALYTICS_FILE = "analytics.parquet"
"""File of what the graph says of each place; absent where that is switched off."""

FORMER_DEGREES = 7
"""Generations that a change of degree is told over (GRA-2)."""

CROSS_REFERENCES = frozenset(EdgeKind(kind.value) for kind in LinkKind)
"""Kinds that lead from content to content."""

RELATIONS = tuple(EdgeKind(kind.value) for kind in CAUSAL)
"""The kinds of causal relations (GRA-1)."""

SYMBOL_LABEL = "code symbol"
"""Label of the entities that come from the parse."""


def _field(name: str, kind: pa.DataType, *, nullable: bool = False) -> pa.Field[Any]:
    return pa.field(name, kind, nullable=nullable)


NODES = without_nulls(
    node_id=pa.string(),  # 32 hex digits of canonical key and label
    label=pa.string(),
    name=pa.string(),
    aliases=pa.list_(_field("item", pa.string())),
    mentions=pa.int64(),
)
"""One row per entity, sorted by id; `name` is the commonest spelling, `aliases` all of them, sorted."""

EDGES = pa.schema(
    [
        _field("source_row", pa.int64()),
        _field("kind", pa.string()),
        _field("target_row", pa.int64(), nullable=True),
        _field("target_node", pa.int64(), nullable=True),
        _field("source_chunk", pa.string(), nullable=True),
        _field("target_chunk", pa.string(), nullable=True),
        _field("confidence", pa.float64()),
        _field("strength", pa.float64()),
        _field("source", pa.string()),  # "auto" or "declared"
        _field("time", pa.float64(), nullable=True),
    ]
)
"""One row per edge, sorted by all columns in this order.

`source_row` and `target_row` are rows of `contents`; `target_node` is a row of the nodes, for mentions and definitions,
where `target_row` is null. The chunks name the occurrences that a cross-reference stands in and leads to. `time` is
when the document was changed that declares the edge, in seconds since the epoch; null of what was found.
"""

ANALYTICS = without_nulls(
    pagerank=pa.float64(),
    betweenness=pa.float64(),
    community=pa.int64(),
    degree=pa.float64(),
    causal_degree=pa.float64(),
    causal_depth=pa.int64(),
    contradiction=pa.int64(),
    former_degrees=pa.list_(_field("item", pa.float64()), FORMER_DEGREES),
    degree_change=pa.float64(),
)
"""One row per place of `EdgeArrays`: contents by row, then entities; numbers are −1 where there is none (GRA-2).

`former_degrees` are those of a content in the generations before, the newest last, and `degree_change` what the degree
is above the oldest of them; NaN where it was not there, and of entities.
"""


class Direction(StrEnum):
    """Which way edges are read: "called by" is `CALLS` read backwards."""

    OUT = "out"
    IN = "in"


@dataclass(frozen=True, slots=True)
class Entity:
    """A node: what several spellings name."""

    node: int  # its row among the nodes
    node_id: str
    label: str
    name: str  # the commonest spelling
    aliases: tuple[str, ...]  # every spelling, sorted
    mentions: int  # times it is named


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The other end of an edge, seen from one end."""

    kind: EdgeKind
    content: ContentHash | None  # the content there, None where it is an entity
    node: int | None  # the entity there, None where it is a content
    here: ChunkId | None  # The chunks that the edge joins, where it is one of chunks
    there: ChunkId | None
    confidence: float  # how sure the edge is, in (0, 1]
    strength: float  # 0.5 where it was found, 1 where a person stated it, as configured
    declared: bool


@dataclass(frozen=True, slots=True, eq=False)
class EdgeArrays:
    """All edges at once, an entry per edge in the stored order; places number contents first, then entities."""

    kind: np.ndarray  # int8, place of the kind in `EdgeKind`
    source: np.ndarray  # int64, row of a content, or `contents` + row of an entity
    target: np.ndarray
    # float64 in (0, 1], how sure the edge is times 0.5 where it was found or 1 where it was stated
    strength: np.ndarray
    contents: int  # How many places of each there are
    entities: int


class ChunkRelation(NamedTuple):
    """A causal relation as an edge holds it."""

    chunk: ChunkId
    kind: EdgeKind
    target: ChunkId
    source: str  # As in `EDGES`
    time: float | None


class Graph:
    """The nodes and edges of one generation; files are opened at once and decoded on first use. Shared by threads."""

    def __init__(self, folder: Path, contents: Sequence[ContentHash], *, copies: TableCopies | None = None) -> None:
        """Open the graph in a folder, and in those of the shards beside it, over sorted content hashes.

        Raises:
            CorruptionError: A file is missing or damaged.
        """
        self._contents = contents
        self._copies = copies
        try:
            shards = [shard / folder.name for shard in shards_of(folder.parent)]
            self._edges_files = [pq.ParquetFile(shard / EDGES_FILE, memory_map=True) for shard in shards]
            self._nodes_files = [pq.ParquetFile(shard / NODES_FILE, memory_map=True) for shard in shards]
            analysed = folder / ANALYTICS_FILE
            self._analytics_file = pq.ParquetFile(analysed, memory_map=True) if analysed.exists() else None
        except (pa.ArrowInvalid, FileNotFoundError) as error:
            raise CorruptionError(f"{folder}: expected the files of a graph, found: {error}; rebuild") from error

    def neighbours(
        self, content: ContentHash, kinds: Collection[EdgeKind], direction: Direction = Direction.OUT
    ) -> list[Neighbour]:
        """What a content points to, or what points to it, in edges of some kinds: surest first, ties by content."""
        row = self._row_of(content)
        if row is None:
            return []
        codes = [_CODES[kind] for kind in kinds]
        places = self._out(row) if direction is Direction.OUT else self._in(row)
        places = places[np.isin(self._kinds[places], codes)]
        edges = [self._neighbour(edge, direction) for edge in self._edges.take(pa.array(places)).to_pylist()]
        return sorted(
            edges, key=lambda near: (-near.confidence, near.kind, near.content or "", near.node or 0, near.there or "")
        )

    def entity(self, node: int) -> Entity:
        """The entity at a row of the nodes; IndexError where there is none."""
        if not 0 <= node < self._nodes.num_rows:
            raise IndexError(f"expected a node in [0, {self._nodes.num_rows}), got {node}")
        (row,) = self._nodes.slice(node, 1).to_pylist()
        return Entity(node, row["node_id"], row["label"], row["name"], tuple(row["aliases"]), row["mentions"])

    def arrays(self) -> EdgeArrays:
        """Every edge, for whoever walks many of them."""
        targets = np.where(
            self._target_nodes >= 0, len(self._contents) + self._target_nodes, _numbers(self._edges["target_row"])
        )
        strength = self._edges["confidence"].to_numpy() * self._edges["strength"].to_numpy()
        return EdgeArrays(
            self._kinds, self._sources, targets, strength, contents=len(self._contents), entities=self._nodes.num_rows
        )

    def relations(self) -> list[ChunkRelation]:
        """Every causal relation, in the stored order."""
        places = np.flatnonzero(np.isin(self._kinds, [_CODES[kind] for kind in RELATIONS]))
        names = ["source_chunk", "kind", "target_chunk", "source", "time"]
        rows = self._edges.select(names).take(pa.array(places.tolist(), pa.int64())).to_pylist()
        return [
            ChunkRelation(ChunkId(row[0]), EdgeKind(row[1]), ChunkId(row[2]), *row[3:])
            for row in ([row[name] for name in names] for row in rows)
        ]

    def spellings(self) -> list[tuple[int, list[str]]]:
        """Every node with its aliases."""
        return [(node, aliases or []) for node, aliases in enumerate(self._nodes["aliases"].to_pylist())]

    def find(self, name: str) -> list[Entity]:
        """Entities that a name may mean, whatever its case and punctuation, most mentioned first."""
        entities = [self.entity(node) for node in self._named.get(entity_key(name), ())]
        return sorted(entities, key=lambda entity: (-entity.mentions, entity.node_id))

    def contents_of(self, node: int) -> list[ContentHash]:
        """Contents that mention or define an entity, in order."""
        rows = self._edges["source_row"].to_numpy()[np.flatnonzero(self._target_nodes == node)]
        return [self._contents[row] for row in sorted(set(rows.tolist()))]

    @cached_property
    def analytics(self) -> pa.Table | None:
        """What it says of each place, a row of `ANALYTICS` each; None where it was built without (GRA-2)."""
        return None if self._analytics_file is None else self._analytics_file.read().combine_chunks()

    def communities(self) -> np.ndarray | None:
        """Number of each content's community, int64 (contents,), −1 without; None where that is not known."""
        return None if self.analytics is None else self.analytics["community"].to_numpy()[: len(self._contents)]

    def degree_changes(self) -> np.ndarray | None:
        """By how much each content's degree changed, float64 (contents,), NaN without; None where that is not known."""
        return None if self.analytics is None else self.analytics["degree_change"].to_numpy()[: len(self._contents)]

    def table(self, name: str) -> pa.Table:
        """The stored nodes or edges as they are."""
        return {"nodes": self._nodes, "edges": self._edges}[name]

    def close(self) -> None:
        """Release the files."""
        for file in (*self._edges_files, *self._nodes_files, self._analytics_file):
            if file is not None:
                file.close(force=True)

    def _row_of(self, content: ContentHash) -> int | None:
        row = bisect_left(self._contents, content)
        return row if row < len(self._contents) and self._contents[row] == content else None

    def _out(self, row: int) -> np.ndarray:
        first, last = np.searchsorted(self._sources, [row, row + 1])
        return np.arange(first, last)

    def _in(self, row: int) -> np.ndarray:
        order, targets = self._by_target
        first, last = np.searchsorted(targets, [row, row + 1])
        return np.sort(order[first:last])

    def _neighbour(self, edge: dict[str, object], direction: Direction) -> Neighbour:
        ends = ("source", "target") if direction is Direction.OUT else ("target", "source")
        row, node = edge[f"{ends[1]}_row"], edge["target_node"]
        return Neighbour(
            kind=EdgeKind(str(edge["kind"])),
            content=self._contents[row] if isinstance(row, int) else None,
            node=node if isinstance(node, int) else None,
            here=_chunk(edge[f"{ends[0]}_chunk"]),
            there=_chunk(edge[f"{ends[1]}_chunk"]),
            confidence=float(str(edge["confidence"])),
            strength=float(str(edge["strength"])),
            declared=edge["source"] == "declared",
        )

    @cached_property
    def _edges(self) -> pa.Table:
        return self._whole("edges", self._edges_files, EDGES.names)

    @cached_property
    def _nodes(self) -> pa.Table:
        return self._whole("nodes", self._nodes_files, NODES.names)

    def _whole(self, name: str, files: Sequence[pq.ParquetFile], columns: Sequence[str]) -> pa.Table:
        if self._copies is None:
            return pa.concat_tables([read_whole(file, columns) for file in files])
        names = [f"{name}-{shard:04d}" if shard else name for shard in range(len(files))]
        return pa.concat_tables([self._copies.read(one, file, columns) for one, file in zip(names, files, strict=True)])

    @cached_property
    def _sources(self) -> np.ndarray:
        return self._edges["source_row"].to_numpy()

    @cached_property
    def _kinds(self) -> np.ndarray:
        return np.array([_CODES[EdgeKind(str(kind))] for kind in self._edges["kind"].to_pylist()], dtype=np.int8)

    @cached_property
    def _target_nodes(self) -> np.ndarray:
        return _numbers(self._edges["target_node"])

    @cached_property
    def _by_target(self) -> tuple[np.ndarray, np.ndarray]:
        targets = _numbers(self._edges["target_row"])
        order = np.argsort(targets, kind="stable")
        return order, targets[order]

    @cached_property
    def _named(self) -> dict[str, list[int]]:
        named: dict[str, list[int]] = {}
        for node, row in enumerate(self._nodes.select(["aliases"]).to_pylist()):
            for key in {entity_key(alias) for alias in row["aliases"]}:
                named.setdefault(key, []).append(node)
        return named


_CODES = {kind: code for code, kind in enumerate(EdgeKind)}


def _numbers(column: pa.ChunkedArray[Any]) -> np.ndarray:
    """Rows as numbers, −1 where there is none."""
    return np.nan_to_num(column.to_numpy().astype(np.float64), nan=-1.0).astype(np.int64)


def _chunk(value: object) -> ChunkId | None:
    return None if value is None else ChunkId(str(value))


def unmet_relations(generation: Path) -> list[str]:
    """A line on each declared relation of a generation that leads to no document, or to several."""
    files = [shard / GRAPH_FOLDER / UNMET_FILE for shard in shards_of(generation)]
    rows = [row for file in files if file.exists() for row in pq.read_table(file).to_pylist()]
    return [
        f"{row['uri']} {row['kind'].replace('_', ' ')} {row['target']}: expected one document of this name, found "
        f"{row['documents'] or 'none'}"
        for row in sorted(rows, key=lambda row: (row["uri"], row["kind"], row["target"]))
    ]
