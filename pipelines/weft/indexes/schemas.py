"""The Arrow tables that ingestion hands over in parts and that a generation keeps; both sides share these shapes.

A part is a folder with these files, each `<name>.parquet`: documents, texts, chunks, mentions, vectors, rejected, and
kept, which names the documents that the live generation holds already, unchanged. Any of them may be missing.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from itertools import accumulate
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from weft.domain.arrays import TermWeights
from weft.domain.chunks import Chunk, ChunkLabel, Mention
from weft.domain.documents import ContentType, Document, Domain, Rejection
from weft.domain.ids import ContentHash
from weft.domain.links import Link, LinkKind


def _required(name: str, kind: pa.DataType) -> pa.Field[Any]:
    return pa.field(name, kind, nullable=False)


def _optional(name: str, kind: pa.DataType) -> pa.Field[Any]:
    return pa.field(name, kind)


def without_nulls(**kinds: pa.DataType) -> pa.Schema:
    """A schema of columns that hold no nulls."""
    return pa.schema([_required(name, kind) for name, kind in kinds.items()])


_STRINGS = pa.list_(_required("item", pa.string()))
_LINK = without_nulls(kind=pa.string(), target=pa.string(), confidence=pa.float64(), declared=pa.bool_())
_LINKS = pa.list_(_required("item", pa.struct(list(_LINK))))

DOCUMENTS = pa.schema(
    [
        _required("uri", pa.string()),
        _optional("title", pa.string()),
        _required("content_type", pa.string()),
        _required("domain", pa.string()),
        _optional("language", pa.string()),
        _optional("modified_at", pa.float64()),
        _required("trust_level", pa.int32()),
        _required("metadata", pa.string()),  # a JSON object of strings, keys sorted
        _optional("summary", pa.string()),
        _required("authors", _STRINGS),
        _optional("intent", pa.string()),
        _optional("tier", pa.string()),
        _optional("validation", pa.string()),
        _optional("citations", pa.int64()),
        _required("triggers", _STRINGS),
        _required("links", _LINKS),
        _required("document_hash", pa.string()),
        _required("made_from", pa.string()),
        _optional("indexed_at", pa.float64()),
    ]
)
"""One row per document; `made_from` is the key of everything that decided its chunks, mentions and vectors.

`indexed_at` is when the first generation that held it was made, in seconds since the epoch; null where this is the one.
"""

TEXTS = without_nulls(uri=pa.string(), text=pa.large_string())
"""Every document's text, so that a store can be indexed anew without its sources (ING-15)."""

UNCHANGED = pa.schema(
    [_required("uri", pa.string()), _optional("modified_at", pa.float64()), _required("made_from", pa.string())]
)
"""Documents that are in the live generation unchanged, with the time and the key that they have now (ING-25)."""

CHUNKS = pa.schema(
    [
        _required("chunk_id", pa.string()),
        _required("content_hash", pa.string()),
        _required("uri", pa.string()),
        _required("text", pa.large_string()),
        _required("kind", pa.string()),
        _required("level", pa.int32()),
        _required("sequence", pa.int32()),
        _optional("parent_id", pa.string()),
        _optional("previous_id", pa.string()),
        _optional("next_id", pa.string()),
        _required("start_byte", pa.int64()),
        _required("end_byte", pa.int64()),
        _required("start_line", pa.int32()),
        _required("end_line", pa.int32()),
        _required("heading_path", _STRINGS),
        _optional("anchor", pa.string()),
        _optional("symbol", pa.string()),
        _optional("signature", pa.string()),
        _required("defines", _STRINGS),
        _required("references", _STRINGS),
        _optional("bundle", pa.string()),
        _required("links", _LINKS),
        _required("attributes", pa.string()),  # a JSON object of strings, keys sorted
        _required("completeness", pa.float64()),
        _required("parse_quality", pa.float64()),
        _required("tokens", pa.int32()),
        _required("characters", pa.int32()),
        _required("sizing", _STRINGS),
    ]
)
"""One row per chunk: the fields of `domain.chunks.Chunk` under their own names."""

QUESTIONS = without_nulls(text=pa.string(), content_hash=pa.string(), kind=pa.string(), rest=pa.large_string())
"""Questions that a generation's own contents answer, each with what that content says without it (EVA-4)."""

MENTIONS = without_nulls(
    content_hash=pa.string(),
    start=pa.int32(),
    end=pa.int32(),
    text=pa.string(),
    label=pa.string(),
    score=pa.float64(),
)

REJECTED = without_nulls(uri=pa.string(), reason=pa.string(), detail=pa.string())

CONTENTS = without_nulls(content_hash=pa.string(), first_chunk=pa.int64(), occurrences=pa.int32())
"""Row i: the i-th content hash in order, where its occurrences start in `chunks.parquet`, and how many there are."""

TOKENS = without_nulls(content_hash=pa.string(), encoder=pa.string(), count=pa.int32(), tokens=pa.large_binary())
"""Schema of `tokens.parquet`: the stored token embeddings of one content, int8, `count` rows one after another."""

_NUMBERS = pa.list_(_required("item", pa.int32()))

WEIGHTS = without_nulls(content_hash=pa.string(), terms=_NUMBERS, weights=_NUMBERS)
"""Schema of `weights.parquet`: the learned weights of one content's terms, by id of the encoder's vocabulary."""

MADE_WITH = b"made_with"
"""Metadata of `vectors.parquet`: what decided its vectors besides their texts."""

PROJECTION = b"projection"
"""Metadata of `tokens.parquet`: the file of the projection that the tokens are under."""

TABLES: Mapping[str, pa.Schema] = MappingProxyType(
    {"documents": DOCUMENTS, "texts": TEXTS, "chunks": CHUNKS, "mentions": MENTIONS, "rejected": REJECTED}
)
"""Schema by file name, without `vectors`, whose width depends on the encoder."""

_CHUNK_FIELDS = tuple(field.name for field in fields(Chunk))
_LINK_FIELDS = tuple(field.name for field in fields(Link))
_DOCUMENT_FIELDS = tuple(field.name for field in fields(Document) if field.name != "text")


def vectors_schema(dimension: int) -> pa.Schema:
    """Schema of `vectors.parquet`: one unit vector of `dimension` float16 numbers per content and encoder."""
    return without_nulls(content_hash=pa.string(), encoder=pa.string(), vector=pa.list_(pa.float16(), dimension))


def chunks_to_table(chunks: Sequence[Chunk]) -> pa.Table:
    """Chunks as rows of `CHUNKS`."""
    return _table(CHUNKS, {name: [_stored(getattr(chunk, name)) for chunk in chunks] for name in _CHUNK_FIELDS})


def table_to_chunks(table: pa.Table) -> list[Chunk]:
    """Rows of `CHUNKS` as chunks; further columns are left out."""
    columns = [_restored_all(name, table[name]) for name in _CHUNK_FIELDS]
    return [Chunk(**dict(zip(_CHUNK_FIELDS, row, strict=True))) for row in zip(*columns, strict=True)]


def chunk_reader(table: pa.Table) -> Callable[[int], Chunk]:
    """Reads single rows of `CHUNKS` as chunks: a few microseconds a row, where `table_to_chunks` is for many."""
    readers = [(name, cell_reader(table[name])) for name in _CHUNK_FIELDS]
    return lambda row: Chunk(**{name: _restored(name, read(row)) for name, read in readers})


def cell_reader(column: pa.ChunkedArray[Any]) -> Callable[[int], Any]:
    """Reads the value of a row, from 0, as Python has it, and lists as tuples."""
    chunks: list[Any] = column.chunks
    if len(chunks) == 1:
        (array,) = chunks
        return lambda row: tuple(value) if isinstance(value := array[row].as_py(), list) else value
    ends = list(accumulate(map(len, chunks)))

    def read(row: int) -> Any:
        shard = bisect_right(ends, row)
        value = chunks[shard][row - ends[shard] + len(chunks[shard])].as_py()
        return tuple(value) if isinstance(value, list) else value

    return read


def label_reader(table: pa.Table) -> Callable[[int], ChunkLabel]:
    """Reads of single rows of `CHUNKS` what is said of a result: a fifth of the cost of the whole chunk."""
    readers = [cell_reader(table[name]) for name in ChunkLabel._fields]
    return lambda row: ChunkLabel(*[read(row) for read in readers])


def document_hash(document: Document) -> str:
    """SHA-256 of a document's text as decoded, 64 hex digits: what incremental runs compare (ING-25)."""
    return hashlib.sha256(document.text.encode("utf-8", "surrogatepass")).hexdigest()


def documents_to_table(documents: Sequence[Document], made_from: Sequence[str] | None = None) -> pa.Table:
    """Facts of documents as rows of `DOCUMENTS`; their texts are rows of `TEXTS`."""
    columns: dict[str, list[Any]] = {
        name: [_stored(getattr(document, name)) for document in documents] for name in _DOCUMENT_FIELDS
    }
    columns["document_hash"] = [document_hash(document) for document in documents]
    columns["made_from"] = [""] * len(documents) if made_from is None else list(made_from)
    columns["indexed_at"] = [None] * len(documents)
    return _table(DOCUMENTS, columns)


def texts_to_table(documents: Sequence[Document]) -> pa.Table:
    """Texts of documents as rows of `TEXTS`."""
    columns = {"uri": [item.uri for item in documents], "text": [item.text for item in documents]}
    return _table(TEXTS, columns)


def unchanged_to_table(documents: Sequence[tuple[Document, str]]) -> pa.Table:
    """Unchanged documents as rows of `KEPT`, each with its key."""
    return _table(UNCHANGED, _transposed(UNCHANGED, [(item.uri, item.modified_at, key) for item, key in documents]))


def table_to_documents(table: pa.Table) -> list[Document]:
    """Rows of `DOCUMENTS` as documents without their texts."""
    return [_document(row) for row in table.select(_DOCUMENT_FIELDS).to_pylist()]


def with_text(document: Document, text: str, domain: Domain) -> Document:
    """A document that came out of a table, with its text again."""
    return replace(document, text=text, domain=domain)


def mentions_to_table(mentions: Iterable[tuple[ContentHash, Mention]]) -> pa.Table:
    """Mentions with the content they stand in as rows of `MENTIONS`."""
    rows = [(digest, item.start, item.end, item.text, item.label, item.score) for digest, item in mentions]
    return _table(MENTIONS, _transposed(MENTIONS, rows))


def rejections_to_table(rejections: Iterable[Rejection]) -> pa.Table:
    """Rejected items as rows of `REJECTED`."""
    return _table(REJECTED, _transposed(REJECTED, [(item.uri, item.reason, item.detail) for item in rejections]))


def vectors_to_table(hashes: Sequence[ContentHash], encoder: str, vectors: np.ndarray, made_with: str = "") -> pa.Table:
    """Vectors of one encoder as rows of `vectors_schema`."""
    if vectors.ndim != 2 or len(vectors) != len(hashes):
        raise ValueError(f"expected {len(hashes)} vectors in rows, found shape {vectors.shape}")
    halves = np.ascontiguousarray(vectors, dtype=np.float16)
    values = pa.FixedSizeListArray.from_arrays(pa.array(halves.reshape(-1)), vectors.shape[1])
    columns = [pa.array(hashes, pa.string()), pa.array([encoder] * len(hashes), pa.string()), values]
    return pa.Table.from_arrays(columns, schema=vectors_schema(vectors.shape[1]).with_metadata({MADE_WITH: made_with}))


def tokens_to_table(
    hashes: Sequence[ContentHash], encoder: str, tokens: Sequence[np.ndarray], projection: str
) -> pa.Table:
    """Token embeddings of one encoder as rows of `TOKENS`."""
    columns: list[pa.Array[Any]] = [
        pa.array(hashes, pa.string()),
        pa.array([encoder] * len(hashes), pa.string()),
        pa.array([len(one) for one in tokens], pa.int32()),
        pa.array([one.tobytes() for one in tokens], pa.large_binary()),
    ]
    return pa.Table.from_arrays(columns, schema=TOKENS.with_metadata({PROJECTION: projection}))


def weights_to_table(hashes: Sequence[ContentHash], weights: Sequence[TermWeights]) -> pa.Table:
    """Term weights as rows of `WEIGHTS`."""
    columns: list[pa.Array[Any]] = [
        pa.array(hashes, pa.string()),
        pa.array([one.terms for one in weights], _NUMBERS),
        pa.array([one.weights for one in weights], _NUMBERS),
    ]
    return pa.Table.from_arrays(columns, schema=WEIGHTS)


def table_to_weights(table: pa.Table) -> list[TermWeights]:
    """The weights of each row of `WEIGHTS`."""
    return [
        TermWeights(*(np.asarray(row[name], dtype=np.int32) for name in TermWeights._fields))
        for row in table.select(TermWeights._fields).to_pylist()
    ]


def _document(row: Mapping[str, Any]) -> Document:
    kinds = {"content_type": ContentType(row["content_type"]), "domain": Domain(row["domain"])}
    values = {name: _restored(name, value) for name, value in row.items()}
    return Document(**{**values, **kinds, "text": ""})


_JSON = frozenset({"metadata", "attributes"})


def _stored(value: Any) -> Any:
    """A field's value as its column takes it."""
    if isinstance(value, Mapping):
        return json.dumps(dict(value), sort_keys=True)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return [_link(item) if isinstance(item, Link) else item for item in value]
    return value


def _link(link: Link) -> dict[str, Any]:
    return {name: link.kind.value if name == "kind" else getattr(link, name) for name in _LINK_FIELDS}


def _restored(name: str, value: Any) -> Any:
    """The value of the field `name` in a column's value."""
    if name in _JSON:
        return json.loads(value)
    if name == "links":
        return tuple(Link(**{**item, "kind": LinkKind(item["kind"])}) for item in value)
    return tuple(value) if isinstance(value, list) else value


def _restored_all(name: str, column: pa.ChunkedArray[Any]) -> list[Any]:
    values = column.to_pylist()
    if name in _JSON or pa.types.is_list(column.type):
        return [_restored(name, value) for value in values]
    return values


def _transposed(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> dict[str, Sequence[Any]]:
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema.names)
    return dict(zip(schema.names, columns, strict=True))


def _table(schema: pa.Schema, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    return pa.Table.from_arrays([_array(columns[field.name], field.type) for field in schema], schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        # Lone surrogates cannot be written; identities count them as the replacement character too.
        return pa.array([_encodable(value) for value in values], kind)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, tuple | list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {key: _encodable(item) for key, item in value.items()}
    return value
