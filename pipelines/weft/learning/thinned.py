"""Contents that searches of everything pass over, as nights found: part of a learned version (CON-5)."""

from __future__ import annotations

from typing import Any, ClassVar

import pyarrow as pa

from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash
from weft.learning.parts import PartChange, PartChanges

SCHEMA = pa.schema([("content", pa.string())])


class Thinned(frozenset[ContentHash]):
    """The contents that are passed over; each is where it was, and back as soon as it is not among them."""

    name: ClassVar[str] = "thinned"

    def to_table(self) -> pa.Table:
        """One table of schema `SCHEMA`, sorted, so that equal sets make equal tables."""
        return pa.table({"content": pa.array(sorted(self), pa.string())})

    @classmethod
    def from_table(cls, table: pa.Table) -> Thinned:
        """The contents in a table of `to_table`; StoreError where it is another one, or a cell is empty."""
        fits = table.schema.remove_metadata().equals(SCHEMA)
        names: list[Any] = table["content"].to_pylist() if fits else []
        if not fits or None in names:
            raise StoreError(f"thinned contents: expected a hash of each in {SCHEMA.names}, found {table.schema}")
        return cls(map(ContentHash, names))

    def changes(self, before: Thinned | None) -> PartChanges:
        """What becomes passed over, and what is found again."""
        return PartChanges.between(
            *((PartChange(each, "passed over") for each in side or ()) for side in (before, self))
        )


NOTHING_THINNED = Thinned()
