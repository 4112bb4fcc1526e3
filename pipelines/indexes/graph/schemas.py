"""The tables of a generation's graph: entities as nodes, and edges between contents, and from contents to entities."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from pipelines.domain.links import LinkKind


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
    MENTIONS = "mentions"  # a content names an entity
    DEFINES = "defines"  # a content defines a symbol


GRAPH_FOLDER = "graph"
"""Folder of the graph in a generation."""

CROSS_REFERENCES = frozenset(EdgeKind(kind.value) for kind in LinkKind)
"""Kinds that lead from content to content."""

SYMBOL_LABEL = "code symbol"
"""Label of the entities that come from the parse."""


def _field(name: str, kind: pa.DataType, *, nullable: bool = False) -> pa.Field[Any]:
    return pa.field(name, kind, nullable=nullable)


NODES = pa.schema(
    [
        _field("node_id", pa.string()),  # 32 hex digits of canonical key and label
        _field("label", pa.string()),
        _field("name", pa.string()),
        _field("aliases", pa.list_(_field("item", pa.string()))),
        _field("mentions", pa.int64()),
    ]
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
    ]
)
"""One row per edge, sorted by all columns in this order.

`source_row` and `target_row` are rows of `contents`; `target_node` is a row of the nodes, for mentions and definitions,
where `target_row` is null. The chunks name the occurrences that a cross-reference stands in and leads to.
"""

TABLES: Mapping[str, pa.Schema] = MappingProxyType({"nodes": NODES, "edges": EDGES})
