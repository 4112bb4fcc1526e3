"""What stood at places of a generation that are gone: headings that were reworded, pages that were renamed (LRN-23)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FORMER_PLACES_FILE = "former_places.parquet"

_FORMER = {"uri": pa.string(), "heading": pa.string(), "symbol": pa.string(), "start_line": pa.int32()}
_FORMER |= {"end_line": pa.int32(), "content_hash": pa.string(), "since": pa.float64()}
FORMER_PLACES = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _FORMER.items()])
"""What stood at places that are gone: the innermost heading and the symbol, empty where there was none, and when the
generation was made, in seconds since the epoch, that had the place last."""


@dataclass(frozen=True, slots=True)
class FormerPlace:
    """A place that is gone."""

    content_hash: str  # what stood there last
    heading: str  # the innermost one, empty where there was none; and so the symbol
    symbol: str
    start_line: int
    end_line: int


class FormerPlaces:
    """Places that are gone, by document."""

    def __init__(self, folder: Path | None) -> None:
        """Open the file among a generation's chunks; without a folder there are no such places."""
        self._file = None if folder is None else pq.ParquetFile(folder / FORMER_PLACES_FILE, memory_map=True)

    def of(self, uri: str) -> Iterator[FormerPlace]:
        """Those of a document, in the order of headings, symbols and lines."""
        if self._table is not None:
            rows = self._table.filter(pc.equal(self._table["uri"], pa.scalar(uri)))
            for row in rows.select(list(FormerPlace.__slots__)).to_pylist():
                yield FormerPlace(**row)

    @cached_property
    def _table(self) -> pa.Table | None:
        return None if self._file is None else self._file.read()
