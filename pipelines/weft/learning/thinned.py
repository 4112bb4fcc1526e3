"""Contents that searches of everything pass over, as nights found: part of a learned version (CON-5)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash

SCHEMA = pa.schema([("content", pa.string())])

Thinned = frozenset[ContentHash]
"""The contents that are passed over; each is where it was, and back as soon as it is not among them."""

NOTHING_THINNED: Thinned = frozenset()


def thinned_table(thinned: Thinned) -> pa.Table:
    """One table of schema `SCHEMA`, sorted, so that equal sets make equal tables."""
    return pa.table({"content": pa.array(sorted(thinned), pa.string())})


def thinned_of(table: pa.Table) -> Thinned:
    """The contents in a table of `thinned_table`.

    Raises:
        StoreError: The table is another one, or a cell is empty.

    Examples:
        >>> some = frozenset({ContentHash("b" * 64), ContentHash("a" * 64)})
        >>> thinned_of(thinned_table(some)) == some
        True
    """
    fits = table.schema.remove_metadata().equals(SCHEMA)
    names: list[Any] = table["content"].to_pylist() if fits else []
    if not fits or None in names:
        raise StoreError(f"thinned contents: expected a hash of each in {SCHEMA.names}, found {table.schema}")
    return frozenset(map(ContentHash, names))
