"""Entities of a generation: names in texts, joined where they mean one thing, and symbols that code defines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from pipelines.indexes.dense.vectors import DenseIndex
from pipelines.indexes.graph.aliases import Key, Name, cosines, entity_key, merged
from pipelines.indexes.graph.schemas import SYMBOL_LABEL
from pipelines.indexes.graph.tables import create, insert, rows_of
from pipelines.indexes.settings import GraphIndexSettings
from pipelines.runtime.storage.tables import Database, as_read

_SPELLED = {"text": "VARCHAR", "spelling": "VARCHAR", "key": "VARCHAR"}
_STANDS = {"label": "VARCHAR", "key": "VARCHAR", "root": "VARCHAR"}
_ASKED = {"label": "VARCHAR", "key": "VARCHAR"}
_MOST_SURROUNDINGS = 256  # texts that make up a name's surroundings: more change the mean little


def find_entities(connection: Database, tables: Path, dense: DenseIndex | None, settings: GraphIndexSettings) -> None:
    """Make the tables `nodes` (see `graph_schemas`, with `node`, its row) and `named` of (kind, row, node, confidence).

    Args:
        connection: A database where `resolve_links` made its tables.
        tables: Folder with a generation's mentions and contents.
        dense: The vectors of the contents; without them only names with the same letters are joined.
    """
    _mentioned(connection, tables, settings)
    _joined(connection, dense, settings)
    _symbols(connection)
    _nodes(connection)


def _mentioned(connection: Database, tables: Path, settings: GraphIndexSettings) -> None:
    connection.execute(
        """CREATE TABLE mentioned AS
           SELECT c.row, m.label, m.text, m.score
           FROM read_parquet(?) m
           JOIN (SELECT file_row_number AS row, content_hash FROM read_parquet(?, file_row_number = true)) c
           USING (content_hash) WHERE m.score >= ?""",
        [as_read(tables / "mentions.parquet"), as_read(tables / "contents.parquet"), settings.least_mention_confidence],
    )
    create(connection, "spelled", _SPELLED)
    texts = (text for (text,) in rows_of(connection, "SELECT DISTINCT text FROM mentioned"))
    insert(connection, "spelled", _SPELLED, ((text, " ".join(text.split()), entity_key(text)) for text in texts))


def _joined(connection: Database, dense: DenseIndex | None, settings: GraphIndexSettings) -> None:
    """Which name stands for which: the table `stands` of (label, key, root)."""
    counted = "SELECT label, key, count(*) FROM mentioned JOIN spelled USING (text) WHERE key <> '' GROUP BY ALL"
    names = [Name((label, key), count) for label, key, count in rows_of(connection, counted)]

    def similarity(pairs: Sequence[tuple[Key, Key]]) -> Sequence[float]:
        wanted = sorted({key for pair in pairs for key in pair})
        return cosines(pairs, {} if dense is None else _surroundings(connection, wanted, dense))

    aliases = settings.aliases
    roots = merged(names, similarity, least=aliases.similarity, longest=aliases.longest_group)
    create(connection, "stands", _STANDS)
    insert(connection, "stands", _STANDS, ((label, key, root) for (label, key), (_, root) in roots.items()))


def _surroundings(connection: Database, keys: Sequence[Key], dense: DenseIndex) -> dict[Key, list[float]]:
    """Mean vector of the texts that mention each name."""
    create(connection, "asked", _ASKED)
    insert(connection, "asked", _ASKED, keys)
    found = rows_of(
        connection,
        """SELECT label, key, list_slice(list_sort(list(DISTINCT row)), 1, $most)
           FROM mentioned JOIN spelled USING (text) JOIN asked USING (label, key) GROUP BY ALL""",
        {"most": _MOST_SURROUNDINGS},
    )
    return {
        (label, key): np.mean(dense.vectors(rows).astype(np.float64), axis=0).tolist() for label, key, rows in found
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


def similar_contents(dense: DenseIndex, settings: GraphIndexSettings) -> Iterator[tuple[int, int, float]]:
    """(row, row, cosine) of contents that say nearly the same: the nearest of each, at least as near as asked for."""
    if len(dense) > settings.similar_contents or not settings.similar_neighbours:
        return
    yield from dense.alike(settings.similar_neighbours, settings.similar_from)
