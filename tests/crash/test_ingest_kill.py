"""ING-24, ING-26: ingestion killed with SIGKILL anywhere comes out as if nothing had happened.

`WEFT_CRASH_KILLS` and `WEFT_CRASH_SEED` choose how often and where.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from pipelines.catalog.catalog import Catalog
from pipelines.ingestion.report import Outcome, Progress
from pipelines.runtime.stages import ON_CLUSTER
from tests.conftest import ROOT
from tests.support.ingest_process import Point, busy_workers, run, run_and_die
from tests.support.ingestion import a_tree

FILES = 40
PHASES = ("reading and embedding", "merging tables", "building indexes", "publishing")


def kills(default: int) -> int:
    return int(os.environ.get("WEFT_CRASH_KILLS") or default)


def seed() -> int:
    return int(os.environ.get("WEFT_CRASH_SEED") or 20_260_821)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_tree(tmp_path_factory.mktemp("sources"), files=FILES)


@pytest.fixture(scope="module")
def undisturbed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, int]:
    """What a run gives that nobody disturbs, and of how many things it tells."""
    events: list[Progress] = []
    outcome = run(source, tmp_path_factory.mktemp("undisturbed") / "store", events.append)
    assert {progress.phase for progress in events} >= set(PHASES)
    return outcome, len(events)


def assert_whole(store: Path, *, expected: str | None) -> None:
    """Every listed generation is whole and nothing else is there; `expected` is the live one's content hash."""
    catalog = Catalog(store)
    listed = [catalog.verify(manifest.id) for manifest in catalog.generations()]
    live = [manifest.content_hash for manifest in listed if manifest.id == catalog.pointer().generation]
    assert live == ([] if expected is None else [expected])
    folder = store / "generations"
    if expected is not None:
        assert sorted(path.name for path in folder.iterdir()) == sorted(manifest.id for manifest in listed)


def kill_drivers(source: Path, folder: Path, undisturbed: tuple[Outcome, int], times: int) -> None:
    outcome, events = undisturbed
    rng = random.Random(seed())
    # Forked from a fresh server: quick, and free of whatever threads this process has.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.ingest_process", "pipelines.indexes.lexical_build"])
    killed = 0
    for number in range(times):
        store = folder / str(number)
        # The last few events are the phases after reading, which take as long as all of it.
        at = rng.randrange(events) if number % 2 else events - 1 - rng.randrange(4)
        process = context.Process(target=run_and_die, args=(source, store, Point(at, rng.uniform(0.0, 0.3))))
        process.start()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
        assert process.exitcode in {0, -signal.SIGKILL}
        survivor = Catalog(store).pointer().generation
        assert_whole(store, expected=None if survivor is None else outcome.content_hash)
        again = context.Process(target=run, args=(source, store))
        again.start()
        again.join()
        assert again.exitcode == 0
        assert_whole(store, expected=outcome.content_hash)
    assert killed >= times // 2


@pytest.mark.crash
def test_a_driver_killed_anywhere_leaves_old_or_new(
    source: Path, undisturbed: tuple[Outcome, int], tmp_path: Path
) -> None:
    """ING-26: after a kill at a random point no partial generation is listed; the next run gives the same content."""
    kill_drivers(source, tmp_path, undisturbed, kills(default=6))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_a_driver_killed_at_many_points_leaves_old_or_new(
    source: Path, undisturbed: tuple[Outcome, int], tmp_path: Path
) -> None:
    """ING-26: the long run."""
    kill_drivers(source, tmp_path, undisturbed, kills(default=40))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_any_worker_killed_at_many_points_changes_nothing(
    cluster: None, source: Path, undisturbed: tuple[Outcome, int], tmp_path: Path
) -> None:
    """ING-24: readers, extractors, encoders, table mergers and Lucene writers die, and are replaced unseen."""
    rng = random.Random(seed())
    wanted, titles = kills(default=20), []
    for number in range(3 * wanted):
        store = tmp_path / str(number)
        reached, victim = threading.Event(), rng.choice(PHASES[:3])

        def kill_one(reached: threading.Event = reached, delay_s: float = rng.uniform(0.0, 1.5)) -> None:
            reached.wait()
            time.sleep(delay_s)
            if workers := busy_workers(psutil.Process()):
                worker = rng.choice(workers)
                with contextlib.suppress(psutil.NoSuchProcess):
                    titles.append(worker.cmdline()[0])
                    worker.kill()

        killer = threading.Thread(target=kill_one, daemon=True)
        killer.start()

        def watch(progress: Progress, reached: threading.Event = reached, victim: str = victim) -> None:
            if progress.phase == victim:
                reached.set()

        outcome = run(source, store, watch, ON_CLUSTER)
        killer.join(timeout=10)
        assert outcome.content_hash == undisturbed[0].content_hash
        assert_whole(store, expected=outcome.content_hash)
        if len(titles) >= wanted:
            break
    sys.stdout.write(f"killed {len(titles)} workers: {sorted(set(titles))}\n")
    assert len(titles) >= wanted


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(900)
def test_a_driver_with_a_cluster_killed_and_run_again(
    source: Path, undisturbed: tuple[Outcome, int], tmp_path: Path
) -> None:
    """ING-26: the same where workers do the work; they die with the driver."""
    rng = random.Random(seed())
    for number in range(4):
        store = tmp_path / str(number)
        arguments = [str(rng.randrange(undisturbed[1])), str(rng.uniform(0.0, 2.0))]
        killed = _process("cluster", source, store, *arguments)
        assert killed.returncode in {0, -signal.SIGKILL}
        survivor = Catalog(store).pointer().generation
        assert_whole(store, expected=None if survivor is None else undisturbed[0].content_hash)
        again = _process("cluster", source, store)
        assert json.loads(again.stdout.splitlines()[-1])["content_hash"] == undisturbed[0].content_hash
        assert_whole(store, expected=undisturbed[0].content_hash)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(600)
@pytest.mark.parametrize("delay_s", [0.0, 1.0])
def test_a_node_killed_in_the_middle_changes_nothing(
    source: Path, undisturbed: tuple[Outcome, int], tmp_path: Path, delay_s: float
) -> None:
    """ING-24: of three nodes one dies while it works, and the content hash is that of an undisturbed run."""
    done = _process("nodes", source, tmp_path / "store", str(delay_s))
    assert done.returncode == 0, done.stderr[-2_000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["content_hash"], told["nodes"]) == (undisturbed[0].content_hash, 2)
    assert_whole(tmp_path / "store", expected=undisturbed[0].content_hash)


def _process(kind: str, source: Path, store: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.ingest_process", kind, str(source), str(store), *arguments]
    # Read when Ray is imported: a cluster of several nodes is started with a token, as any cluster is.
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)} if kind == "nodes" else {}
    environment = {**os.environ, **token}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
