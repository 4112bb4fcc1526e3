"""Building the graph of a generation from its staged tables: cross-references, entities, mentions (ING-14, ING-17).

The graph is a function of the chunks, the documents, the mentions and the vectors of the generation, and of the
settings that its manifest holds among its parameters; so the generation's content hash covers it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.indexes.dense.vectors import DenseIndex, open_dense
from pipelines.indexes.graph.entities import find_entities, similar_contents
from pipelines.indexes.graph.links import resolve_links
from pipelines.indexes.graph.schemas import EDGES, GRAPH_FOLDER, NODES, EdgeKind
from pipelines.indexes.graph.tables import create, database, insert
from pipelines.indexes.layout import CHUNKS_FOLDER, VECTORS_FOLDER, encoder_folder
from pipelines.indexes.manifest import DenseFacts
from pipelines.indexes.settings import GraphIndexSettings
from pipelines.runtime.storage.tables import Database

_NEAR = {"row": "BIGINT", "other": "BIGINT", "cosine": "DOUBLE"}
_ROWS = 100_000  # rows written at once


@dataclass(frozen=True, slots=True)
class GraphTask:
    """The graph of one staged generation, wherever it is built.

    Attributes:
        dense: How the vectors of each encoder are searched; the first one's are used.
    """

    staging: Path
    dense: Mapping[str, DenseFacts]
    settings: GraphIndexSettings


def build_graph_of(task: GraphTask) -> dict[str, int]:
    """Build the graph of a staged generation, whose tables and vectors are there; see `build_graph`."""
    # Whatever a worker left that died over it.
    shutil.rmtree(task.staging / GRAPH_FOLDER, ignore_errors=True)
    dense = None
    if task.dense:
        encoder = min(task.dense)
        dense = open_dense(task.staging / VECTORS_FOLDER / encoder_folder(encoder), task.dense[encoder])
    return build_graph(task.staging / CHUNKS_FOLDER, task.staging / GRAPH_FOLDER, dense, task.settings)


def build_graph(tables: Path, folder: Path, dense: DenseIndex | None, settings: GraphIndexSettings) -> dict[str, int]:
    """Write the nodes and edges of a generation.

    Args:
        tables: Folder with its documents, chunks, contents, mentions and rejected, each in canonical order.
        folder: Where the graph goes; made here.
        dense: Vectors of its contents by row, or None where it has none.

    Returns:
        Rows by table, and edges by kind.
    """
    if not settings.enabled:
        return {}
    folder.mkdir(parents=True)
    with database(folder / "scratch", memory_mb=settings.memory_mb, threads=settings.threads) as connection:
        resolve_links(connection, tables, settings)
        find_entities(connection, tables, dense, settings)
        _similar(connection, dense, settings)
        _write(connection, _NODES, NODES, folder / "nodes.parquet")
        strengths = {"auto": settings.found_strength, "declared": settings.declared_strength}
        _write(connection, _EDGES, EDGES, folder / "edges.parquet", strengths)
        kinds = dict(connection.execute(f"SELECT kind, count(*) FROM ({_EDGES}) GROUP BY kind", strengths).fetchall())  # noqa: S608
        (entities,) = connection.execute("SELECT count(*) FROM nodes").fetchone() or (0,)
    return {
        "entities": entities,
        "edges": sum(kinds.values()),
        **{f"edges_{kind}": kinds[kind] for kind in EdgeKind if kind in kinds},
    }


_NODES = "SELECT node_id, label, name, aliases, mentions FROM nodes ORDER BY node"
_EDGES = """
    SELECT s.row AS source_row, kind, t.row AS target_row, NULL::BIGINT AS target_node, s.chunk_id AS source_chunk,
           t.chunk_id AS target_chunk, confidence, CASE WHEN declared THEN $declared ELSE $auto END AS strength,
           CASE WHEN declared THEN 'declared' ELSE 'auto' END AS source
    FROM crossed JOIN places s ON s.place = crossed.source JOIN places t ON t.place = crossed.target
    UNION ALL
    SELECT row, kind, NULL, node, NULL, NULL, confidence, $auto, 'auto' FROM named
    UNION ALL
    SELECT row, 'similar', other, NULL, NULL, NULL, cosine, $auto, 'auto' FROM alike
    ORDER BY ALL"""


def _similar(connection: Database, dense: DenseIndex | None, settings: GraphIndexSettings) -> None:
    create(connection, "near", _NEAR)
    insert(connection, "near", _NEAR, similar_contents(dense, settings) if dense is not None else ())
    # Windows of one document overlap: that they are alike says nothing.
    connection.execute(
        """CREATE TABLE alike AS SELECT * FROM near ANTI JOIN (
               SELECT a.row, b.row AS other FROM places a JOIN places b USING (uri)
               JOIN near n ON n.row = a.row AND n.other = b.row) USING (row, other)"""
    )


def _write(
    connection: Database,
    query: str,
    schema: pa.Schema,
    path: Path,
    values: dict[str, float] | None = None,
) -> None:
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in connection.sql(query, params=values or {}).to_arrow_reader(_ROWS):
            writer.write_table(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
