"""Contents that stand for one another: what a night found to be near-duplicates (CON-2).

Evidence keeps the masses of each under its own name. Reading it, all masses of a class count under the name of its
representative, and each of the class reads what they come to. So leaving a class out of the reading gives every one of
them back what it was, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash
from weft.learning.evidence import Evidence
from weft.learning.parts import PartChange, PartChanges
from weft.learning.uses import Uses

SCHEMA = pa.schema([("alias", pa.string()), ("representative", pa.string())])


@dataclass(frozen=True, eq=False)
class ContentAliases:
    """The representative of each alias; a representative is no alias.

    Raises:
        StoreError: A representative is an alias itself.
    """

    name: ClassVar[str] = "aliases"
    representatives: Mapping[ContentHash, ContentHash] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if chained := sorted(self.representatives.keys() & set(self.representatives.values())):
            raise StoreError(f"aliases: expected representatives that are no aliases, found {chained[0]} to be both")

    def __len__(self) -> int:
        return len(self.representatives)

    def of(self, content: str) -> ContentHash:
        """The representative of a content: itself, where it is no alias."""
        return self.representatives.get(ContentHash(content), ContentHash(content))

    def members(self, representative: str) -> tuple[ContentHash, ...]:
        """The aliases of a content, in ascending order."""
        return self._members.get(ContentHash(representative), ())

    def classes(self) -> Mapping[ContentHash, tuple[ContentHash, ...]]:
        """All aliases by representative."""
        return self._members

    def led_by(self, holds: Callable[[ContentHash], bool]) -> ContentAliases:
        """The same classes where some contents are gone: the first that is there stands for one whose own is not."""
        moved = {
            representative: leader
            for representative, members in self._members.items()
            if not holds(representative) and (leader := next(filter(holds, members), None)) is not None
        }
        if not moved:
            return self
        pairs = {alias: moved.get(representative, representative) for alias, representative in self._pairs()}
        others = {alias: representative for alias, representative in pairs.items() if alias != representative}
        return ContentAliases(others | moved)

    def merged(self, evidence: Evidence) -> Evidence:
        """The same evidence with all masses of a class under its representative."""
        if not self.representatives:
            return evidence
        return Evidence(evidence.counts, Uses.of(evidence.usage).renamed(self.representatives))

    def with_aliases(self, rows: Mapping[str, int]) -> dict[str, int]:
        """Rows by name, with those of the aliases of each."""
        return {**rows, **{alias: rows[leader] for alias, leader in self._pairs() if leader in rows}}

    def to_table(self) -> pa.Table:
        """One table of schema `SCHEMA`, sorted, so that equal aliases make equal tables."""
        aliases, leaders = zip(*sorted(self._pairs()), strict=True) if self.representatives else ((), ())
        return pa.table({"alias": pa.array(aliases, pa.string()), "representative": pa.array(leaders, pa.string())})

    @classmethod
    def from_table(cls, table: pa.Table) -> ContentAliases:
        """The aliases in a table of `to_table`.

        Raises:
            StoreError: The columns are not those of `SCHEMA`, a cell is empty, or an alias has two representatives.
        """
        if not table.schema.remove_metadata().equals(SCHEMA):
            raise StoreError(f"aliases: expected columns {SCHEMA.names} as {SCHEMA.types}, found {table.schema}")
        aliases: list[Any]
        leaders: list[Any]
        aliases, leaders = (table[name].to_pylist() for name in SCHEMA.names)
        if None in aliases or None in leaders or len(set(aliases)) < len(aliases):
            raise StoreError("aliases: expected one representative of each alias, found none or several")
        return cls(dict(zip(aliases, leaders, strict=True)))

    def changes(self, before: ContentAliases | None) -> PartChanges:
        """Contents that stand for another one and did not, and those that no longer do."""
        return PartChanges.between(*((() if each is None else each._stated()) for each in (before, self)))

    def _stated(self) -> Iterable[PartChange]:
        return (PartChange(alias, f"stood for by {representative[:12]}") for alias, representative in self._pairs())

    def _pairs(self) -> Iterable[tuple[ContentHash, ContentHash]]:
        return self.representatives.items()

    @cached_property
    def _members(self) -> Mapping[ContentHash, tuple[ContentHash, ...]]:
        members: dict[ContentHash, list[ContentHash]] = {}
        for alias, representative in sorted(self._pairs()):
            members.setdefault(representative, []).append(alias)
        return {representative: tuple(aliases) for representative, aliases in members.items()}


NO_ALIASES = ContentAliases()
