"""CON-1, CON-7a: a night killed with SIGKILL anywhere is finished by the next one as if nothing had happened.

`WEFT_CRASH_KILLS` and `WEFT_CRASH_SEED` choose how often and where.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.crash.test_ingest_kill import kills, seed
from tests.integration.test_night_duplicates import write
from tests.support.night_process import ASSIGNMENTS, Death, run_night
from tests.support.nights import a_day, stream
from weft.app.indexing import plan_of
from weft.catalog.catalog import Catalog
from weft.ingestion.pipeline import ingest
from weft.runtime.clock import day_of, system_clock
from weft.runtime.mlflow.tracking import Tracking
from weft.runtime.stages import HERE
from weft.settings import load_settings

NOW = system_clock()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a day of outcomes, near-duplicates, opposites and a page to thin."""
    root = tmp_path_factory.mktemp("prepared")
    (root / "files").mkdir()
    write(root / "files")
    settings = load_settings(assignments=[f"storage.root={root / 'store'}", *ASSIGNMENTS], environment={})
    sources = [root / "files", *(ROOT / "docs" / f"{name}.md" for name in ("learning", "retrieval"))]
    ingest(plan_of(settings, sources), Catalog(root / "store"), HERE, lambda _: None, clock=time.monotonic)
    stream(root / "store", 0, a_day(day_of(NOW)))
    return root / "store"


def outcome(store: Path) -> tuple[Mapping[str, bytes], object, object]:
    """All that a night left: files of learned versions, the pointer, and what the registry says.

    The name of the run that documents a version is drawn anew by every night; nothing else may differ.
    """
    files: dict[str, bytes] = {}
    for path in sorted((store / "learned").rglob("*")):
        if not path.is_file() or ".staging" in str(path.relative_to(store)):
            continue
        content = path.read_bytes()
        if path.name == "manifest.json":
            manifest = json.loads(content)
            for changing in ("mlflow_run_id", "sha256"):
                manifest.pop(changing, None)
            content = json.dumps(manifest, sort_keys=True).encode()
        files[str(path.relative_to(store))] = content
    settings = load_settings(assignments=[f"storage.root={store}", *ASSIGNMENTS], environment={})
    catalog, tracking = Catalog(store), Tracking.of(settings.tracking, store)
    tags = {version: tracking.tags_of(version) for version in catalog.learned.versions()}
    return files, catalog.pointer(), tags


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_a_night_killed_at_many_points_is_finished_by_the_next(prepared: Path, tmp_path: Path) -> None:
    """CON-7a: the bits of the learned version, the pointer and the registry are those of a night that nobody killed."""
    context = multiprocessing.get_context("spawn")

    def run(store: Path, *rest: object) -> int | None:
        process = context.Process(target=run_night, args=(store, NOW, *rest))
        process.start()
        process.join()
        return process.exitcode

    whole = shutil.copytree(prepared, tmp_path / "whole")
    assert run(whole, None, tmp_path / "times.json") == 0
    expected = outcome(whole)
    assert any(name.endswith("thinned.parquet") for name in expected[0])
    assert any(name.endswith("aliases.parquet") for name in expected[0])
    times = json.loads((tmp_path / "times.json").read_text("utf-8"))
    rng, wanted, killed, number = random.Random(seed()), kills(default=20), 0, 0
    while killed < wanted:
        store = shutil.copytree(prepared, tmp_path / str(number))
        step = rng.randrange(1, len(times))
        death = Death(step, rng.uniform(0.0, times[step] - times[step - 1]))
        code = run(store, death)
        assert code in {0, -signal.SIGKILL}
        killed += code == -signal.SIGKILL
        published = Catalog(store).learned.versions()
        assert run(store) == 0
        assert outcome(store) == expected, (death, published)
        sys.stdout.write(f"{number}: {code} in step {step} after {death.delay_s:.2f} s, {len(published)} published\n")
        shutil.rmtree(store)
        number += 1
        assert number < 3 * wanted, "killed in time too seldom"
    sys.stdout.write(f"killed {killed} times\n")
