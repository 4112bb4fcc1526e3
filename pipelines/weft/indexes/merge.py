"""Merging parts into the tables of a generation, in one canonical order and in bounded memory (ING-24, ING-25).

What is said of documents is merged as a whole: there are few of them, and of two under one URI the first stays. Chunks
and what belongs to them are cut by ranges of content hash, and each range is merged by itself into a shard (SCL-6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft.domain.documents import Rejection
from weft.domain.errors import StoreError
from weft.indexes import schemas
from weft.indexes.dense.gather import vector_tables
from weft.indexes.manifest import CHUNKS_FOLDER, RowsDigest, read_generation_manifest
from weft.indexes.rows import hashes_of
from weft.indexes.settings import MergeSettings
from weft.indexes.shards import MapTasks, bounds, make_shards, overlapping, shard_count, shards_of, take_over
from weft.runtime.storage.tables import TableQueries

REPEATED = "repeated_uri"
ROWS_TOGETHER = 1_024
"""Rows of a row group: documents and their texts lie in the same groups, so that a group of both can be read alone."""

_CUT_BYTES = 64 * 1024**2  # of parts that one task cuts: bounds its memory, changes nothing else
_REPEATED_DETAIL = "expected every document under a URI of its own, another came first"
_OWN = {**schemas.TABLES, "kept": schemas.UNCHANGED}
_DROPPED = schemas.without_nulls(uri=pa.string(), dropped_from=pa.string())
_URIS = schemas.without_nulls(uri=pa.string())
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
_REPEATS = """
select uri, part from (select uri, part from documents union all select uri, part from kept)
anti join placed using (uri, part)
"""
_REJECTED = f"""
select uri, reason, detail from rejected
union all
select uri, '{REPEATED}', '{_REPEATED_DETAIL}' from ({_REPEATS})
"""  # noqa: S608  # our own words
_STAYED = "select base_chunks.* from base_chunks semi join unchanged using (uri) where {inside}"
_NEW = "select chunks.* from chunks anti join dropped using (uri, part)"
_CHUNKS = f"{_NEW} union all by name {_STAYED}"
# A content that stands in several parts has the mentions of the first: they were found in the same text.
_MENTIONED = """
select * replace ('' as part) from base_mentions where {inside} and exists (select 1 from unchanged)
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
    shard_contents: int  # contents of a shard, about, each counted wherever it stands
    # the generation that says since when documents are indexed; its documents have been verified
    earlier: Path | None = None

    @property
    def dropped(self) -> Path:
        """The file of what was left out of the parts: another document of that URI came first."""
        return self.work / "dropped.parquet"

    @property
    def unchanged(self) -> Path:
        """The file of the URIs of unchanged documents."""
        return self.work / "unchanged.parquet"


class Encoding(NamedTuple):
    """How vectors of one encoder look, and what decided them besides their texts."""

    dimension: int
    made_with: str


@dataclass(frozen=True, slots=True)
class MergedShard:
    """The tables of one shard."""

    folder: Path
    parts: tuple[Path, ...]  # where its new vectors, tokens and weights are
    counts: Mapping[str, int]  # rows of its tables
    digest: str  # of its chunks
    unchanged_contents: int
    base: Path | None  # the same shard of the generation before, where that is unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedTables:
    """What came together."""

    counts: Mapping[str, int]  # rows by table, and contents
    digests: Mapping[str, str]  # of the tables that say what the generation means
    shards: Sequence[MergedShard]
    encoders: Mapping[str, Encoding]  # what is known of each encoder's vectors, by its name
    unchanged: int  # documents taken from the base
    unchanged_contents: int  # contents of these
    # counts by "rejected", "by_type", "by_domain" and "by_language", the largest first
    summaries: Mapping[str, Mapping[str, int]]


def merge_tables(task: Merge, run: MapTasks = map) -> MergedTables:
    """Write every table of a generation; running it again writes the same."""
    task.work.mkdir(parents=True, exist_ok=True)
    (documents,) = run(_merge_documents, [task])
    folders = make_shards(task.out, shard_count(documents.chunks, task.shard_contents))
    parts = _cut(task, len(folders), run)
    tasks = [_Shard(task, shard, len(folders), folders[shard], parts[shard]) for shard in range(len(folders))]
    shards = list(run(_merge_shard, tasks))
    counts = Counter(documents.counts)
    for one in shards:
        counts.update(one.counts)
    chunks = {f"chunks-{number:04d}" if number else "chunks": shard.digest for number, shard in enumerate(shards)}
    return MergedTables(
        counts=dict(counts),
        digests={"documents": documents.digest, **chunks},
        shards=shards,
        encoders=documents.encoders,
        unchanged=documents.unchanged,
        unchanged_contents=sum(shard.unchanged_contents for shard in shards),
        summaries=documents.summaries,
    )


@dataclass(frozen=True, slots=True)
class _Documents:
    """What is said of documents, merged."""

    counts: Mapping[str, int]
    digest: str
    chunks: int  # rows that the chunks of all shards will have
    encoders: Mapping[str, Encoding]
    unchanged: int
    summaries: Mapping[str, Mapping[str, int]]


def _merge_documents(task: Merge) -> _Documents:
    folder, spill = task.out / CHUNKS_FOLDER, task.work / "documents"
    folder.mkdir(parents=True, exist_ok=True)
    digest = RowsDigest()
    with TableQueries(spill, memory_mb=task.settings.memory_mb, threads=task.settings.threads) as queries:
        _define_documents(queries, task)
        counts = {
            "documents": _write(queries, folder, "documents", _DOCUMENTS, digest),
            "texts": _write(queries, folder, "texts", _TEXTS),
            "rejected": _write(queries, folder, "rejected", _REJECTED),
        }
        for path, query, schema in (
            (task.dropped, "select uri, part as dropped_from from dropped", _DROPPED),
            (task.unchanged, "select uri from unchanged", _URIS),
        ):
            with _writer(path, schema) as writer:
                for table in queries.rows(query, schema, at_once=ROWS_TOGETHER):
                    writer.write_table(table)
        return _Documents(
            counts=counts,
            digest=digest.hexdigest(),
            chunks=queries.number(f"select count(*) from ({_CHUNKS.format(inside='true')})"),  # noqa: S608
            encoders=_encoders(task),
            unchanged=_unchanged(queries),
            summaries=_summaries(queries, folder),
        )


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring parts, to be cut by ranges of content hash."""

    parts: Sequence[Path]
    folder: Path  # of all cut parts: a folder for each shard, and in it one for each run
    number: int
    shards: int
    dropped: Path

    def out(self, shard: int) -> Path:
        """The folder of what one shard gets."""
        return self.folder / f"{shard:04d}" / f"run-{self.number:06d}"


def _cut(task: Merge, count: int, run: MapTasks) -> list[tuple[Path, ...]]:
    """The parts of each shard: all of them for the only one, else what was cut out of them."""
    if count == 1:
        return [task.parts]
    slices, runs, size = task.work / "slices", list[list[Path]](), _CUT_BYTES
    for part in sorted(task.parts, key=lambda part: part.name):
        if size >= _CUT_BYTES:
            runs.append([])
            size = 0
        runs[-1].append(part)
        size += sum(path.stat().st_size for path in part.glob("*.parquet"))
    tasks = [_Run(some, slices, number, count, task.dropped) for number, some in enumerate(runs)]
    written = list(run(_cut_run, tasks))
    return [
        tuple(one.out(shard) for one, shards in zip(tasks, written, strict=True) if shard in shards)
        for shard in range(count)
    ]


def _cut_run(task: _Run) -> frozenset[int]:
    """Write what each shard gets of some parts, in the shapes of a part; which shards get something."""
    ranges, dropped = np.array(bounds(task.shards), dtype="S8"), pq.read_table(task.dropped)
    met: set[int] = set()
    for name in sorted({path.name for part in task.parts for path in part.glob("*.parquet")}):
        tables = _whole(name, task.parts, dropped)
        if not tables:
            continue
        table = pa.concat_tables(tables)
        shard = np.searchsorted(ranges, hashes_of(table["content_hash"]), side="right")
        for number in np.unique(shard).tolist():
            task.out(number).mkdir(parents=True, exist_ok=True)
            rows = table.take(np.flatnonzero(shard == number))
            pq.write_table(rows, task.out(number) / name, row_group_size=ROWS_TOGETHER)
            met.add(number)
    return frozenset(met)


def _whole(name: str, parts: Sequence[Path], dropped: pa.Table) -> list[pa.Table]:
    """The tables of one name that chunks or contents have, without what was left out; of texts the first part's."""
    tables: list[pa.Table] = []
    met: set[str] = set()
    for part in parts:
        if not (part / name).exists():
            continue
        with pq.ParquetFile(part / name) as file:
            if "content_hash" not in file.schema_arrow.names:
                return []
            table = file.read()
        if name == "chunks.parquet":
            gone = dropped.filter(pc.equal(dropped["dropped_from"], pa.scalar(part.name)))["uri"]
            table = table.filter(pc.invert(pc.is_in(table["uri"], value_set=gone.combine_chunks())))
        elif name in ("mentions.parquet", "weights.parquet"):
            hashes = [str(each) for each in table["content_hash"].to_pylist()]
            table = table.filter(pa.array([each not in met for each in hashes], pa.bool_()))
            met.update(hashes)
        tables.append(table)
    return tables


@dataclass(frozen=True, slots=True)
class _Shard:
    """One shard to be merged."""

    merge: Merge
    number: int
    count: int
    folder: Path
    parts: tuple[Path, ...]

    @property
    def inside(self) -> str:
        """A condition that the hashes of its range meet; every digit is below "g"."""
        low, high = ["", *bounds(self.count), "g"][self.number : self.number + 2]
        return f"content_hash >= '{low}' and content_hash < '{high}'"

    @property
    def base(self) -> list[Path]:
        """The shards of the generation before that hold any of it."""
        return [] if self.merge.base is None else overlapping(shards_of(self.merge.base), self.number, self.count)


def _merge_shard(task: _Shard) -> MergedShard:
    """Write the tables of one shard, or take over those of the generation before, where nothing in them changed."""
    folder, settings, digest = task.folder / CHUNKS_FOLDER, task.merge.settings, RowsDigest()
    spill = task.merge.work / f"shard-{task.number:04d}"
    folder.mkdir(parents=True, exist_ok=True)
    with TableQueries(spill, memory_mb=settings.memory_mb, threads=settings.threads) as queries:
        _define_shard(queries, task)
        if (taken := _taken_over(queries, task)) is not None:
            return taken
        # In this order: contents are runs of hashes among the chunks just written, and mentions are joined with them.
        counts = {
            "chunks": _write(queries, folder, "chunks", _CHUNKS.format(inside=task.inside), digest),
            "contents": _write_contents(folder),
        }
        queries.define("contents", [folder / "contents.parquet"], schemas.CONTENTS)
        counts["mentions"] = _write(queries, folder, "mentions", _MENTIONS)
        stayed = _STAYED.format(inside=task.inside)
        return MergedShard(
            folder=task.folder,
            parts=task.parts,
            counts=counts,
            digest=digest.hexdigest(),
            unchanged_contents=queries.number(f"select count(distinct content_hash) from ({stayed})"),  # noqa: S608
            base=None,
        )


def _taken_over(queries: TableQueries, task: _Shard) -> MergedShard | None:
    """The shard of the generation before, where nothing was added to it and nothing is gone; else None."""
    if task.merge.base is None or len(task.base) != 1:
        return None
    facts = read_generation_manifest(task.merge.base).shards
    gone = "select count(*) from base_chunks anti join unchanged using (uri)"
    if len(facts) != task.count or queries.number(f"select count(*) from ({_NEW})") or queries.number(gone):  # noqa: S608
        return None
    own, (base,) = facts[task.number], task.base
    take_over(base, task.folder, [f"{CHUNKS_FOLDER}/{name}.parquet" for name in ("chunks", "contents", "mentions")])
    return MergedShard(task.folder, task.parts, own.counts, own.digest, own.counts["contents"], base)


def repeated_uri(uri: str) -> Rejection:
    """The note on a document whose URI another one has."""
    return Rejection(uri, REPEATED, _REPEATED_DETAIL)


def _define_documents(queries: TableQueries, task: Merge) -> None:
    for name, schema in _OWN.items():
        queries.define(name, _files(task.parts, name), schema)
    for name in ("documents", "texts"):
        files = [] if task.base is None else [task.base / CHUNKS_FOLDER / f"{name}.parquet"]
        queries.define(f"base_{name}", files, schemas.TABLES[name])
    base = [] if task.base is None else shards_of(task.base)
    queries.define("base_chunks", _files([shard / CHUNKS_FOLDER for shard in base], "chunks"), schemas.CHUNKS)
    queries.define("earlier_documents", _documents_in(task.earlier), schemas.DOCUMENTS)
    made_at = 0.0 if task.earlier is None else read_generation_manifest(task.earlier).created_at
    since = f"select uri, coalesce(indexed_at, {made_at!r}) as since from earlier_documents"  # noqa: S608  # a number
    queries.keep("earlier", since)
    queries.keep("placed", _PLACED)
    queries.keep("unchanged", _UNCHANGED)
    queries.keep("dropped", _REPEATS)


def _define_shard(queries: TableQueries, task: _Shard) -> None:
    base = [shard / CHUNKS_FOLDER for shard in task.base]
    for name in ("chunks", "mentions"):
        queries.define(name, _files(task.parts, name), schemas.TABLES[name])
        queries.define(f"base_{name}", _files(base, name), schemas.TABLES[name])
    queries.define("dropped_uris", [task.merge.dropped], _DROPPED)
    queries.keep("dropped", "select uri, dropped_from as part from dropped_uris")
    queries.define("unchanged_uris", [task.merge.unchanged], _URIS)
    queries.keep("unchanged", "select uri from unchanged_uris")
    queries.keep("mentioned", _MENTIONED.format(inside=task.inside))


def _documents_in(folder: Path | None) -> list[Path]:
    return [] if folder is None else [folder / CHUNKS_FOLDER / "documents.parquet"]


def _files(folders: Iterable[Path], name: str) -> list[Path]:
    return [path for folder in folders if (path := folder / f"{name}.parquet").exists()]


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
