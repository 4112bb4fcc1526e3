"""Documents from what a generation keeps of them: a store is indexed anew without its sources (ING-15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.documents import Document, Domain, Rejection
from weft.indexes import schemas
from weft.indexes.manifest import CHUNKS_FOLDER
from weft.indexes.merge import ROWS_TOGETHER
from weft.indexes.settings import MergeSettings
from weft.ingestion.sources.items import StoredItem, begins_with
from weft.runtime.storage.tables import TableQueries

RESTORED = "restored"
"""The reason noted for documents whose text could not be restored byte for byte."""

_NOTHING = {pa.string(): "", pa.int32(): 0, pa.int64(): 0, pa.float64(): 0.0}
_EXACT = {"metadata": "{}"}


def list_stored(tables: Path, *, together: int, prefixes: tuple[str, ...] = ()) -> list[StoredItem]:
    """Items of `together` documents each, in the order of their URIs."""
    metadata = pq.read_metadata(tables / "texts.parquet")
    items = []
    for group in range(metadata.num_row_groups):
        rows, size = metadata.row_group(group).num_rows, metadata.row_group(group).total_byte_size
        for first in range(0, rows, together):
            count = min(together, rows - first)
            items.append(StoredItem(str(tables), group, first, count, size * count // rows, prefixes))
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


def stored_tables(generation: Path, work: Path, settings: MergeSettings) -> Path:
    """The folder with documents and texts of a generation, of this layout or an older one.

    Where the generation keeps no texts they are put together from its chunks: exactly, but for blanks at the end of
    lines between them.
    """
    tables = generation / CHUNKS_FOLDER
    if (tables / "texts.parquet").exists() and pq.read_schema(tables / "documents.parquet").equals(schemas.DOCUMENTS):
        return tables
    documents = _upgraded(pq.read_table(tables / "documents.parquet"))
    pq.write_table(documents, work / "documents.parquet", row_group_size=ROWS_TOGETHER)
    with (
        TableQueries(work / "spill", memory_mb=settings.memory_mb, threads=settings.threads) as queries,
        pq.ParquetWriter(work / "texts.parquet", schemas.TEXTS, compression="zstd") as writer,
    ):
        texts = _texts(queries, tables)
        for start in range(0, documents.num_rows, ROWS_TOGETHER):
            uris = [str(uri) for uri in documents["uri"].slice(start, ROWS_TOGETHER).to_pylist()]
            columns = [pa.array(uris, pa.string()), pa.array(list(_aligned(uris, texts)), pa.large_string())]
            writer.write_table(pa.Table.from_arrays(columns, schema=schemas.TEXTS))
    return work


def restored_text(chunks: Sequence[Mapping[str, Any]]) -> str:
    r"""The text of a document from its chunks, by their spans; chunks without spans follow one another.

    A chunk's text is its leading context, then its own lines; blank lines around them are known by number alone.

    Examples:
        >>> first = {"text": "# A\nx", "start_byte": 0, "end_byte": 7, "start_line": 1, "end_line": 2}
        >>> second = {"text": "A\ny", "start_byte": 7, "end_byte": 8, "start_line": 4, "end_line": 4}
        >>> restored_text([first, second])
        '# A\nx\n\ny'
    """
    if any(chunk.get("start_byte") is None for chunk in chunks):
        return "\n".join(chunk["text"] for chunk in chunks)
    source = bytearray(b"\n" * max(chunk["end_byte"] for chunk in chunks))
    for chunk in sorted(chunks, key=lambda chunk: (chunk["start_byte"], -chunk["end_byte"])):
        start, end = chunk["start_byte"], chunk["end_byte"]
        own = chunk["text"].encode("utf-8", "replace")
        if len(own) != end - start:
            own = b"\n".join(own.split(b"\n")[-(chunk["end_line"] - chunk["start_line"] + 1) :])
        blank = max(0, chunk["start_line"] - 1 - source.count(b"\n", 0, start))
        begin = min(start + blank, max(start, end - len(own)))
        source[begin : begin + len(own)] = own[: end - begin]
    return source.decode("utf-8", "replace")


def _group(path: Path, item: StoredItem) -> pa.Table:
    with pq.ParquetFile(path) as file:
        table: pa.Table = file.read_row_group(item.group)
    return table.slice(item.first, item.count)


def _upgraded(documents: pa.Table) -> pa.Table:
    """Documents of an older layout in this one, ordered by URI; what was not known then is unknown."""
    rows = documents.num_rows
    columns = [
        documents[field.name].cast(field.type) if field.name in documents.column_names else _unknown(field, rows)
        for field in schemas.DOCUMENTS
    ]
    return pa.Table.from_arrays(columns, schema=schemas.DOCUMENTS).sort_by("uri")


def _unknown(field: pa.Field[Any], rows: int) -> pa.Array[Any]:
    value: Any = None
    if not field.nullable:
        value = [] if pa.types.is_list(field.type) else _EXACT.get(field.name, _NOTHING.get(field.type))
    column: pa.Array[Any] = pa.array([value] * rows, field.type)
    return column


def _texts(queries: TableQueries, tables: Path) -> Iterator[tuple[str, str]]:
    """(URI, text) of every document, by URI."""
    if (tables / "texts.parquet").exists():
        queries.define("texts", [tables / "texts.parquet"], schemas.TEXTS)
        for table in queries.rows("select * from texts order by uri", schemas.TEXTS, at_once=ROWS_TOGETHER):
            yield from zip(table["uri"].to_pylist(), table["text"].to_pylist(), strict=True)
        return
    path = tables / "chunks.parquet"
    there = set(pq.read_schema(path).names)
    schema = pa.schema([field for field in schemas.CHUNKS if field.name in there & _NEEDED])
    queries.define("chunks", [path], schema)
    order = (
        "select * from chunks order by uri, sequence" if "sequence" in there else "select * from chunks order by uri"
    )
    rows = (row for table in queries.rows(order, schema, at_once=ROWS_TOGETHER) for row in table.to_pylist())
    for uri, of_document in groupby(rows, key=lambda row: row["uri"]):
        yield uri, restored_text(list(of_document))


_NEEDED = frozenset({"uri", "text", "sequence", "start_byte", "end_byte", "start_line", "end_line"})


def _aligned(uris: Iterable[str], texts: Iterator[tuple[str, str]]) -> Iterator[str]:
    """The text of each URI, both ascending; nothing where there is none."""
    at = next(texts, None)
    for uri in uris:
        while at is not None and at[0] < uri:
            at = next(texts, None)
        yield at[1] if at is not None and at[0] == uri else ""
