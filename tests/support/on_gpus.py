"""Runs of ingestion on a cluster of two logical GPUs, in a process of its own: who held which, as JSON (SCL-15).

Ray deals logical GPUs out as it does real ones; PyTorch finds none behind them. FAISS's build for processors does what
its build for GPUs would do there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ray

from tests.support.gpu_faiss import HELD, note
from tests.support.ingestion import WORDS, CapitalExtractor, WordEncoder, a_plan, a_tree
from weft.catalog.catalog import Catalog
from weft.domain.chunks import Mention
from weft.domain.errors import ModelUnavailableError
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import load_token_counter
from weft.extraction.settings import ExtractionSettings
from weft.ingestion.pipeline import ingest
from weft.ingestion.plan import IndexPlan, items_of, models_of, reading_of, stages_of, units_of
from weft.ingestion.sizing import sizes_in_force
from weft.ingestion.stages.reuse import DocumentKeys
from weft.ingestion.units import pack
from weft.runtime.ray.stages import ON_CLUSTER


class NotingEncoder(WordEncoder):
    """Notes what it holds when it is loaded."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        super().__init__(settings)
        note(f"encoder on {settings.device}")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        time.sleep(0.05)
        return super().encode(texts)


class NotingExtractor(CapitalExtractor):
    """Notes what it holds when it is loaded."""

    def __init__(self, settings: ExtractionSettings) -> None:
        super().__init__(settings)
        note(f"extractor on {settings.device}")

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        time.sleep(0.05)
        return super().extract(texts)


def plan_of(source: Path, store: Path, *assignments: str) -> IndexPlan:
    return a_plan(
        source,
        store,
        "extraction.enabled=true",
        *assignments,
        encoder="tests.support.on_gpus:NotingEncoder",
        extractor="tests.support.on_gpus:NotingExtractor",
    )


def streamed(plan: IndexPlan, parts: Path) -> list[dict[str, Any]]:
    """The stages of a plan, and what their models noted while units passed through."""
    models = models_of(plan)
    limit = load_token_counter(plan.embedding).limit
    sizes = sizes_in_force(plan.chunking, plan.priors, Catalog(plan.store), limit=limit)
    reading = reading_of(plan, models, None, sizes, DocumentKeys())
    stages = stages_of(plan, models, None, reading, parts, executor=ON_CLUSTER)
    list(ON_CLUSTER.stream([pack(unit) for unit in units_of(plan, items_of(plan))], stages))
    return [{"actors": stage.actors, "cpus": stage.cpus, "gpus": stage.gpus} for stage in stages]


def main(folder: Path) -> None:
    """Stream through models on GPUs; then let a run find out that PyTorch has none, and insist on one."""
    held = folder / "held"
    held.mkdir()
    os.environ[HELD] = str(held)
    hook = {"worker_process_setup_hook": "tests.support.gpu_faiss.give_gpus"}
    logical = {"num_cpus": 6, "num_gpus": 2, "include_dashboard": False}
    ray.init(address="local", log_to_driver=False, runtime_env=hook, **logical)
    source, told = a_tree(folder, files=24), {}
    parts = folder / "parts"
    parts.mkdir()
    forced = plan_of(source, folder / "forced", "embedding.device=cuda", "embedding.precision=fp32")
    told["stages"] = streamed(forced, parts)
    told["held"] = [json.loads(path.read_text("utf-8")) for path in held.iterdir()]
    found = plan_of(source, folder / "found")
    outcome = ingest(found, Catalog(found.store), ON_CLUSTER, lambda _: None, clock=time.monotonic)
    told["devices"] = dict(Catalog(found.store).verify(outcome.generation).devices)
    wanted = plan_of(source, folder / "wanted", "embedding.device=cuda")
    try:
        ingest(wanted, Catalog(wanted.store), ON_CLUSTER, lambda _: None, clock=time.monotonic)
    except ModelUnavailableError as error:
        told["refused"] = str(error)
    told["published"] = Catalog(wanted.store).pointer().generation
    told["faiss"] = indexed(folder, held)
    sys.stdout.write(json.dumps(told))


def indexed(folder: Path, held: Path) -> dict[str, Any]:
    """What a run over enough contents for IVF-PQ, in two shards, came to, and what FAISS noted."""
    before = set(held.iterdir())
    many = ("index.vectors.exact_below=100", "index.vectors.target_recall=0.1", "index.shard_contents=500")
    plan = a_plan(a_tree(folder / "many", files=260), folder / "indexed", *many, encoder=WORDS)
    outcome = ingest(plan, Catalog(plan.store), ON_CLUSTER, lambda _: None, clock=time.monotonic)
    manifest = Catalog(plan.store).verify(outcome.generation)
    notes = [json.loads(path.read_text("utf-8")) for path in set(held.iterdir()) - before]
    (dense,) = manifest.dense.values()
    return {"notes": notes, "shards": len(manifest.shards), "kind": dense.kind, "device": dense.device}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
