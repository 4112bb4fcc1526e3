"""Documents from what a generation keeps of them: a store is indexed anew without its sources (ING-15)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.documents import Document, Domain, Rejection
from weft.indexes import schemas
from weft.indexes.manifest import tables_of
from weft.ingestion.sources.items import StoredItem, begins_with

RESTORED = "restored"
"""The reason noted for documents whose text could not be restored byte for byte."""


def list_stored(generation: Path, *, together: int, prefixes: tuple[str, ...] = ()) -> list[StoredItem]:
    """Items of `together` documents each, in the order of their shards and URIs."""
    items = []
    for texts in tables_of(generation, "texts"):
        metadata = pq.read_metadata(texts)
        for group in range(metadata.num_row_groups):
            rows, size = metadata.row_group(group).num_rows, metadata.row_group(group).total_byte_size
            for first in range(0, rows, together):
                count = min(together, rows - first)
                items.append(StoredItem(str(texts.parent), group, first, count, size * count // rows, prefixes))
    return items


def read_stored(item: StoredItem, domain: Domain | None) -> Iterator[Document | Rejection]:
    """Documents of one item; a note follows where the text is not the one that was read from the source."""
    folder = Path(item.folder)
    facts = _group(folder / "documents.parquet", item)
    texts = _group(folder / "texts.parquet", item)
    hashes = facts["document_hash"].to_pylist()
    for bare, text, expected in zip(schemas.table_to_documents(facts), texts["text"].to_pylist(), hashes, strict=True):
        if item.prefixes and not begins_with(bare.uri, item.prefixes):
            continue
        document = schemas.with_text(bare, str(text), domain or bare.domain)
        yield document
        if schemas.document_hash(document) != expected:
            yield Rejection(document.uri, RESTORED, "expected the text as it was read, found another; index the source")


def _group(path: Path, item: StoredItem) -> pa.Table:
    with pq.ParquetFile(path) as file:
        table: pa.Table = file.read_row_group(item.group)
    return table.slice(item.first, item.count)
