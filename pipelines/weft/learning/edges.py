"""Edges between contents that nights found: part of a learned version, beside those of a generation (CON-3, CON-4)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import pyarrow as pa

from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash
from weft.domain.links import LinkKind, RelationSource
from weft.learning.evidence import MICRO
from weft.learning.parts import PartChange, PartChanges

_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("content", pa.string()),
    ("kind", pa.string()),
    ("target", pa.string()),
    ("source", pa.string()),
    ("micro", pa.int64()),
]
SCHEMA = pa.schema(_COLUMNS)


class LearnedEdge(NamedTuple):
    """One edge, which holds in both directions, unless one end supersedes the other."""

    content: ContentHash  # In ascending order; of what supersedes another first the newer one
    kind: LinkKind
    target: ContentHash
    source: RelationSource  # texts (auto) or uses (learned); never a person
    micro: int = MICRO  # how strong it is, in (0, `MICRO`]


@dataclass(frozen=True, slots=True)
class LearnedEdges:
    """Edges in ascending order, of each pair and kind one.

    Raises:
        StoreError: They are in another order, an edge is declared, or too strong, or its ends are in another order.
    """

    name: ClassVar[str] = "edges"
    edges: tuple[LearnedEdge, ...] = ()

    def __post_init__(self) -> None:
        keys = [(each.content, each.kind, each.target) for each in self.edges]
        if any(one >= other for one, other in pairwise(keys)):
            raise StoreError("learned edges: expected them in ascending order, each once, found others")
        for each in self.edges:
            is_directed = each.kind is LinkKind.SUPERSEDES and each.content != each.target
            is_sound = (is_directed or each.content < each.target) and 0 < each.micro <= MICRO
            if not is_sound or each.source is RelationSource.DECLARED:
                raise StoreError(f"learned edges: expected one between two contents that nobody declared, found {each}")

    def __len__(self) -> int:
        return len(self.edges)

    @classmethod
    def of(cls, edges: Iterable[LearnedEdge]) -> LearnedEdges:
        """Edges in any order; of those of one pair and kind the strongest."""
        best: dict[tuple[str, str, str], LearnedEdge] = {}
        for each in edges:
            key = (each.content, each.kind.value, each.target)
            if key not in best or (each.micro, each.source) > (best[key].micro, best[key].source):
                best[key] = each
        return cls(tuple(best[key] for key in sorted(best)))

    def of_kinds(self, kinds: Collection[LinkKind]) -> LearnedEdges:
        """Those of some kinds."""
        return LearnedEdges(tuple(each for each in self.edges if each.kind in kinds))

    def instead(self, kinds: Collection[LinkKind], newer: LearnedEdges) -> LearnedEdges:
        """The same with other ones of some kinds."""
        return LearnedEdges.of([*(each for each in self.edges if each.kind not in kinds), *newer.edges])

    def changes(self, before: LearnedEdges | None) -> PartChanges:
        """Edges that are new and those that are gone, by their kind, however strong they are."""
        return PartChanges.between(*((() if each is None else each._stated()) for each in (before, self)))

    def _stated(self) -> Iterable[PartChange]:
        return (PartChange(each.content, f"{each.kind} {each.target[:12]}", each.kind.value) for each in self.edges)

    def to_table(self) -> pa.Table:
        """One table of schema `SCHEMA`, an edge a row."""
        rows = [{**each._asdict(), "kind": each.kind.value, "source": each.source.value} for each in self.edges]
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    @classmethod
    def from_table(cls, table: pa.Table) -> LearnedEdges:
        """The edges in a table of `to_table`.

        Raises:
            StoreError: The table is another one.
        """
        if not table.schema.remove_metadata().equals(SCHEMA):
            raise StoreError(f"learned edges: expected columns {SCHEMA.names} as {SCHEMA.types}, found {table.schema}")
        try:
            return cls(
                tuple(
                    LearnedEdge(content, LinkKind(kind), target, RelationSource(source), micro)
                    for content, kind, target, source, micro in zip(
                        *(table[name].to_pylist() for name in SCHEMA.names), strict=True
                    )
                )
            )
        except (TypeError, ValueError) as error:
            raise StoreError(f"learned edges: expected a kind, source and strength of each, found {error}") from error


NO_EDGES = LearnedEdges()
