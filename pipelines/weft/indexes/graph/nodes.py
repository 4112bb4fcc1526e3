"""Nodes of a graph and edges to them, and all edges as they are written (ING-14, ING-17)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.indexes.dense.samples import mapped_vectors, read_samples, unit
from weft.indexes.dense.vectors import DenseIndex
from weft.indexes.graph.aliases import LONGEST_GROUP, Key, Name, cosines, doubtful, entity_key, merged
from weft.indexes.graph.graph import EDGES, EDGES_FILE, GRAPH_FOLDER, NODES, NODES_FILE, SYMBOL_LABEL, UNMET_FILE
from weft.indexes.graph.rounds import Partition
from weft.indexes.manifest import DenseFacts
from weft.indexes.schemas import without_nulls
from weft.indexes.settings import GraphIndexSettings
from weft.runtime.storage.tables import create, insert, rows_of

SIMILAR_CONTENTS = 20_000
"""Contents above which none are linked as similar: the search grows with their square."""

UNMET = without_nulls(uri=pa.string(), kind=pa.string(), target=pa.string(), documents=pa.int64())
"""One row per declared relation that leads to no document, or to several: who declares it, and what was looked for."""

_MOST_SURROUNDINGS = 256  # texts that make up a name's surroundings: more change the mean little
_SIMILAR_NEIGHBOURS = 5  # most similar contents that each is linked with
_ROWS = 100_000  # rows written at once
_NEAR = {"row": "BIGINT", "other": "BIGINT", "cosine": "DOUBLE"}
_SPELLINGS = {"text": "VARCHAR", "spelling": "VARCHAR", "key": "VARCHAR"}
_DOUBTFUL = {"label": "VARCHAR", "short": "VARCHAR", "whole": "VARCHAR"}
_STANDS = {"label": "VARCHAR", "key": "VARCHAR", "root": "VARCHAR", "partition": "BIGINT"}
_SURROUNDINGS = {"label": "VARCHAR", "key": "VARCHAR", "row": "BIGINT", "vector": "BLOB"}
_NODES = "SELECT node_id, label, name, aliases, mentions FROM nodes ORDER BY node"
_UNMET = "SELECT * FROM unmet ORDER BY ALL"
_EDGES = """
    SELECT source_row, kind, target_row, NULL::BIGINT AS target_node, source_chunk, target_chunk, confidence,
           CASE WHEN declared THEN $declared ELSE $auto END AS strength,
           CASE WHEN declared THEN 'declared' ELSE 'auto' END AS source, time
    FROM linked
    UNION ALL
    SELECT row, kind, NULL, node, NULL, NULL, confidence, $auto, 'auto', NULL FROM named
    UNION ALL
    SELECT row, 'similar', other, NULL, NULL, NULL, cosine, $auto, 'auto', NULL
    FROM near ANTI JOIN together USING (row, other) WHERE row >= {first_row} AND row < {end_row}
    ORDER BY ALL"""


def name_values(settings: GraphIndexSettings) -> dict[str, object]:
    """What stands for the `$name`s of the queries."""
    return {
        "least_mention_confidence": settings.least_mention_confidence,
        "most_surroundings": _MOST_SURROUNDINGS,
        "symbol": SYMBOL_LABEL,
    }


def list_spellings(partition: Partition) -> None:
    """Make the table of how each text is spelled, and what it is known by."""
    connection = partition.connection
    create(connection, "spelled", _SPELLINGS)
    texts = (text for (text,) in rows_of(connection, "SELECT DISTINCT text FROM mentioned"))
    insert(connection, "spelled", _SPELLINGS, ((text, " ".join(text.split()), entity_key(text)) for text in texts))


def list_doubtful(partition: Partition) -> None:
    """Make the table of names that may be short for another one; one partition has all names."""
    create(partition.connection, "doubtful", _DOUBTFUL)
    pairs = doubtful([name.key for name in _names(partition)])
    rows = ((label, short, whole) for (label, short), (_, whole) in pairs)
    insert(partition.connection, "doubtful", _DOUBTFUL, rows)


def join_names(partition: Partition) -> None:
    """Make the table of which name stands for which, for the partitions that have it."""
    connection, least = partition.connection, partition.settings.aliases.similarity
    rows = rows_of(connection, "SELECT label, short, whole FROM doubtful ORDER BY ALL")
    pairs = [((label, short), (label, whole)) for label, short, whole in rows]
    similarities = zip(pairs, cosines(pairs, _surroundings(partition) if pairs else {}), strict=True)
    joined = [pair for pair, cosine in similarities if cosine >= least]
    roots = merged(_names(partition), joined, longest=LONGEST_GROUP)
    create(connection, "stands", _STANDS)
    held = rows_of(connection, "SELECT label, key, partition FROM names")
    insert(connection, "stands", _STANDS, ((label, key, roots[label, key][1], to) for label, key, to in held))


def _names(partition: Partition) -> list[Name]:
    counts = rows_of(partition.connection, "SELECT label, key, sum(mentions)::BIGINT FROM names GROUP BY label, key")
    return [Name((label, key), count) for label, key, count in counts]


def list_surroundings(partition: Partition) -> None:
    """Make the table of the texts around doubtful names, each with its stored vector, where there are any."""
    connection, first = partition.connection, partition.first_row
    has_vectors = partition.task.graph.encoder is not None
    rows = rows_of(connection, "SELECT label, key, row FROM surrounding")
    stored = mapped_vectors(partition.task.vectors) if has_vectors else None
    create(connection, "surroundings", _SURROUNDINGS)
    vectors = ((*names, row, b"" if stored is None else stored[row - first].tobytes()) for *names, row in rows)
    insert(connection, "surroundings", _SURROUNDINGS, vectors)


def _surroundings(partition: Partition) -> Mapping[Key, Sequence[float]]:
    """Mean vector of the first texts that mention each doubtful name."""
    if partition.task.graph.encoder is None:
        return {}
    rows = rows_of(partition.connection, "SELECT label, key, vector FROM surroundings ORDER BY label, key, row")
    means: dict[Key, Sequence[float]] = {}
    for (label, key), some in groupby(rows, key=lambda row: row[:2]):
        stored = [np.frombuffer(vector, np.float16) for *_, vector in islice(some, _MOST_SURROUNDINGS)]
        means[label, key] = np.mean(unit(np.array(stored)).astype(np.float64), axis=0).tolist()
    return means


def list_similar(partition: Partition) -> None:
    """Make the table of similar contents, of few contents by one partition."""
    create(partition.connection, "near", _NEAR)
    files = partition.task.graph.similar
    if files and not partition.task.number:
        stored = read_samples(files)
        dense = DenseIndex(stored, DenseFacts(dimension=stored.shape[1], kind="exact"))
        insert(
            partition.connection,
            "near",
            _NEAR,
            dense.near_pairs(_SIMILAR_NEIGHBOURS, partition.settings.similar_from),
        )


def write_nodes(partition: Partition) -> None:
    """Write the nodes."""
    partition.counts["entities"] = _write(partition, _NODES, NODES, NODES_FILE).total()


def write_unmet(partition: Partition) -> None:
    """Write the declared relations that lead nowhere."""
    partition.counts["unmet_relations"] = _write(partition, _UNMET, UNMET, UNMET_FILE).total()


def write_edges(partition: Partition) -> None:
    """Write the edges that begin in the shard."""
    strengths = {"auto": partition.settings.found_strength, "declared": 1.0}
    for kind, count in _write(partition, _EDGES, EDGES, EDGES_FILE, strengths).items():
        partition.counts[f"edges_{kind}"] = count


def _write(
    partition: Partition, query: str, schema: pa.Schema, file: str, values: Mapping[str, float] | None = None
) -> Counter[str]:
    """Write the rows of a query as a table; how many there are of each kind."""
    folder = partition.task.folder / GRAPH_FOLDER
    folder.mkdir(exist_ok=True)
    counts: Counter[str] = Counter()
    kind = "kind" if "kind" in schema.names else "label"
    with pq.ParquetWriter(folder / file, schema, compression="zstd", write_page_checksum=True) as writer:
        rows = partition.connection.sql(query.format_map(partition.numbers), params=dict(values or {}))
        for batch in rows.to_arrow_reader(_ROWS):
            writer.write_table(pa.Table.from_batches([batch]).select(schema.names).cast(schema))
            counts.update({row["values"]: row["counts"] for row in batch.column(kind).value_counts().to_pylist()})
    return counts
