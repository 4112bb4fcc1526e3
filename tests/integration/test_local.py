"""ING-24, OPS-8a: `weft index --local` needs no Ray, and makes the same generation."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from tests.conftest import ROOT
from tests.support.ingestion import UNAVAILABLE, a_plan, a_tree
from weft.catalog.catalog import Catalog
from weft.domain.errors import ModelUnavailableError
from weft.indexes.manifest import Manifest
from weft.ingestion.pipeline import ingest
from weft.ingestion.plan import IndexPlan
from weft.runtime.ray.stages import ON_CLUSTER
from weft.runtime.stages import HERE, Executor, Stage, in_threads

pytestmark = pytest.mark.integration

WITHOUT_RAY = (
    "import sys; from tests.support.base_only import hide; from weft.cli.registry import main; "
    "hide(frozenset({'ray', 'grpc'})); sys.exit(main(sys.argv[1:]))"
)


def made(plan: IndexPlan, executor: Executor) -> tuple[Manifest, bytes]:
    """The manifest of what a run published, and its vectors."""
    catalog = Catalog(plan.store)
    outcome = ingest(plan, catalog, executor, lambda _: None, clock=time.monotonic)
    (vectors,) = catalog.folder_of(outcome.generation).glob("vectors/*/vectors.npy")
    return catalog.verify(outcome.generation), vectors.read_bytes()


@pytest.mark.slow
def test_threads_make_what_the_cluster_makes(cluster: None, tmp_path: Path) -> None:
    """ING-24, ARC-9: equal content, vectors and tables, in threads, on the cluster, and one thing after the other."""
    source = a_tree(tmp_path)
    ways = {"threads": in_threads(3), "cluster": ON_CLUSTER, "here": HERE}
    tables = {}
    for way, executor in ways.items():
        manifest, vectors = made(a_plan(source, tmp_path / way, "extraction.enabled=true"), executor)
        same = {name: each for name, each in manifest.files.items() if name.startswith(("chunks/", "vectors/"))}
        tables[way] = (manifest.content_hash, manifest.counts, vectors, same)
    assert tables["threads"] == tables["here"]
    assert tables["threads"][:3] == tables["cluster"][:3]


class Noted:
    """Says which thread works on a batch, and waits until as many are at work as there are batches."""

    def __init__(self, together: threading.Barrier) -> None:
        self._together = together

    def run(self, batch: pa.Table) -> pa.Table:
        self._together.wait(timeout=60.0)
        return batch.append_column("thread", pa.array([threading.get_ident()] * batch.num_rows))


def test_threads_work_side_by_side() -> None:
    """ING-24: as many batches at once as there are threads, each thread with workers of its own."""
    batches = [pa.table({"number": [number]}) for number in range(6)]
    stages = [Stage(Noted, (threading.Barrier(3),), 1, 1.0)]
    done = pa.concat_tables(in_threads(3).stream(batches, stages)).to_pydict()
    assert sorted(done["number"]) == list(range(6))
    assert len(set(done["thread"])) == 3


def test_what_a_thread_raises_ends_the_run(tmp_path: Path) -> None:
    """ING-26: the reason comes out as it is, and nothing is published."""
    plan = a_plan(a_tree(tmp_path), tmp_path / "store", "extraction.enabled=true", extractor=UNAVAILABLE)
    with pytest.raises(ModelUnavailableError, match=r"^no such model$"):
        ingest(plan, Catalog(plan.store), in_threads(2), lambda _: None, clock=time.monotonic)
    assert Catalog(plan.store).pointer().generation is None


def test_no_ray_is_needed(tmp_path: Path) -> None:
    """OPS-8a: `weft index --local` where neither Ray nor gRPC is installed; without `--local` it names the extra."""
    source = a_tree(tmp_path, files=3)
    words = ["index", str(source), "--store", str(tmp_path / "store"), "--json", "--set", "extraction.enabled=false"]
    run = (sys.executable, "-c", WITHOUT_RAY, *words)
    refused = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert refused.returncode == 78
    assert "pip install 'weft-retrieval[index]'" in refused.stderr
    assert Catalog(tmp_path / "store").pointer().generation is None
    indexed = subprocess.run([*run, "--local"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert indexed.returncode == 0, indexed.stderr
    outcome = json.loads(indexed.stdout)
    assert outcome["published"]
    assert Catalog(tmp_path / "store").pointer().generation == outcome["generation"]
