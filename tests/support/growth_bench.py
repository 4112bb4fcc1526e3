"""What building a generation of so many contents takes, in a process of its own: its time and memory are its own.

    python -m tests.support.growth_bench FOLDER CONTENTS [--set name=value ...]

Texts are words drawn by a Zipf law; vectors have sixteen directions among `DIMENSION`, so that an index of them is as
easy as one of real ones. Prints a line of JSON: seconds of processor and clock by step, and the most memory in MiB.
"""

from __future__ import annotations

import hashlib
import json
import resource
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.indexes import schemas
from weft.indexes.builder import GenerationBuilder
from weft.indexes.generation import verify_generation
from weft.settings import load_settings

DIMENSION = 64
_WORDS = 20  # of a text, about
_VOCABULARY = 50_000
_CHUNKS = 10  # of a document
_PART = 20_000  # contents of a part
_ENCODER = "drawn"


def write_parts(folder: Path, count: int) -> list[Path]:
    """The tables of documents of ten texts each, some thousand documents a part."""
    words = np.array([f"w{number:x}" for number in range(_VOCABULARY)])
    latent = np.random.default_rng(0).normal(size=(16, DIMENSION))
    return [_part(folder / f"{start:08d}", start, min(_PART, count - start), words, latent)
            for start in range(0, count, _PART)]  # fmt: skip


def _part(part: Path, start: int, count: int, words: np.ndarray, latent: np.ndarray) -> Path:
    rng = np.random.default_rng(start)
    drawn = words[np.minimum(rng.zipf(1.3, size=(count, _WORDS)), _VOCABULARY) - 1]
    texts = [f"{start + at} " + " ".join(row) for at, row in enumerate(drawn.tolist())]
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    uris = [f"tree/d{(start + at) // _CHUNKS:08d}.txt" for at in range(count)]
    documents = list(dict.fromkeys(uris))
    vectors = rng.normal(size=(count, len(latent))) @ latent
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chunk = {"chunk_id": [digest[:32] for digest in hashes], "content_hash": hashes, "uri": uris, "text": texts}
    chunk |= {"sequence": [at % _CHUNKS for at in range(count)], "kind": ["window"] * count}
    document = {"uri": documents, "document_hash": documents, "made_from": documents}
    document |= {"content_type": ["text"] * len(documents), "domain": ["general"] * len(documents)}
    of_document = {"uri": documents, "text": ["\n".join(texts[at : at + _CHUNKS]) for at in range(0, count, _CHUNKS)]}
    part.mkdir(parents=True)
    tables = {
        "documents": _filled(document, schemas.DOCUMENTS),
        "texts": _filled(of_document, schemas.TEXTS),
        "chunks": _filled(chunk, schemas.CHUNKS),
        "vectors": schemas.vectors_to_table(hashes, _ENCODER, vectors),  # type: ignore[arg-type]
    }
    for name, table in tables.items():
        pq.write_table(table, part / f"{name}.parquet")
    return part


def _filled(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    """A table of a schema whose other columns say nothing."""
    rows = len(columns["uri"])
    blank = {field.name: _blank(field) for field in schema}
    return pa.table(
        [pa.array(columns.get(field.name, [blank[field.name]] * rows), field.type) for field in schema], schema=schema
    )


def _blank(field: pa.Field) -> Any:
    if field.nullable:
        return None
    if pa.types.is_list(field.type):
        return []
    return "{}" if pa.types.is_string(field.type) else 1


def built(folder: Path, count: int, assignments: list[str]) -> dict[str, Any]:
    """Seconds of processor and clock of each step of building a generation from parts that are there."""
    settings = load_settings(assignments=assignments, environment={}).index
    parts = write_parts(folder / "parts", count)
    staging = folder / "staging"
    staging.mkdir()
    steps: dict[str, list[float]] = {}

    def timed(name: str, run: Callable[[], Any]) -> Any:
        used, began = time.process_time(), time.perf_counter()
        done = run()
        spent = steps.setdefault(name, [0.0, 0.0])
        spent[0] += time.process_time() - used
        spent[1] += time.perf_counter() - began
        return done

    def timed_map(run: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        return [timed(run.__name__.strip("_"), lambda task=task: run(task)) for task in tasks]  # type: ignore[misc]

    builder = GenerationBuilder(staging, settings, map_shards=timed_map)
    merged = timed("merge", lambda: builder.merge(parts))
    timed("build", lambda: builder.index(merged, {"created_at": 1e9, "models": {"encoder": _ENCODER}}))
    timed("verify", lambda: verify_generation(staging))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"contents": count, "shards": len(merged.shards), "peak_mib": peak, "steps": steps}


if __name__ == "__main__":
    where = Path(sys.argv[1])
    try:
        print(json.dumps(built(where, int(sys.argv[2]), sys.argv[4::2])))  # noqa: T201
    finally:
        shutil.rmtree(where, ignore_errors=True)
