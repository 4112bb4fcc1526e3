"""Merging parts into the tables of a generation, in one canonical order and in bounded memory (ING-24, ING-25)."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.documents import Rejection
from weft.domain.errors import StoreError
from weft.indexes import schemas
from weft.indexes.dense.gather import vector_tables
from weft.indexes.manifest import CHUNKS_FOLDER, RowsDigest, read_generation_manifest
from weft.indexes.settings import MergeSettings
from weft.runtime.storage.tables import TableQueries

REPEATED = "repeated_uri"
ROWS_TOGETHER = 1_024
"""Rows of a row group: documents and their texts lie in the same groups, so that a group of both can be read alone."""

_REPEATED_DETAIL = "expected every document under a URI of its own, another came first"
_OWN = {**schemas.TABLES, "kept": schemas.UNCHANGED}
_HASHED = ("chunks", "documents")
_BY = {"by_type": "content_type", "by_domain": "domain", "by_language": "language"}

# Of documents with one URI the first part's stays; what is in the live generation unchanged counts for its own part.
_PLACED = """
select uri, min(part) as part from (select uri, part from documents union all select uri, part from kept) group by uri
"""
_UNCHANGED = (
    "select uri, kept.modified_at as seen_at, kept.made_from as found_by from kept join placed using (uri, part)"
)
_DOCUMENTS = """
select documents.* replace (earlier.since as indexed_at)
from documents join placed using (uri, part) left join earlier using (uri)
union all by name
select base_documents.* replace (
    unchanged.seen_at as modified_at, unchanged.found_by as made_from, earlier.since as indexed_at
)
from base_documents join unchanged using (uri) left join earlier using (uri)
"""
_TEXTS = """
select texts.* from texts join placed using (uri, part)
union all by name
select base_texts.* from base_texts semi join unchanged using (uri)
"""
_CHUNKS = """
select chunks.* from chunks join placed using (uri, part)
union all by name
select base_chunks.* from base_chunks semi join unchanged using (uri)
"""
_REJECTED = f"""
select uri, reason, detail from rejected
union all
select uri, '{REPEATED}', '{_REPEATED_DETAIL}'
from (select uri, part from documents union all select uri, part from kept) anti join placed using (uri, part)
"""  # noqa: S608  # our own words
# A content that stands in several parts has the mentions of the first: they were found in the same text.
_MENTIONED = """
select * replace ('' as part) from base_mentions where exists (select 1 from unchanged)
union all by name
select * from mentions
"""
_MENTIONS = """
select mentioned.* from mentioned
join (select content_hash, min(part) as part from mentioned group by content_hash) using (content_hash, part)
semi join contents using (content_hash)
"""

_ORDER = {
    "documents": ("uri", "document_hash"),
    "texts": ("uri",),
    "chunks": ("content_hash", "uri", "sequence", "chunk_id"),
    "rejected": ("uri", "reason", "detail"),
    "mentions": ("content_hash", '"start"', '"end"', "label"),
}


@dataclass(frozen=True, slots=True)
class Merge:
    """Parts to be merged."""

    parts: tuple[Path, ...]  # folders with the tables of `schemas`; their names order them
    base: Path | None  # the generation that unchanged documents are taken from; its files have been verified
    out: Path  # folder of the generation to be
    work: Path  # folder for what is needed until the generation is complete
    settings: MergeSettings
    # the generation that says since when documents are indexed; its documents have been verified
    earlier: Path | None = None


class Encoding(NamedTuple):
    """How vectors of one encoder look, and what decided them besides their texts."""

    dimension: int
    made_with: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedTables:
    """What came together."""

    counts: Mapping[str, int]  # rows by table, and contents
    digests: Mapping[str, str]  # of the tables that say what the generation means
    encoders: Mapping[str, Encoding]  # what is known of each encoder's vectors, by its name
    unchanged: int  # documents taken from the base
    unchanged_contents: int  # contents of these
    # counts by "rejected", "by_type", "by_domain" and "by_language", the largest first
    summaries: Mapping[str, Mapping[str, int]]


def merge_tables(task: Merge) -> MergedTables:
    """Write every table of a generation; running it again writes the same."""
    folder = task.out / CHUNKS_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    spill = task.work / "spill"
    settings = task.settings
    with TableQueries(spill, memory_mb=settings.memory_mb, threads=settings.threads) as queries:
        _define(queries, task)
        # In this order: contents are runs of hashes among the chunks just written, and mentions are joined with them.
        digests = {name: RowsDigest() for name in _HASHED}
        counts = {
            "documents": _write(queries, folder, "documents", _DOCUMENTS, digests["documents"]),
            "texts": _write(queries, folder, "texts", _TEXTS),
            "rejected": _write(queries, folder, "rejected", _REJECTED),
            "chunks": _write(queries, folder, "chunks", _CHUNKS, digests["chunks"]),
            "contents": _write_contents(folder),
        }
        queries.define("contents", [folder / "contents.parquet"], schemas.CONTENTS)
        counts["mentions"] = _write(queries, folder, "mentions", _MENTIONS)
        merged = MergedTables(
            counts=counts,
            digests={name: digest.hexdigest() for name, digest in digests.items()},
            encoders=_encoders(task),
            unchanged=_unchanged(queries),
            unchanged_contents=queries.number(
                "select count(distinct content_hash) from base_chunks semi join unchanged using (uri)"
            ),
            summaries=_summaries(queries, folder),
        )
    shutil.rmtree(spill, ignore_errors=True)
    return merged


def repeated_uri(uri: str) -> Rejection:
    """The note on a document whose URI another one has."""
    return Rejection(uri, REPEATED, _REPEATED_DETAIL)


def _define(queries: TableQueries, task: Merge) -> None:
    for name, schema in _OWN.items():
        queries.define(name, _files(task.parts, name), schema)
    for name in ("documents", "texts", "chunks", "mentions"):
        files = [] if task.base is None else [task.base / CHUNKS_FOLDER / f"{name}.parquet"]
        queries.define(f"base_{name}", files, schemas.TABLES[name])
    queries.define("earlier_documents", _documents_in(task.earlier), schemas.DOCUMENTS)
    made_at = 0.0 if task.earlier is None else read_generation_manifest(task.earlier).created_at
    since = f"select uri, coalesce(indexed_at, {made_at!r}) as since from earlier_documents"  # noqa: S608  # a number
    queries.keep("earlier", since)
    queries.keep("placed", _PLACED)
    queries.keep("unchanged", _UNCHANGED)
    queries.keep("mentioned", _MENTIONED)


def _documents_in(folder: Path | None) -> list[Path]:
    return [] if folder is None else [folder / CHUNKS_FOLDER / "documents.parquet"]


def _files(parts: Sequence[Path], name: str) -> list[Path]:
    return [path for part in parts if (path := part / f"{name}.parquet").exists()]


def _write(queries: TableQueries, folder: Path, name: str, query: str, digest: RowsDigest | None = None) -> int:
    """Write the rows of a query as one table, in its order, and count them."""
    schema, written = schemas.TABLES[name], 0
    with _writer(folder / f"{name}.parquet", schema) as writer:
        for table in _together(queries.ordered(query, _ORDER[name], schema, at_once=ROWS_TOGETHER)):
            writer.write_table(table)
            written += table.num_rows
            if digest is not None:
                digest.add(table)
    return written


def _write_contents(folder: Path) -> int:
    """Write each content hash once, in order, with the span of its occurrences; the chunks are sorted by it."""
    written = 0
    with _writer(folder / "contents.parquet", schemas.CONTENTS) as writer:
        for table in _runs(pq.ParquetFile(folder / "chunks.parquet")):
            writer.write_table(table)
            written += table.num_rows
    return written


def _runs(chunks: pq.ParquetFile) -> Iterator[pa.Table]:
    """Spans of equal content hashes; one that goes on in the next row group is told with that group."""
    name, first, position = "", 0, 0
    for batch in chunks.iter_batches(columns=["content_hash"]):
        # The hash that was open at the end of the former group goes in front, so that a run over the border is one
        # run, which began at `first`. The last run is left open, since it may go on in the next group.
        hashes = np.array([name, *batch["content_hash"].to_pylist()], dtype=object)
        starts = np.flatnonzero(hashes[1:] != hashes[:-1])
        names = [name, *hashes[1:][starts]]
        firsts = [first, *(starts + position)]
        begun = 1 if name else 0  # before the first row there is no span to end
        if ended := len(names) - 1:
            yield _spans(names[1 - begun : ended], firsts[1 - begun : ended], np.diff(firsts)[1 - begun :])
        name, first, position = names[-1], int(firsts[-1]), position + len(batch)
    if name:
        yield _spans([name], [first], [position - first])


def _spans(names: Iterable[str], firsts: Iterable[int], counts: Iterable[int]) -> pa.Table:
    arrays: list[pa.Array[Any]] = [
        pa.array(list(names), pa.string()),
        pa.array(firsts, pa.int64()),
        pa.array(counts, pa.int32()),
    ]
    return pa.Table.from_arrays(arrays, schema=schemas.CONTENTS)


def _unchanged(queries: TableQueries) -> int:
    unchanged = queries.number("select count(*) from unchanged")
    held = queries.number("select count(*) from base_documents semi join unchanged using (uri)")
    if unchanged != held:
        raise StoreError(
            f"expected {unchanged} unchanged documents in the live generation, found {held}; run with --full"
        )
    return unchanged


def _summaries(queries: TableQueries, folder: Path) -> dict[str, dict[str, int]]:
    queries.define("written_documents", [folder / "documents.parquet"], schemas.DOCUMENTS)
    queries.define("written_rejected", [folder / "rejected.parquet"], schemas.REJECTED)
    summaries = {title: queries.counts("written_documents", column) for title, column in _BY.items()}
    return {**summaries, "rejected": queries.counts("written_rejected", "reason")}


def _encoders(task: Merge) -> dict[str, Encoding]:
    """The encoders that the parts have vectors of; those of the base where the parts have none."""
    encoders: dict[str, Encoding] = {}
    for path in (path for part in task.parts for path in vector_tables(part)):
        schema = pq.read_schema(path)
        made_with = (schema.metadata or {}).get(schemas.MADE_WITH, b"").decode()
        for name in pq.read_table(path, columns=["encoder"])["encoder"].unique().to_pylist():
            encoders.setdefault(str(name), Encoding(schema.field("vector").type.list_size, made_with))
    if not encoders and task.base is not None:
        dense = read_generation_manifest(task.base).dense
        encoders = {name: Encoding(facts.dimension, facts.made_with) for name, facts in dense.items()}
    return dict(sorted(encoders.items()))


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True)


def _together(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of `ROWS_TOGETHER` rows each, but for the last."""
    held: list[pa.Table] = []
    rows = 0
    for table in tables:
        held.append(table)
        rows += table.num_rows
        while rows >= ROWS_TOGETHER:
            whole = pa.concat_tables(held)
            yield whole.slice(0, ROWS_TOGETHER)
            held, rows = [whole.slice(ROWS_TOGETHER)], rows - ROWS_TOGETHER
    if rows:
        yield pa.concat_tables(held)
