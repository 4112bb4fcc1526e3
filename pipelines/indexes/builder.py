"""Building a generation from parts: merge the tables, give every content its row, index vectors and text, seal."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.domain.errors import StoreError
from pipelines.domain.ids import GenerationId
from pipelines.indexes import schemas
from pipelines.indexes.generation import CHUNKS_FOLDER, LUCENE_FOLDER, VECTORS_FOLDER, encoder_folder
from pipelines.indexes.graph_build import build_graph
from pipelines.indexes.graph_schemas import GRAPH_FOLDER
from pipelines.indexes.lexical_build import MapShards, build_lexical
from pipelines.indexes.manifest import Manifest, content_hash_of, seal
from pipelines.indexes.settings import IndexSettings
from pipelines.indexes.vectors import DenseFacts, DenseIndex, build_dense, open_dense

_ORDER: Mapping[str, Sequence[str]] = {
    "documents": ("uri", "document_hash"),
    "chunks": ("content_hash", "uri", "sequence", "chunk_id"),
    "mentions": ("content_hash", "start", "end", "label"),
    "rejected": ("uri", "reason", "detail"),
}


class GenerationBuilder:
    """Stages one generation in a folder of its own; nothing outside that folder is written."""

    def __init__(self, staging: Path, settings: IndexSettings, *, map_shards: MapShards = map) -> None:
        """Prepare to build.

        Args:
            staging: An empty folder, as `Catalog.stage` gives it.
            map_shards: Runs the Lucene writers; `map` runs them one after the other in this process.
        """
        self._staging = staging
        self._settings = settings
        self._map_shards = map_shards

    def build(self, parts: Sequence[Path], facts: Mapping[str, object]) -> Manifest:
        """Build everything and write the manifest last.

        The result does not depend on how documents are spread over parts, on the order of parts, or on shards.

        Args:
            parts: Folders with the tables of `schemas`; a table that a part lacks counts as empty.
            facts: "parent", "created_at" (seconds), "settings" (fingerprint), "models" (id by role) and "parameters"
                (whatever else decides the content) have their place in the manifest; the rest is kept as it is.

        Raises:
            StoreError: Two documents share a URI, or a content has no vector of an encoder that others have.
        """
        tables = {name: _merged(parts, name) for name in schemas.TABLES}
        _refuse_repeated_uris(tables["documents"])
        contents = _contents(tables["chunks"])
        self._write_tables({**tables, "contents": contents})
        rows = contents.num_rows
        dense = self._build_dense(parts, contents["content_hash"].combine_chunks())
        build_lexical(
            self._staging / CHUNKS_FOLDER,
            self._staging / LUCENE_FOLDER,
            rows=rows,
            shards=self._settings.shards,
            settings=self._settings.lexical,
            map_shards=self._map_shards,
        )
        counts = (
            {name: table.num_rows for name, table in tables.items()} | {"contents": rows} | self._build_graph(dense)
        )
        return seal(self._staging, self._manifest(tables, counts, dense, facts))

    def _write_tables(self, tables: Mapping[str, pa.Table]) -> None:
        folder = self._staging / CHUNKS_FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            pq.write_table(table, folder / f"{name}.parquet", compression="zstd", write_page_checksum=True)

    def _build_dense(self, parts: Sequence[Path], hashes: pa.Array[Any]) -> dict[str, DenseFacts]:
        found = _vectors(parts)
        built = {}
        for encoder in sorted(found):
            stored = _in_row_order(found[encoder], hashes, encoder)
            folder = self._staging / VECTORS_FOLDER / encoder_folder(encoder)
            built[encoder] = build_dense(folder, stored, self._settings.vectors)
        return built

    def _build_graph(self, dense: Mapping[str, DenseFacts]) -> dict[str, int]:
        return build_graph(
            self._staging / CHUNKS_FOLDER, self._staging / GRAPH_FOLDER, self._open_first(dense), self._settings.graph
        )

    def _open_first(self, dense: Mapping[str, DenseFacts]) -> DenseIndex | None:
        found = ((self._staging / VECTORS_FOLDER / encoder_folder(name), dense[name]) for name in sorted(dense))
        return next((open_dense(folder, facts) for folder, facts in found), None)

    def _manifest(
        self,
        tables: Mapping[str, pa.Table],
        counts: Mapping[str, int],
        dense: Mapping[str, DenseFacts],
        facts: Mapping[str, Any],
    ) -> Manifest:
        told = dict(facts)
        created_at = float(told.pop("created_at", None) or time.time())
        models = dict(told.pop("models", {}))
        own = {
            "lexical": self._settings.lexical.model_dump(),
            "vectors": self._settings.vectors.model_dump(),
            "graph": self._settings.graph.model_dump(exclude={"memory_mb", "threads"}),
        }
        parameters = {**own, **dict(told.pop("parameters", {}))}
        content_hash = content_hash_of(
            tables["chunks"],
            tables["documents"],
            models={**models, **{name: name for name in dense}},
            parameters=parameters,
        )
        return Manifest(
            id=_new_id(created_at, content_hash),
            parent=told.pop("parent", None),
            content_hash=content_hash,
            created_at=created_at,
            counts=dict(counts),
            settings=str(told.pop("settings", "")),
            models=models,
            dense=dict(dense),
            lexical=self._settings.lexical,
            facts=told,
            files={},
        )


def _new_id(created_at: float, content_hash: str) -> GenerationId:
    # Sorts by time; the tail keeps two builds of one second apart.
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(created_at))
    return GenerationId(f"{stamp}-{content_hash[:12]}-{uuid.uuid4().hex[:4]}")


def _merged(parts: Sequence[Path], name: str) -> pa.Table:
    """One table over all parts in its canonical order, whatever the parts were."""
    schema = schemas.TABLES[name]
    tables = [table.select(schema.names).cast(schema) for table in _read(parts, name)]
    merged = pa.concat_tables([schema.empty_table(), *tables])
    ordered = merged.take(pc.sort_indices(merged, sort_keys=[(key, "ascending") for key in _ORDER[name]]))
    return ordered.combine_chunks()


def _refuse_repeated_uris(documents: pa.Table) -> None:
    uris = documents["uri"].to_pylist()
    if repeated := next((uri for uri, following in pairwise(uris) if uri == following), None):
        raise StoreError(f"expected every document under a URI of its own, found {repeated!r} twice: rename a source")


def _read(parts: Sequence[Path], name: str) -> Iterator[pa.Table]:
    for part in parts:
        path = part / f"{name}.parquet"
        if path.exists():
            yield pq.read_table(path)


def _contents(chunks: pa.Table) -> pa.Table:
    """Each content hash once, in order, with the span of its occurrences; `chunks` is sorted by it."""
    hashes = chunks["content_hash"].to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.r_[True, hashes[1:] != hashes[:-1]]) if len(hashes) else np.empty(0, dtype=np.int64)
    counts = np.diff(np.r_[starts, len(hashes)])
    return pa.table([pa.array(hashes[starts], pa.string()), starts, counts.astype(np.int32)], schema=schemas.CONTENTS)


def _vectors(parts: Sequence[Path]) -> dict[str, list[tuple[pa.Array[Any], np.ndarray]]]:
    """(hashes, float16 vectors) of every part by encoder."""
    found: dict[str, list[tuple[pa.Array[Any], np.ndarray]]] = {}
    for table in _read(parts, "vectors"):
        for encoder in sorted(str(name) for name in table["encoder"].unique().to_pylist()):
            rows = table.filter(pc.equal(table["encoder"], pa.scalar(encoder)))
            lists: Any = rows["vector"].combine_chunks()
            vectors = lists.flatten().to_numpy(zero_copy_only=False).reshape(len(rows), -1)
            pieces = found.setdefault(encoder, [])
            pieces.append((rows["content_hash"].combine_chunks(), vectors.astype(np.float16)))
    return found


def _in_row_order(
    pieces: Sequence[tuple[pa.Array[Any], np.ndarray]], hashes: pa.Array[Any], encoder: str
) -> np.ndarray:
    dimension = pieces[0][1].shape[1]
    stored = np.zeros((len(hashes), dimension), dtype=np.float16)
    seen = np.zeros(len(hashes), dtype=bool)
    for names, vectors in pieces:
        rows = pc.index_in(names, hashes).to_numpy(zero_copy_only=False)
        for row, vector in zip(rows, vectors, strict=True):
            if np.isnan(row):
                continue
            at = int(row)
            # A content met in two parts keeps the vector whose bytes sort first, whichever part is read first.
            if not seen[at] or vector.tobytes() < stored[at].tobytes():
                stored[at], seen[at] = vector, True
    if not seen.all():
        missing = hashes[int(np.flatnonzero(~seen)[0])].as_py()
        raise StoreError(f"expected a vector of {encoder} for every content, found none for {(~seen).sum()}: {missing}")
    return stored
