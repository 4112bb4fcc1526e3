"""A night over a synthetic store of so many contents, in a process of its own: its time and memory are its own.

    python -m tests.support.night_bench store FOLDER CONTENTS DATA    makes the store, with five events a content
    python -m tests.support.night_bench night FOLDER FOUND            runs a night over it; FOUND says what steps took

Texts are of sentences drawn from real collections; 2 % are near-duplicates of others and 1 % deny them. Vectors are
drawn, as many near each other as texts are; no encoder runs. The night is the real one, without what asks queries.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.duplicate_bench import collection, mixed
from tests.support.near_duplicates import denied, noticed
from tests.support.nights import a_day
from tests.support.parts import ENCODER, a_document
from weft.app.night import JUDGING, night_of
from weft.catalog.catalog import Catalog
from weft.consolidation.night import NightStep
from weft.consolidation.pipeline import consolidate
from weft.consolidation.steps.contradictions import FindContradictions
from weft.consolidation.steps.duplicates import FindDuplicates
from weft.consolidation.steps.links import FindLinks
from weft.domain.ids import content_hash
from weft.indexes import schemas
from weft.indexes.builder import GenerationBuilder
from weft.learning.evidence import MICRO, SCHEMA, Evidence
from weft.runtime.clock import day_of, system_clock
from weft.runtime.process import linear_algebra_threads
from weft.settings import Settings, load_settings

DIMENSION = 384
EVENTS = 5  # of each content
_CHUNKS = 10  # of a document
_PART = 50_000  # contents written at once
_DAYS = 30
_BINS = ("positive", "negative", "retrieval", "retrieval", "inclusion")


def settings_of(root: Path) -> Settings:
    """Those of the project, but for what takes a generation long to build and a night does not look at."""
    unread = ["vectors.exact_below=1000000000", "vectors.isolation.neighbours=0", "lexical.analysis=english"]
    assignments = [f"storage.root={root}", "extraction.enabled=false", *(f"index.{each}" for each in unread)]
    return load_settings(assignments=assignments, environment={})


def texts(count: int, data: Path) -> list[str]:
    """So many different texts, near-duplicates and denials among them."""
    rng = random.Random(count)
    real = [text for name in ("scifact", "nfcorpus") for text in collection(name, data)]
    own = mixed(real, round(count * 0.97), rng)
    near = [noticed(text) for text in rng.sample(own, round(count * 0.02))]
    opposed = [made for text in rng.sample(own, count // 50) if (made := denied(text, rng)) is not None]
    every = list(dict.fromkeys([*own, *near, *opposed]))[:count]
    rng.shuffle(every)
    return every


def write_parts(folder: Path, every: Sequence[str]) -> list[Path]:
    """The tables of documents of ten texts each."""
    rng = np.random.default_rng(len(every))
    parts = []
    for start in range(0, len(every), _PART):
        some = every[start : start + _PART]
        vectors = rng.normal(size=(len(some), DIMENSION)).astype(np.float32)
        close = np.arange(_CHUNKS, len(some), 5 * _CHUNKS)  # to one of the document before
        vectors[close] = vectors[close - _CHUNKS] + 0.2 * vectors[close]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        made = [a_document(f"d{start + at:08d}.txt", *some[at : at + _CHUNKS]) for at in range(0, len(some), _CHUNKS)]
        chunks = [chunk for _, own in made for chunk in own]
        tables = {
            "documents": schemas.documents_to_table([document for document, _ in made]),
            "chunks": schemas.chunks_to_table(chunks),
            "mentions": schemas.mentions_to_table([]),
            "rejected": schemas.rejections_to_table([]),
            "vectors": schemas.vectors_to_table([chunk.content_hash for chunk in chunks], ENCODER, vectors),
        }
        part = folder / f"{start:08d}"
        part.mkdir(parents=True)
        for name, table in tables.items():
            pq.write_table(table, part / f"{name}.parquet")
        parts.append(part)
    return parts


def write_events(root: Path, hashes: Sequence[str], today: int) -> None:
    """Feedback as an updater leaves it: outcomes and uses, by a thousand people, a question for two contents."""
    count = EVENTS * len(hashes)
    rng = np.random.default_rng(count)

    def drawn(words: Sequence[str]) -> Any:
        codes = pa.array(rng.integers(len(words), size=count), pa.int32())
        return pa.DictionaryArray.from_arrays(codes, pa.array(words, pa.string())).dictionary_decode()

    columns: dict[str, Any] = {name: pa.array([""] * count, pa.string()) for name in SCHEMA.names}
    columns |= {
        "kind": pa.array(["usage"] * count, pa.string()),
        "day": pa.array(today - rng.integers(_DAYS, size=count), pa.int32()),
        "bin": drawn(_BINS),
        "content_hash": drawn(hashes),
        "principal": drawn([f"p{at}" for at in range(1000)]),
        "question": drawn([f"q{at}" for at in range(max(1, len(hashes) // 2))]),
        "micro": pa.array(np.full(count, MICRO), pa.int64()),
    }
    signals = Evidence.sum([a_day(today - day, seed=day) for day in range(_DAYS)])
    table = pa.concat_tables([pa.table(columns, schema=SCHEMA), signals.to_table()])
    path = root / "updaters" / "0" / "evidence.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(table, path, write_page_checksum=True)


def make_store(folder: Path, count: int, data: Path) -> None:
    """A store of so many contents and five times as many events."""
    root, settings = folder / "store", settings_of(folder / "store")
    every = texts(count, data)
    catalog, parts = Catalog(root), write_parts(folder / "parts", every)
    staging = catalog.stage()
    GenerationBuilder(staging, settings.index).build(parts, {"created_at": 1e9, "models": {"encoder": ENCODER}})
    catalog.publish(staging, expected_parent=None)
    write_events(root, sorted(map(content_hash, every)), day_of(system_clock()))


def run_night(folder: Path, found: Path) -> None:
    """A night over that store, and what it took."""
    settings, began, used = settings_of(folder / "store"), time.perf_counter(), time.process_time()
    told: dict[str, dict[str, float]] = {}
    step: NightStep | None = None
    since, at = used, began

    def announce(following: NightStep | None) -> None:
        nonlocal step, since, at
        now, clock = time.process_time(), time.perf_counter()
        told["opening" if step is None else step.name] = {
            "seconds": clock - at,
            "cpu_s": now - since,
            "peak_mib": peak_mib(),
        }
        step, since, at = following, now, clock

    night = replace(
        night_of(settings),
        steps=[JUDGING[0], FindDuplicates(), FindContradictions(), FindLinks(), *JUDGING[1:]],
        probe=None,
        announce=announce,
    )
    with linear_algebra_threads(1):
        summary = consolidate(night)
    announce(None)
    peak = max(each["peak_mib"] for each in told.values())
    took = {"seconds": time.perf_counter() - began, "cpu_s": time.process_time() - used, "peak_mib": peak}
    steps = {name: summary["steps"].get(name, {}) | of_step for name, of_step in told.items()}
    found.write_text(json.dumps({**took, "steps": steps, "learned": summary["learned"]}), encoding="utf-8")


def peak_mib() -> float:
    """The most memory that this process held since it was last asked, in MiB."""
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # what it held at most is counted anew
    return int(peak[1]) / 1024 if peak else 0.0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["store", where, contents, of]:
            make_store(Path(where), int(contents), Path(of))
        case ["night", where, out]:
            run_night(Path(where), Path(out))
