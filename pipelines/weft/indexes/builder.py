"""Building a generation from parts: merge the tables, index vectors and text side by side, seal."""

from __future__ import annotations

import importlib
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.domain.ids import GenerationId
from weft.indexes import schemas
from weft.indexes.dense.gather import DenseTask, IsolationTask, gather, isolate
from weft.indexes.dense.isolation import compared_rows
from weft.indexes.dense.samples import write_samples
from weft.indexes.dense.vectors import FAISS_FILE, TUNING, StoredVectors, TrainedIndex, index_vectors
from weft.indexes.former_places import FORMER_PLACES, FORMER_PLACES_FILE
from weft.indexes.graph.aliases import LONGEST_GROUP
from weft.indexes.graph.build import build_graph
from weft.indexes.graph.nodes import SIMILAR_CONTENTS
from weft.indexes.graph.rounds import GraphTask
from weft.indexes.manifest import (
    CHUNKS_FOLDER,
    IMPACTS_MODULE,
    LUCENE_FOLDER,
    SPARSE,
    VECTORS_FOLDER,
    DenseFacts,
    Manifest,
    ShardFacts,
    content_hash_of,
    encoder_folder,
    read_generation_manifest,
    seal,
    tables_of,
)
from weft.indexes.merge import Encoding, Merge, MergedShard, MergedTables, merge_tables
from weft.indexes.settings import IndexSettings, MergeSettings, RevisionSettings
from weft.indexes.shards import MapTasks, await_all, overlapping, shards_of, take_over
from weft.indexes.text.build import MergeShards, ShardTask, build_merged, build_shard, shard_tasks
from weft.runtime.clock import SECONDS_PER_DAY
from weft.runtime.storage.files import file_hashes
from weft.runtime.storage.run_files import Brought
from weft.runtime.storage.tables import TableQueries

# Which content took the place of one that is no longer there: its text, edited, cut otherwise or moved (ARC-4).
#
# What people said stays with the text that they saw; searches count it for what that text became. Two contents are
# compared by the runs of three words that both hold, but for runs that stand everywhere. A text replaces another if it
# holds at least `least_overlap` of the runs of the shorter one, and no other text has more in common with either. So
# edited texts, halves of a text and a text of two halves match; a text that was written anew does not. Over several
# generations overlaps multiply, so that a text which becomes another one step by step is lost at last.
#
# People also name places, such as a heading of a page. What stood at a place that is gone, since its page was renamed
# or its heading reworded, is noted beside (LRN-23).

REVISIONS_FILE = "revisions.parquet"

REVISIONS = schemas.without_nulls(
    content_hash=pa.string(), revision=pa.string(), overlap=pa.float64(), since=pa.float64()
)
"""What took the place of contents that are gone: `overlap` of their texts, in (0, 1], and when the generation was made,
in seconds since the epoch, that held the old text last."""

_TOGETHER = 1_024  # rows written at once
_EVERYWHERE = 64  # contents, gone or new, that a run of words stands in: one that more hold tells nothing apart

# Words are runs of letters and digits, or single characters of scripts that are written without blanks.
_RUNS = r"""
select content_hash, unnest(list_distinct(list_transform(
    range(1, greatest(len(words) - 1, 2)), lambda i: hash(words[i], words[i + 1], words[i + 2])
))) as run
from (
    select content_hash,
        regexp_extract_all(
            lower(any_value(text)), '\p{{Han}}|\p{{Hiragana}}|\p{{Katakana}}|\p{{Thai}}|[\pL\pN]+'
        ) as words
    from {of} anti join {others} using (content_hash) group by content_hash
)
"""
_TELLING = """
select * from {name}_all anti join (select run from {name}_all group by run having count(*) > {most}) using (run)
"""
_SIZES = "select content_hash, count(*) as runs from {name} group by content_hash"
_PAIRS = """
select gone.content_hash as content_hash, new.content_hash as revision,
    count(*) / least(any_value(gone_sizes.runs), any_value(new_sizes.runs)) as overlap,
    count(*) / (any_value(gone_sizes.runs) + any_value(new_sizes.runs) - count(*)) as likeness
from gone join new using (run)
join gone_sizes on gone_sizes.content_hash = gone.content_hash
join new_sizes on new_sizes.content_hash = new.content_hash
group by gone.content_hash, new.content_hash
"""
_DIRECT = """
select content_hash, revision, overlap from pairs
where overlap >= {least}
qualify likeness = max(likeness) over (partition by content_hash)
    or likeness = max(likeness) over (partition by revision)
"""
# What took the place of a content before, or what took that one's place now; nothing of a content that is back.
_REVISIONS = """
select content_hash, revision, max(overlap) as overlap, max(since) as since from (
    select content_hash, revision, overlap, {made_at} as since from direct
    union all
    select content_hash, revision, overlap, since from earlier_revisions
    semi join written_chunks on written_chunks.content_hash = revision
    union all
    select earlier_revisions.content_hash, direct.revision, earlier_revisions.overlap * direct.overlap, since
    from earlier_revisions join direct on direct.content_hash = earlier_revisions.revision
) as noted anti join written_chunks using (content_hash)
where overlap >= {least} and since >= {oldest}
group by content_hash, revision
"""

# A place is a heading or a symbol of a page. Its lines move with every edit, and are noted for who named a line.
_PLACES = """
select distinct uri, coalesce(heading_path[-1], '') as heading, coalesce(symbol, '') as symbol,
    start_line, end_line, content_hash
from {chunks}
"""
_FORMER_PLACES = """
select uri, heading, symbol, start_line, end_line, content_hash, max(since) as since from (
    select *, {made_at} as since from ({before})
    union all by name
    select uri, heading, symbol, start_line, end_line, content_hash, since from earlier_former_places
) as noted anti join ({now}) as places using (uri, heading, symbol)
where since >= {oldest}
group by all
"""


@dataclass(frozen=True, slots=True)
class RevisionTask:
    """What is compared."""

    staging: Path  # folder of the generation to be, whose chunks have been written
    earlier: Path | None  # the generation before, its chunks verified; None where there is none
    made_at: float  # when that was made, seconds since the epoch
    work: Path  # folder for what is needed until the generation is complete
    settings: RevisionSettings
    merge: MergeSettings

    @property
    def reads(self) -> list[Brought]:
        """The chunks of all shards, if there is anything to compare them with."""
        shards = [] if self.earlier is None else shards_of(self.staging)
        return [Brought(shard / CHUNKS_FOLDER, ("chunks.",)) for shard in shards]


def write_revisions(task: RevisionTask) -> None:
    """Write what took the place of contents of former generations, and what stood where."""
    merge = task.merge
    with TableQueries(task.work / "revisions", memory_mb=merge.memory_mb, threads=merge.threads) as queries:
        before = None if task.earlier is None else task.earlier / CHUNKS_FOLDER
        if before is not None:
            for name, generation in (("written_chunks", task.staging), ("earlier_chunks", before.parent)):
                queries.define(name, tables_of(generation, "chunks"), schemas.CHUNKS)
        for file, schema, rows in (
            (REVISIONS_FILE, REVISIONS, _revisions),
            (FORMER_PLACES_FILE, FORMER_PLACES, _former_places),
        ):
            out = task.staging / CHUNKS_FOLDER / file
            with pq.ParquetWriter(out, schema, compression="zstd", write_page_checksum=True) as writer:
                for table in rows(queries, task, before) if before is not None else ():
                    writer.write_table(table)


def _revisions(queries: TableQueries, task: RevisionTask, before: Path) -> Iterator[pa.Table]:
    queries.define("earlier_revisions", [before / REVISIONS_FILE], REVISIONS)
    # Only what came and what went is compared. Runs that stand in very many texts, such as a licence, say nothing of
    # which text took the place of which, and their join would be as large as the product.
    for name, of, others in (("gone", "earlier_chunks", "written_chunks"), ("new", "written_chunks", "earlier_chunks")):
        queries.keep(f"{name}_all", _RUNS.format(of=of, others=others))
        queries.keep(name, _TELLING.format(name=name, most=_EVERYWHERE))
        queries.keep(f"{name}_sizes", _SIZES.format(name=name))
    queries.keep("pairs", _PAIRS)
    least = task.settings.least_overlap
    queries.keep("direct", _DIRECT.format(least=least))
    rows = _REVISIONS.format(made_at=repr(task.made_at), least=least, oldest=repr(_oldest(task)))
    return queries.ordered(rows, ("content_hash", "revision"), REVISIONS, at_once=_TOGETHER)


def _former_places(queries: TableQueries, task: RevisionTask, before: Path) -> Iterator[pa.Table]:
    queries.define("earlier_former_places", [before / FORMER_PLACES_FILE], FORMER_PLACES)
    then, now = (_PLACES.format(chunks=chunks) for chunks in ("earlier_chunks", "written_chunks"))
    rows = _FORMER_PLACES.format(before=then, now=now, made_at=repr(task.made_at), oldest=repr(_oldest(task)))
    return queries.ordered(rows, FORMER_PLACES.names[:-1], FORMER_PLACES, at_once=_TOGETHER)


def _oldest(task: RevisionTask) -> float:
    return task.made_at - task.settings.days * SECONDS_PER_DAY


def work_folder(staging: Path) -> Path:
    """Where what is needed lies until a staged generation is complete."""
    return staging / ".work"


@dataclass(frozen=True, slots=True)
class _Shard:
    """A shard to be indexed."""

    number: int
    merged: MergedShard
    base: Path | None  # the generation before

    def overlapped(self, count: int) -> tuple[Path, ...]:
        """The shards of the generation before that hold any of its range."""
        return () if self.base is None else tuple(overlapping(shards_of(self.base), self.number, count))


@dataclass(frozen=True, slots=True)
class _TakeOver:
    """The text index of a shard that is as it was."""

    number: int
    base: Path
    folder: Path


@dataclass(frozen=True, slots=True)
class _Built:
    """The files of one shard, where it was built."""

    number: int
    folder: Path


class GenerationBuilder:
    """Stages one generation in a folder of its own; nothing outside that folder is written."""

    def __init__(
        self, staging: Path, settings: IndexSettings, *, map_shards: MapTasks = map, alone: MapTasks | None = None
    ) -> None:
        """Prepare to build; `alone` runs the tasks of a generation of one shard, `map_shards` where none is given."""
        self._staging = staging
        self._settings = settings
        self.map_shards = map_shards
        self._alone = alone or map_shards
        self._work = work_folder(staging)
        self._earlier: Path | None = None

    def build(self, parts: Sequence[Path], facts: Mapping[str, object]) -> Manifest:
        """Merge parts, index what came together, and write the manifest last; parts and shards change no result.

        Of documents with one URI the one in the part whose name comes first stays; later ones are rows of `rejected`.
        """
        return self.index(self.merge(parts), facts)

    def merge(self, parts: Sequence[Path], *, base: Path | None = None, earlier: Path | None = None) -> MergedTables:
        """Write the tables."""
        self._earlier = earlier or base
        settings = self._settings
        task = Merge(
            tuple(parts), base, self._staging, self._work, settings.merge, settings.shard_contents, self._earlier
        )
        merged = merge_tables(task, self.map_shards, self._alone)
        if len(merged.shards) == 1:
            self.map_shards = self._alone
        return merged

    def index(
        self,
        merged: MergedTables,
        facts: Mapping[str, object],
        *,
        base: Path | None = None,  # the generation that unchanged vectors and trained quantisers are taken from
        retrained: bool = False,  # quantisers are trained anew
        on_gpus: MapTasks | None = None,  # runs tasks that hold a GPU each, of which FAISS makes use
    ) -> Manifest:
        """Index the merged tables and write the manifest last."""
        before = None if base is None else read_generation_manifest(base)
        shards = [_Shard(number, one, base) for number, one in enumerate(merged.shards)]
        # Under way from here on, where there are workers: the graph waits for the vectors, the text for nothing.
        tasks = self._text_tasks(shards, before)
        text = self.map_shards(_write_text, tasks)
        impacts = self._impacts(shards, facts, before)
        revised = self.map_shards(write_revisions, [self._revision_task()])
        dense = {
            name: self._dense(shards, name, encoding, before, retrained=retrained, on_gpus=on_gpus)
            for name, encoding in merged.encoders.items()
        }
        graph = build_graph(self._graph_task(merged, dense), self.map_shards)
        await_all(text)
        await_all(impacts)
        await_all(revised)
        await_all(self.map_shards(build_merged, self._merges(shards, tasks)))
        shutil.rmtree(self._work)
        folders = [_Built(number, one.folder) for number, one in enumerate(merged.shards)]
        by_shard = list(self.map_shards(_hashes, folders if len(shards) > 1 else []))
        hashed = {
            (one.folder / name).relative_to(self._staging).as_posix(): digest
            for one, hashes in zip(merged.shards, by_shard, strict=False)
            for name, digest in hashes.items()
        }
        return seal(self._staging, self._manifest(merged, dense, facts, graph), hashed)

    def content_hash(self, merged: MergedTables, facts: Mapping[str, Any]) -> str:
        """What a generation of these tables would mean, known before anything is indexed."""
        graph = self._settings.graph.model_dump()
        aliases = {**graph["aliases"], "longest_group": LONGEST_GROUP}
        own = {
            "lexical": self._settings.lexical.model_dump(),
            "vectors": {**self._settings.vectors.model_dump(exclude={"threads"}), **asdict(TUNING)},
            "graph": {**graph, "aliases": aliases, "similar_contents": SIMILAR_CONTENTS},
        }
        return content_hash_of(
            merged.digests,
            models={**dict(facts.get("models", {})), **{name: name for name in merged.encoders}},
            parameters={**own, **dict(facts.get("parameters", {}))},
        )

    def _revision_task(self) -> RevisionTask:
        made_at = 0.0 if self._earlier is None else read_generation_manifest(self._earlier).created_at
        own = self._settings
        return RevisionTask(self._staging, self._earlier, made_at, self._work, own.revisions, own.merge)

    def _graph_task(self, merged: MergedTables, dense: Mapping[str, DenseFacts]) -> GraphTask:
        own, encoder = self._settings, min(dense, default=None)
        contents, chunks = (tuple(one.counts[name] for one in merged.shards) for name in ("contents", "chunks"))
        similar: tuple[Path, ...] = ()
        if encoder is not None and own.graph.enabled and 0 < sum(contents) <= SIMILAR_CONTENTS:
            folders = [one.folder / VECTORS_FOLDER / encoder_folder(encoder) for one in merged.shards]
            rows = np.arange(sum(contents))
            similar = write_samples(folders, contents, rows, self._work / "similar", self.map_shards)
        work = self._work / "graph"
        return GraphTask(self._staging, work, contents, chunks, encoder, similar, own.graph, own.merge, self._earlier)

    def _dense(
        self,
        shards: Sequence[_Shard],
        encoder: str,
        encoding: Encoding,
        before: Manifest | None,
        *,
        retrained: bool,
        on_gpus: MapTasks | None,
    ) -> DenseFacts:
        """Gather and index the vectors of one encoder in all shards."""
        settings, name = self._settings.vectors, encoder_folder(encoder)
        former = None if before is None else before.dense.get(encoder)
        is_same = former is not None and former.made_with == encoding.made_with
        tasks = [
            DenseTask(
                parts=shard.merged.parts,
                base=shard.overlapped(len(shards)) if is_same else (),
                same=shard.merged.base if is_same else None,
                shard=shard.merged.folder,
                name=name,
                work=self._work,
                encoder=encoder,
                dimension=encoding.dimension,
                number=shard.number,
            )
            for shard in shards
        ]
        gathered = list(self.map_shards(gather, tasks))
        folders = tuple(task.folder for task in tasks)
        counts = tuple(shard.merged.counts["contents"] for shard in shards)
        rows = max(1, sum(counts))
        trained = None
        if is_same and former is not None and former.kind == "ivfpq" and not retrained:
            trained = TrainedIndex(
                tasks[0].inherited[0][0] / FAISS_FILE,
                former.probes,
                former.trained_on * sum(one.stayed for one in gathered) / rows,
                {
                    task.folder: task.same / VECTORS_FOLDER / name / FAISS_FILE
                    for task in tasks
                    if task.same is not None
                },
            )
        vectors, work = StoredVectors(folders, counts, encoding.dimension), self._work / name
        facts = index_vectors(vectors, settings, work, trained=trained, run=self.map_shards, on_gpus=on_gpus)
        if settings.isolation.neighbours:
            some = compared_rows(sum(counts), settings.isolation)
            samples = write_samples(folders, counts, some, work / "compared", self.map_shards)
            await_all(
                self.map_shards(
                    isolate,
                    [
                        IsolationTask(folder, number, counts, samples, settings.isolation)
                        for number, folder in enumerate(folders)
                    ],
                )
            )
        token_bytes = sum(one.token_bytes for one in gathered) / rows
        return facts.model_copy(update={"made_with": encoding.made_with, "token_bytes": token_bytes})

    def _impacts(
        self, shards: Sequence[_Shard], facts: Mapping[str, object], before: Manifest | None
    ) -> Iterable[object]:
        """What the writers of the impact indexes come to, where terms are weighed."""
        weighed_with = facts.get(SPARSE)
        if not weighed_with:
            return ()
        writer = importlib.import_module(IMPACTS_MODULE)
        is_same = before is not None and before.weighed_with == weighed_with
        tasks = [
            writer.ImpactTask(
                parts=shard.merged.parts,
                base=shard.overlapped(len(shards)) if is_same else (),
                same=shard.merged.base if is_same else None,
                out=shard.merged.folder,
                number=shard.number,
                work=self._work,
                rows=shard.merged.counts["contents"],
                merge=self._settings.merge,
            )
            for shard in shards
        ]
        return self.map_shards(writer.build_impacts, tasks)

    def _text_tasks(self, shards: Sequence[_Shard], before: Manifest | None) -> list[_TextTask]:
        """Writers of the text indexes: one that writes a shard's as it is, or several whose parts are merged later."""
        settings = self._settings
        documents = tuple(shard.merged.folder / CHUNKS_FOLDER / "documents.parquet" for shard in shards)
        tasks: list[_TextTask] = []
        for shard in shards:
            merged, rows = shard.merged, shard.merged.counts["contents"]
            if merged.base is not None and before is not None and before.lexical == settings.lexical:
                tasks.append(_TakeOver(shard.number, merged.base, merged.folder))
                continue
            whole = ShardTask(
                merged.folder / CHUNKS_FOLDER, documents, shard.number, merged.folder, 0, rows, settings.lexical
            )
            writers = max(1, min(settings.shards, -(-rows // settings.rows_per_shard)))
            parts = shard_tasks(whole, self._work, writers=writers)
            tasks += parts if len(parts) > 1 else [self._merged_text(shard, parts)]
        return tasks

    def _merges(self, shards: Sequence[_Shard], tasks: Sequence[_TextTask]) -> list[MergeShards]:
        """What is left to be merged of shards that several writers wrote."""
        parts = [task for task in tasks if isinstance(task, ShardTask)]
        numbers = {task.number for task in parts}
        return [
            self._merged_text(shard, [task for task in parts if task.number == shard.number])
            for shard in shards
            if shard.number in numbers
        ]

    def _merged_text(self, shard: _Shard, parts: Sequence[ShardTask]) -> MergeShards:
        merged = shard.merged
        folder, rows = merged.folder / LUCENE_FOLDER, merged.counts["contents"]
        return MergeShards(tuple(parts), folder, shard.number, rows, self._settings.lexical)

    def _manifest(
        self, merged: MergedTables, dense: Mapping[str, DenseFacts], facts: Mapping[str, Any], graph: Mapping[str, int]
    ) -> Manifest:
        others = dict(facts)
        content_hash = self.content_hash(merged, others)
        created_at = float(others.pop("created_at", None) or time.time())
        others.pop("parameters", None)
        return Manifest(
            id=_new_id(created_at, content_hash),
            parent=others.pop("parent", None),
            content_hash=content_hash,
            created_at=created_at,
            counts={**merged.counts, **graph},
            shards=tuple(ShardFacts(counts=one.counts, digest=one.digest) for one in merged.shards),
            settings=str(others.pop("settings", "")),
            models=dict(others.pop("models", {})),
            dense=dict(dense),
            lexical=self._settings.lexical,
            facts=others,
            files={},
        )


_TextTask = ShardTask | MergeShards | _TakeOver


def _write_text(task: _TextTask) -> Any:
    if isinstance(task, _TakeOver):
        return take_over(task.base, task.folder, [LUCENE_FOLDER])
    return build_shard(task) if isinstance(task, ShardTask) else build_merged(task)


def _hashes(task: _Built) -> dict[str, str]:
    return file_hashes(task.folder)


def _new_id(created_at: float, content_hash: str) -> GenerationId:
    # Sorts by time; the tail keeps two builds of one second apart.
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(created_at))
    return GenerationId(f"{stamp}-{content_hash[:12]}-{uuid.uuid4().hex[:4]}")
