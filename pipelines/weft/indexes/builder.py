"""Building a generation from parts: merge the tables, index vectors and text side by side, seal.

Every step is a task that a worker may run, and run again when the worker before it died; the process that builds
holds no more than their results.
"""

from __future__ import annotations

import importlib
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from weft.domain.ids import GenerationId
from weft.indexes.dense.gather import DenseTask, build_vectors
from weft.indexes.dense.vectors import TUNING
from weft.indexes.graph.aliases import LONGEST_GROUP
from weft.indexes.graph.build import SIMILAR_CONTENTS, GraphTask, build_graph_of
from weft.indexes.manifest import (
    CHUNKS_FOLDER,
    IMPACTS_MODULE,
    LUCENE_FOLDER,
    SPARSE,
    VECTORS_FOLDER,
    DenseFacts,
    Manifest,
    content_hash_of,
    encoder_folder,
    read_generation_manifest,
    seal,
)
from weft.indexes.merge import Merge, MergedTables, merge_tables
from weft.indexes.revisions import RevisionTask, write_revisions
from weft.indexes.settings import IndexSettings
from weft.indexes.text.build import MergeShards, ShardTask, build_merged, build_shard, shard_tasks

MapTasks = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Runs a function on every task, like `map`: in this process as results are asked for, or at once on a cluster."""

Result = TypeVar("Result")
_WORK = ".work"


class GenerationBuilder:
    """Stages one generation in a folder of its own; nothing outside that folder is written."""

    def __init__(self, staging: Path, settings: IndexSettings, *, map_shards: MapTasks = map) -> None:
        """Prepare to build."""
        self._staging = staging
        self._settings = settings
        self._map = map_shards
        self._work = staging / _WORK
        self._earlier: Path | None = None

    def build(self, parts: Sequence[Path], facts: Mapping[str, object]) -> Manifest:
        """Merge parts, index what came together, and write the manifest last.

        The result does not depend on how documents are spread over parts, or on shards. Of documents with one URI
        the one in the part whose name comes first stays; later ones become rows of `rejected`.

        Raises:
            StoreError: A content has no vector of an encoder that others have.
        """
        return self.index(self.merge(parts), parts, facts)

    def merge(self, parts: Sequence[Path], *, base: Path | None = None, earlier: Path | None = None) -> MergedTables:
        """Write the tables."""
        self._earlier = earlier or base
        self._work.mkdir(exist_ok=True)
        task = Merge(tuple(parts), base, self._staging, self._work, self._settings.merge, self._earlier)
        return self._one(merge_tables, task)

    def index(
        self,
        merged: MergedTables,
        parts: Sequence[Path],
        facts: Mapping[str, object],
        *,
        base: Path | None = None,  # the generation that unchanged vectors and trained quantisers are taken from
        retrained: bool = False,  # quantisers are trained anew
    ) -> Manifest:
        """Index the merged tables and write the manifest last."""
        shards = self._shard_tasks(merged)
        # Under way from here on, where there are workers: the graph waits for the vectors, the text for nothing.
        text = self._map(_write_text, shards)
        impacts = self._impacts(merged, parts, facts, base)
        revised = self._map(write_revisions, [self._revision_task()])
        dense = self._dense_tasks(merged, parts, base, retrained=retrained)
        built = list(self._map(build_vectors, dense))
        dense_facts = {task.encoder: facts_of for task, facts_of in zip(dense, built, strict=True)}
        task = GraphTask(self._staging, dense_facts, self._settings.graph, self._settings.merge, self._earlier)
        graph = self._one(build_graph_of, task)
        _await(text)
        _await(impacts)
        _await(revised)
        if len(shards) > 1:
            self._one(build_merged, self._merged_text(merged, shards))
        shutil.rmtree(self._work)
        return seal(self._staging, self._manifest(merged, dense_facts, facts, graph))

    def content_hash(self, merged: MergedTables, facts: Mapping[str, Any]) -> str:
        """What a generation of these tables would mean, known before anything is indexed."""
        graph = self._settings.graph.model_dump()
        aliases = {**graph["aliases"], "longest_group": LONGEST_GROUP}
        own = {
            "lexical": self._settings.lexical.model_dump(),
            "vectors": {**self._settings.vectors.model_dump(), **asdict(TUNING)},
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

    def _dense_tasks(
        self, merged: MergedTables, parts: Sequence[Path], base: Path | None, *, retrained: bool
    ) -> list[DenseTask]:
        before = {} if base is None else read_generation_manifest(base).dense
        is_same = {
            name: name in before and before[name].made_with == encoding.made_with
            for name, encoding in merged.encoders.items()
        }
        return [
            DenseTask(
                parts=tuple(parts),
                base=base if is_same[encoder] else None,
                contents=self._staging / CHUNKS_FOLDER / "contents.parquet",
                folder=self._staging / VECTORS_FOLDER / encoder_folder(encoder),
                work=self._work,
                encoder=encoder,
                dimension=encoding.dimension,
                made_with=encoding.made_with,
                settings=self._settings.vectors,
                retrained=retrained,
            )
            for encoder, encoding in merged.encoders.items()
        ]

    def _impacts(
        self, merged: MergedTables, parts: Sequence[Path], facts: Mapping[str, object], base: Path | None
    ) -> Iterable[object]:
        """What the one writer of the impact index comes to, where terms are weighed."""
        weighed_with = facts.get(SPARSE)
        if not weighed_with:
            return ()
        is_same = base is not None and read_generation_manifest(base).weighed_with == weighed_with
        writer = importlib.import_module(IMPACTS_MODULE)
        task = writer.ImpactTask(
            parts=tuple(parts),
            base=base if is_same else None,
            out=self._staging,
            work=self._work,
            rows=merged.counts["contents"],
            merge=self._settings.merge,
        )
        return self._map(writer.build_impacts, [task])

    def _shard_tasks(self, merged: MergedTables) -> list[ShardTask | MergeShards]:
        """Writers of the text index: one that writes it as it is, or several whose shards are merged after them."""
        rows, settings = merged.counts["contents"], self._settings
        shards = min(settings.shards, -(-rows // settings.rows_per_shard))
        tables = self._staging / CHUNKS_FOLDER
        tasks = shard_tasks(tables, self._work, rows=rows, shards=max(1, shards), settings=settings.lexical)
        return [*tasks] if len(tasks) > 1 else [self._merged_text(merged, tasks)]

    def _merged_text(self, merged: MergedTables, shards: Sequence[ShardTask | MergeShards]) -> MergeShards:
        rows = merged.counts["contents"]
        tasks = tuple(task for task in shards if isinstance(task, ShardTask))
        return MergeShards(tasks, self._staging / LUCENE_FOLDER, rows, self._settings.lexical)

    def _one(self, run: Callable[[Any], Result], task: Any) -> Result:
        results: list[Result] = list(self._map(run, [task]))
        return results[0]

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
            settings=str(others.pop("settings", "")),
            models=dict(others.pop("models", {})),
            dense=dict(dense),
            lexical=self._settings.lexical,
            facts=others,
            files={},
        )


def _await(results: Iterable[object]) -> None:
    """Until all tasks are done; what one raised is raised here."""
    for _ in results:
        pass


def _write_text(task: ShardTask | MergeShards) -> Any:
    return build_shard(task) if isinstance(task, ShardTask) else build_merged(task)


def _new_id(created_at: float, content_hash: str) -> GenerationId:
    # Sorts by time; the tail keeps two builds of one second apart.
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(created_at))
    return GenerationId(f"{stamp}-{content_hash[:12]}-{uuid.uuid4().hex[:4]}")
