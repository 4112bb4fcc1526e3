"""Building the graph of a generation from its staged tables: cross-references, entities, mentions (ING-14, ING-17).

The graph is a function of the chunks, the documents, the mentions and the vectors of the generation, and of the
settings that its manifest holds among its parameters; so the generation's content hash covers it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.ids import ContentHash
from weft.indexes.dense.vectors import DenseIndex, open_dense
from weft.indexes.graph.aliases import LONGEST_GROUP, Key, Name, cosines, entity_key, merged
from weft.indexes.graph.analytics import analytics, former_degrees, hashes_in
from weft.indexes.graph.graph import ANALYTICS_FILE, EDGES, GRAPH_FOLDER, NODES, SYMBOL_LABEL, EdgeKind, Graph
from weft.indexes.graph.links import resolve_links
from weft.indexes.manifest import CHUNKS_FOLDER, VECTORS_FOLDER, DenseFacts, encoder_folder
from weft.indexes.settings import GraphIndexSettings, MergeSettings
from weft.runtime.storage.tables import Database, create, database, glob_escaped, insert, rows_of

_SPELLINGS = {"text": "VARCHAR", "spelling": "VARCHAR", "key": "VARCHAR"}
_STANDS = {"label": "VARCHAR", "key": "VARCHAR", "root": "VARCHAR"}
_WANTED_NAMES = {"label": "VARCHAR", "key": "VARCHAR"}
_MOST_SURROUNDINGS = 256  # texts that make up a name's surroundings: more change the mean little
SIMILAR_CONTENTS = 20_000  # contents above which none are linked as similar: the search grows with their square
_SIMILAR_NEIGHBOURS = 5  # most similar contents that each is linked with
_NEAR = {"row": "BIGINT", "other": "BIGINT", "cosine": "DOUBLE"}
_ROWS = 100_000  # rows written at once


UNMET_FILE = "unmet.parquet"
"""File of declared relations that lead nowhere."""

UNMET = pa.schema(
    [
        pa.field(name, kind, nullable=False)
        for name, kind in (
            ("uri", pa.string()),
            ("kind", pa.string()),
            ("target", pa.string()),
            ("documents", pa.int64()),
        )
    ]
)
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
    """Write what the graph of a staged generation says of each place, where that is wanted (GRA-2)."""
    if task.settings.enabled and task.settings.analytics:
        folder = task.staging / GRAPH_FOLDER
        contents = hashes_in(task.staging / CHUNKS_FOLDER / "contents.parquet")
        former = former_degrees(contents, task.earlier)
        with closing(Graph(folder, [ContentHash(one.decode()) for one in contents.tolist()])) as graph:
            table = analytics(graph.arrays(), former)
        pq.write_table(table, folder / ANALYTICS_FILE, compression="zstd", write_page_checksum=True)


def build_graph_of(task: GraphTask) -> dict[str, int]:
    """Build the graph of a staged generation, whose tables and vectors are there; see `build_graph`."""
    # Whatever a worker left that died over it.
    shutil.rmtree(task.staging / GRAPH_FOLDER, ignore_errors=True)
    dense = None
    if task.dense:
        encoder = min(task.dense)
        dense = open_dense(task.staging / VECTORS_FOLDER / encoder_folder(encoder), task.dense[encoder])
    counts = build_graph(task.staging / CHUNKS_FOLDER, task.staging / GRAPH_FOLDER, dense, task.settings, task.merge)
    analyse(task)
    return counts


def build_graph(
    tables: Path, folder: Path, dense: DenseIndex | None, settings: GraphIndexSettings, merge: MergeSettings
) -> dict[str, int]:
    """Write the nodes and edges of a generation.

    Returns:
        Rows by table, and edges by kind.
    """
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
    connection.execute(
        """CREATE TABLE mentioned AS
           SELECT c.row, m.label, m.text, m.score
           FROM read_parquet(?) m
           JOIN (SELECT file_row_number AS row, content_hash FROM read_parquet(?, file_row_number = true)) c
           USING (content_hash) WHERE m.score >= ?""",
        [
            glob_escaped(tables / "mentions.parquet"),
            glob_escaped(tables / "contents.parquet"),
            settings.least_mention_confidence,
        ],
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


def unmet_relations(generation: Path) -> list[str]:
    """A line on each declared relation of a generation that leads to no document, or to several."""
    path = generation / GRAPH_FOLDER / UNMET_FILE
    if not path.exists():
        return []
    rows = pq.read_table(path).to_pylist()
    return [
        f"{row['uri']} {row['kind'].replace('_', ' ')} {row['target']}: expected one document of this name, found "
        f"{row['documents'] or 'none'}"
        for row in rows
    ]
