"""Merging parts into the tables of a generation, in one canonical order and in bounded memory (ING-24, ING-25).

Of two documents under one URI the first stays: which one that is, one worker finds out, from lists of URIs alone. All
rows are then cut by ranges, and each range is merged by itself into a shard (SCL-6): chunks and what belongs to them by
content hash; documents, their texts and what was rejected by the hash of their URI.
"""

from __future__ import annotations

import hashlib
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
from weft.indexes.rows import HASH, hashes_of
from weft.indexes.settings import MergeSettings
from weft.indexes.shards import MapTasks, await_all, bounds, make_shards, overlapping, shard_count, shards_of, take_over
from weft.runtime.storage.files import MANIFEST_FILE
from weft.runtime.storage.run_files import Brought
from weft.runtime.storage.tables import TableQueries

REPEATED = "repeated_uri"
ROWS_TOGETHER = 1_024
"""Rows of a row group: documents and their texts lie in the same groups, so that a group of both can be read alone."""

_TOGETHER = 64  # parts that one task lists or cuts: bounds its memory, changes nothing else
_REPEATED_DETAIL = "expected every document under a URI of its own, another came first"
_OWN = {**schemas.TABLES, "kept": schemas.UNCHANGED}
_DROPPED = schemas.without_nulls(uri=pa.string(), dropped_from=pa.string())
_BY_CONTENT = ("chunks", "mentions")
_BY_URI = ("documents", "texts", "rejected")
_URI_HASH = "sha256(uri)"
_EARLIER = f"{CHUNKS_FOLDER}/documents.parquet"  # that says since when documents are indexed
_BY = {"by_type": "content_type", "by_domain": "domain", "by_language": "language"}

# What is in some parts, and in a shard of the generation before, of each URI.
_LISTED = schemas.without_nulls(uri=pa.string(), of=pa.string(), documents=pa.int64(), chunks=pa.int64())
_COUNTED = """
select uri, part as of, sum(documents)::bigint as documents, sum(chunks)::bigint as chunks from (
    select uri, part, 1 as documents, 0 as chunks from documents union all select uri, part, 0, 1 from chunks
) group by all
"""
_STAYING = schemas.UNCHANGED.append(pa.field("of", pa.string(), nullable=False))

# Of documents with one URI the first part's stays; what is in the live generation unchanged counts for its own part.
_PLACES = "select uri, of from listed where documents > 0 union all select uri, of from kept"
_PLACED = f"select uri, min(of) as of from ({_PLACES}) group by uri"  # noqa: S608  # our own words
_UNCHANGED = "select kept.uri, kept.modified_at, kept.made_from from kept join placed using (uri, of)"
_REPEATS = f"select uri, of from ({_PLACES}) anti join placed using (uri, of)"  # noqa: S608
_COUNT = """
select (select coalesce(sum(chunks), 0) from listed anti join dropped using (uri, of))
    + (select coalesce(sum(chunks), 0) from held semi join unchanged using (uri))
"""
_DOCUMENTS = """
select documents.* replace (earlier.since as indexed_at)
from documents anti join dropped using (uri, part) left join earlier using (uri)
union all by name
select base_documents.* replace (
    unchanged.modified_at as modified_at, unchanged.made_from as made_from, earlier.since as indexed_at
)
from base_documents join unchanged using (uri) left join earlier using (uri) where {inside}
"""
_TEXTS = """
select texts.* from texts anti join dropped using (uri, part)
union all by name
select base_texts.* from base_texts semi join unchanged using (uri) where {inside}
"""
_REJECTED = f"""
select uri, reason, detail from rejected
union all
select uri, '{REPEATED}', '{_REPEATED_DETAIL}' from dropped where {{inside}}
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
    of_documents: str  # the digest of its documents
    summaries: Mapping[str, Mapping[str, int]]  # see `MergedTables`
    unchanged_contents: int
    base: Path | None  # the same shard of the generation before, where its contents are unchanged
    encoders: Mapping[str, Encoding]  # of its new vectors


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


def merge_tables(task: Merge, run: MapTasks = map, alone: MapTasks | None = None) -> MergedTables:
    """Write every table of a generation; running it again writes the same.

    Args:
        alone: Runs the tasks of a generation of one shard; `run` where none is given.
    """
    for folder in (task.work, task.out / CHUNKS_FOLDER):
        folder.mkdir(parents=True, exist_ok=True)
    (outline,) = run(_outline, [_Outlined(task, _listed(task, run))])
    folders = make_shards(task.out, shard_count(outline.chunks, task.shard_contents))
    parts = _cut(task, len(folders), run)
    tasks = [_Shard(task, shard, len(folders), folders[shard], parts[shard]) for shard in range(len(folders))]
    shards = list((run if len(folders) > 1 else alone or run)(_merge_shard, tasks))
    counts: Counter[str] = Counter()
    digests = {}
    for number, one in enumerate(shards):
        counts.update(one.counts)
        for name, digest in (("chunks", one.digest), ("documents", one.of_documents)):
            digests[f"{name}-{number:04d}" if number else name] = digest
    return MergedTables(
        counts=dict(counts),
        digests=digests,
        shards=shards,
        encoders=_encoders(shards, task.base),
        unchanged=outline.unchanged,
        unchanged_contents=sum(shard.unchanged_contents for shard in shards),
        summaries={title: _added(shard.summaries[title] for shard in shards) for title in (*_BY, "rejected")},
    )


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts of several shards as one, the largest first."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def _listed(task: Merge, run: MapTasks) -> list[Path]:
    """Folders with lists of what is in some parts each, or in a shard of the generation before."""
    parts, folder = sorted(task.parts, key=lambda part: part.name), task.work / "listed"
    listings = [
        _Listing(number, tuple(parts[start : start + _TOGETHER]), folder / f"parts-{number:06d}", task.settings)
        for number, start in enumerate(range(0, len(parts), _TOGETHER))
    ]
    before = [] if task.base is None else shards_of(task.base)
    listings += [
        _Listing(number, (shard / CHUNKS_FOLDER,), folder / f"before-{number:06d}", task.settings, task.base)
        for number, shard in enumerate(before)
    ]
    await_all(run(_list, listings))
    return [each.out for each in listings]


@dataclass(frozen=True, slots=True)
class _Listing:
    """What is to be listed: some parts, or the tables of a shard of the generation before."""

    number: int
    folders: tuple[Path, ...]
    out: Path
    settings: MergeSettings
    before: Path | None = None  # that generation

    @property
    def reads(self) -> Iterator[Brought]:
        """Tables that have URIs."""
        if self.before is None:
            yield from (Brought(folder, ("documents.", "chunks.", "kept.")) for folder in self.folders)
        else:
            yield from (Brought(folder.parent) for folder in self.folders)

    @property
    def writes(self) -> list[Path]:
        """The list."""
        return [self.out]


def _list(task: _Listing) -> None:
    task.out.mkdir(parents=True, exist_ok=True)
    spill = task.out / "spill"
    with TableQueries(spill, memory_mb=task.settings.memory_mb, threads=task.settings.threads) as queries:
        for name in ("documents", "chunks", "kept"):
            queries.define(name, _files(task.folders, name), _OWN[name])
        staying = "select uri, modified_at, made_from, part as of from kept"
        for name, query, schema in (("listed", _COUNTED, _LISTED), ("kept", staying, _STAYING)):
            with _writer(task.out / f"{name}.parquet", schema) as writer:
                for table in queries.rows(query, schema, at_once=ROWS_TOGETHER):
                    writer.write_table(table)


@dataclass(frozen=True, slots=True)
class _Outlined:
    """What is to be found out of lists."""

    merge: Merge
    listed: Sequence[Path]

    @property
    def reads(self) -> list[Brought]:
        """The lists."""
        return [Brought(folder) for folder in self.listed]

    @property
    def writes(self) -> list[Path]:
        """What is left out, and what is unchanged."""
        return [self.merge.dropped, self.merge.unchanged]


@dataclass(frozen=True, slots=True)
class _Outline:
    """What has to be known of all parts before they are cut."""

    chunks: int  # rows that the chunks of all shards will have
    unchanged: int  # documents taken from the base


def _outline(of: _Outlined) -> _Outline:
    """Write which documents are left out, and which are unchanged."""
    task = of.merge
    parts = [folder for folder in of.listed if folder.name.startswith("parts-")]
    before = [folder for folder in of.listed if folder not in parts]
    spill = task.work / "outline"
    with TableQueries(spill, memory_mb=task.settings.memory_mb, threads=task.settings.threads) as queries:
        queries.define("listed", _files(parts, "listed"), _LISTED)
        queries.define("kept", _files(parts, "kept"), _STAYING)
        queries.define("held", _files(before, "listed"), _LISTED)
        queries.keep("placed", _PLACED)
        queries.keep("unchanged", _UNCHANGED)
        queries.keep("dropped", _REPEATS)
        for path, query, schema in (
            (task.dropped, "select uri, of as dropped_from from dropped", _DROPPED),
            (task.unchanged, "select * from unchanged", schemas.UNCHANGED),
        ):
            with _writer(path, schema) as writer:
                for table in queries.rows(query, schema, at_once=ROWS_TOGETHER):
                    writer.write_table(table)
        return _Outline(chunks=queries.number(_COUNT), unchanged=_unchanged(queries))


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring parts, to be cut by ranges of content hash, or of the hash of their URIs."""

    parts: Sequence[Path]
    folder: Path  # of all cut parts: a folder for each shard, and in it one for each run
    number: int
    shards: int
    dropped: Path

    @property
    def reads(self) -> list[Brought]:
        """The parts, and what is left out of them."""
        return [*map(Brought, self.parts), Brought(self.dropped)]

    @property
    def writes(self) -> list[Path]:
        """What each shard gets."""
        return [self.out(shard) for shard in range(self.shards)]

    def out(self, shard: int) -> Path:
        """The folder of what one shard gets."""
        return self.folder / f"{shard:04d}" / f"run-{self.number:06d}"


def _cut(task: Merge, count: int, run: MapTasks) -> list[tuple[Path, ...]]:
    """The parts of each shard: all of them for the only one, else what was cut out of them."""
    if count == 1:
        return [task.parts]
    slices, parts = task.work / "slices", sorted(task.parts, key=lambda part: part.name)
    runs = [parts[start : start + _TOGETHER] for start in range(0, len(parts), _TOGETHER)]
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
        shard = np.searchsorted(ranges, _deciding(table), side="right")
        for number in np.unique(shard).tolist():
            task.out(number).mkdir(parents=True, exist_ok=True)
            rows = table.take(np.flatnonzero(shard == number))
            pq.write_table(rows, task.out(number) / name, row_group_size=ROWS_TOGETHER)
            met.add(number)
    return frozenset(met)


def _deciding(table: pa.Table) -> np.ndarray:
    """The hash that decides which shard each row goes to."""
    if "content_hash" in table.column_names:
        return hashes_of(table["content_hash"])
    uris = table["uri"].to_pylist()
    return np.array([hashlib.sha256(str(uri).encode()).hexdigest() for uri in uris], dtype=HASH)


def _whole(name: str, parts: Sequence[Path], dropped: pa.Table) -> list[pa.Table]:
    """The tables of one name that shards have, without what was left out; of a content the first part's."""
    tables: list[pa.Table] = []
    met: set[str] = set()
    for part in parts:
        if not (part / name).exists():
            continue
        if name == "kept.parquet":  # read as a whole before
            return []
        with pq.ParquetFile(part / name) as file:
            table = file.read()
        if name in ("chunks.parquet", "documents.parquet", "texts.parquet"):
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

    def inside(self, digest: str) -> str:
        """A condition that the hashes of its range meet; every digit is below "g"."""
        if self.count == 1:
            return "true"
        low, high = ["", *bounds(self.count), "g"][self.number : self.number + 2]
        return f"{digest} >= '{low}' and {digest} < '{high}'"

    @property
    def reads(self) -> Iterator[Brought]:
        """What was cut for it; of the generation before all of the shards that hold any of it, or their documents."""
        yield from map(Brought, (*self.parts, self.merge.dropped, self.merge.unchanged))
        for generation, names in ((self.merge.base, [""]), (self.merge.earlier, [_EARLIER])):
            if generation is not None:
                yield Brought(generation / MANIFEST_FILE)
                yield from (Brought(shard / name) for shard in self.overlapped(generation) for name in names)

    @property
    def writes(self) -> list[Path]:
        """Its tables."""
        return [self.folder / CHUNKS_FOLDER]

    def overlapped(self, generation: Path | None) -> list[Path]:
        """The shards of another generation that hold any of it."""
        return [] if generation is None else overlapping(shards_of(generation), self.number, self.count)


def _merge_shard(task: _Shard) -> MergedShard:
    """Write the tables of one shard, or take over those of the generation before, where nothing in them changed."""
    folder, settings = task.folder / CHUNKS_FOLDER, task.merge.settings
    spill = task.merge.work / f"shard-{task.number:04d}"
    folder.mkdir(parents=True, exist_ok=True)
    with TableQueries(spill, memory_mb=settings.memory_mb, threads=settings.threads) as queries:
        _define_shard(queries, task)
        documents, inside = RowsDigest(), task.inside(_URI_HASH)
        of_documents = {
            "documents": _write(queries, folder, "documents", _DOCUMENTS.format(inside=inside), documents),
            "texts": _write(queries, folder, "texts", _TEXTS.format(inside=inside)),
            "rejected": _write(queries, folder, "rejected", _REJECTED.format(inside=inside)),
        }
        contents = _taken_over(queries, task) or _written(queries, task)
        return MergedShard(
            folder=task.folder,
            parts=task.parts,
            counts={**of_documents, **contents.counts},
            digest=contents.digest,
            of_documents=documents.hexdigest(),
            summaries=_summaries(queries, folder),
            unchanged_contents=contents.unchanged,
            base=contents.base,
            encoders=_encoders_in(task.parts),
        )


class _Contents(NamedTuple):
    """What a shard's tables of contents came to."""

    counts: Mapping[str, int]
    digest: str
    unchanged: int
    base: Path | None = None  # where they were taken over from


def _written(queries: TableQueries, task: _Shard) -> _Contents:
    folder, digest, inside = task.folder / CHUNKS_FOLDER, RowsDigest(), task.inside("content_hash")
    # In this order: contents are runs of hashes among the chunks just written, and mentions are joined with them.
    counts = {
        "chunks": _write(queries, folder, "chunks", _CHUNKS.format(inside=inside), digest),
        "contents": _write_contents(folder),
    }
    queries.define("contents", [folder / "contents.parquet"], schemas.CONTENTS)
    counts["mentions"] = _write(queries, folder, "mentions", _MENTIONS)
    stayed = _STAYED.format(inside=inside)
    unchanged = queries.number(f"select count(distinct content_hash) from ({stayed})")  # noqa: S608
    return _Contents(counts, digest.hexdigest(), unchanged)


def _taken_over(queries: TableQueries, task: _Shard) -> _Contents | None:
    """Those of the generation before, where nothing was added to them and nothing is gone; else None."""
    overlapped = task.overlapped(task.merge.base)
    if task.merge.base is None or len(overlapped) != 1:
        return None
    facts = read_generation_manifest(task.merge.base).shards
    gone = "select count(*) from base_chunks anti join unchanged using (uri)"
    if len(facts) != task.count or queries.number(f"select count(*) from ({_NEW})") or queries.number(gone):  # noqa: S608
        return None
    own, (base,), tables = facts[task.number], overlapped, ("chunks", "contents", "mentions")
    take_over(base, task.folder, [f"{CHUNKS_FOLDER}/{name}.parquet" for name in tables])
    return _Contents({name: own.counts[name] for name in tables}, own.digest, own.counts["contents"], base)


def repeated_uri(uri: str) -> Rejection:
    """The note on a document whose URI another one has."""
    return Rejection(uri, REPEATED, _REPEATED_DETAIL)


def _define_shard(queries: TableQueries, task: _Shard) -> None:
    base = [shard / CHUNKS_FOLDER for shard in task.overlapped(task.merge.base)]
    for name in (*_BY_CONTENT, *_BY_URI):
        queries.define(name, _files(task.parts, name), schemas.TABLES[name])
        queries.define(f"base_{name}", _files(base, name), schemas.TABLES[name])
    queries.define("dropped_uris", [task.merge.dropped], _DROPPED)
    queries.keep("dropped", "select uri, dropped_from as part from dropped_uris")
    queries.define("unchanged_uris", [task.merge.unchanged], schemas.UNCHANGED)
    queries.keep("unchanged", "select uri, modified_at, made_from from unchanged_uris")
    earlier = task.merge.earlier
    files = _files([shard / CHUNKS_FOLDER for shard in task.overlapped(earlier)], "documents")
    queries.define("earlier_documents", files, schemas.DOCUMENTS)
    made_at = 0.0 if earlier is None else read_generation_manifest(earlier).created_at
    since = f"select uri, coalesce(indexed_at, {made_at!r}) as since from earlier_documents"  # noqa: S608  # a number
    queries.keep("earlier", since)
    queries.keep("mentioned", _MENTIONED.format(inside=task.inside("content_hash")))


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
    held = queries.number("select coalesce(sum(documents), 0) from held semi join unchanged using (uri)")
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


def _encoders(shards: Iterable[MergedShard], base: Path | None) -> dict[str, Encoding]:
    """The encoders that the parts have vectors of; those of the base where the parts have none."""
    encoders: dict[str, Encoding] = {}
    for shard in shards:
        encoders = {**shard.encoders, **encoders}
    if not encoders and base is not None:
        dense = read_generation_manifest(base).dense
        encoders = {name: Encoding(facts.dimension, facts.made_with) for name, facts in dense.items()}
    return dict(sorted(encoders.items()))


def _encoders_in(parts: Iterable[Path]) -> dict[str, Encoding]:
    encoders: dict[str, Encoding] = {}
    for path in (path for part in parts for path in vector_tables(part)):
        schema = pq.read_schema(path)
        made_with = (schema.metadata or {}).get(schemas.MADE_WITH, b"").decode()
        for name in pq.read_table(path, columns=["encoder"])["encoder"].unique().to_pylist():
            encoders.setdefault(str(name), Encoding(schema.field("vector").type.list_size, made_with))
    return encoders


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
