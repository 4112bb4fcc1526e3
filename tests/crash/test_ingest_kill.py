"""ING-24, ING-26: ingestion killed with SIGKILL anywhere comes out as if nothing had happened.

`WEFT_CRASH_KILLS` and `WEFT_CRASH_SEED` choose how often and where.
"""

from __future__ import annotations

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
from collections import Counter
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from tests.conftest import ROOT
from tests.support.ingest_process import Point, run, run_and_die, workers_titled
from tests.support.ingestion import a_tree
from weft.catalog.catalog import Catalog
from weft.ingestion.report import IndexOutcome, IndexProgress
from weft.runtime.ray.stages import ON_CLUSTER

FILES = 40
WORKERS = {  # Ray's titles of those that work in each phase: stages, mergers of tables, writers of indexes
    "reading and embedding": "MapWorker",
    "merging tables": "on_a_worker",
    "building indexes": "on_a_worker",
}
LONGEST_DELAY_S = {"reading and embedding": 1.5, "merging tables": 0.1, "building indexes": 0.1}
KILLS = {
    "reading and embedding": 2,
    "merging tables": 1,
    "building indexes": 1,
}  # in one run: starting it takes longest
PHASES = ("reading and embedding", "merging tables", "building indexes", "publishing")


def kills(default: int) -> int:
    return int(os.environ.get("WEFT_CRASH_KILLS") or default)


def seed() -> int:
    return int(os.environ.get("WEFT_CRASH_SEED") or 20_260_821)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_tree(tmp_path_factory.mktemp("sources"), files=FILES)


@pytest.fixture(scope="module")
def undisturbed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[IndexOutcome, int]:
    """What a run gives that nobody disturbs, and of how many things it tells."""
    events: list[IndexProgress] = []
    outcome = run(source, tmp_path_factory.mktemp("undisturbed") / "store", events.append)
    assert {progress.phase for progress in events} >= set(PHASES)
    return outcome, len(events)


def assert_whole(store: Path, *, expected: str | None, finished: bool = True) -> None:
    """Every listed generation is whole and nothing else is there; `expected` is the live one's content hash.

    Who was killed after publishing (not `finished`) may leave its hidden staging folder to the next run.
    """
    catalog = Catalog(store)
    listed = [catalog.verify(manifest.id) for manifest in catalog.generations()]
    live = [manifest.content_hash for manifest in listed if manifest.id == catalog.pointer().generation]
    assert live == ([] if expected is None else [expected])
    folder = store / "generations"
    if expected is not None:
        found = {path.name for path in folder.iterdir() if finished or not path.name.startswith(".staging-")}
        assert found == {manifest.id for manifest in listed}


def kill_drivers(source: Path, folder: Path, undisturbed: tuple[IndexOutcome, int], times: int) -> None:
    outcome, events = undisturbed
    rng = random.Random(seed())
    # Forked from a fresh server: quick, and free of whatever threads this process has.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.ingest_process", "weft.indexes.text.build"])
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
        assert_whole(store, expected=None if survivor is None else outcome.content_hash, finished=False)
        again = context.Process(target=run, args=(source, store))
        again.start()
        again.join()
        assert again.exitcode == 0
        assert_whole(store, expected=outcome.content_hash)
    assert killed >= times // 2


@pytest.mark.crash
@pytest.mark.slow
def test_a_driver_killed_anywhere_leaves_old_or_new(
    source: Path, undisturbed: tuple[IndexOutcome, int], tmp_path: Path
) -> None:
    """ING-26: after a kill at a random point no partial generation is listed; the next run gives the same content."""
    kill_drivers(source, tmp_path, undisturbed, kills(default=2))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_a_driver_killed_at_many_points_leaves_old_or_new(
    source: Path, undisturbed: tuple[IndexOutcome, int], tmp_path: Path
) -> None:
    """ING-26: the long run."""
    kill_drivers(source, tmp_path, undisturbed, kills(default=40))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_any_worker_killed_at_many_points_changes_nothing(
    cluster: None, source: Path, undisturbed: tuple[IndexOutcome, int], tmp_path: Path
) -> None:
    """ING-24, ING-26: readers, encoders, table mergers and index writers die, several in a run, and are replaced."""
    rng = random.Random(seed())
    wanted, killed = kills(default=20), Counter[str]()
    for number in range(wanted):
        store = tmp_path / str(number)
        outcome = a_run_losing_workers(source, store, rng, killed)
        sys.stdout.write(f"run {number}: killed {dict(killed)}\n")
        assert outcome.content_hash == undisturbed[0].content_hash
        assert_whole(store, expected=outcome.content_hash)
        if killed.total() >= wanted and min(killed[phase] for phase in WORKERS) >= wanted // 5:
            break
    assert killed.total() >= wanted
    assert min(killed[phase] for phase in WORKERS) >= wanted // 5


def a_run_losing_workers(source: Path, store: Path, rng: random.Random, killed: Counter[str]) -> IndexOutcome:
    """A run on the cluster that loses random workers in every phase, at random moments; `killed` counts them."""
    reached = {phase: threading.Event() for phase in PHASES}

    def kill_some() -> None:
        for phase, after in pairwise(PHASES):
            reached[phase].wait()
            for _ in range(KILLS[phase]):
                killed[phase] += _kill_one(phase, reached[after], rng)

    def watch(progress: IndexProgress) -> None:
        if progress.phase in reached:
            reached[progress.phase].set()

    killer = threading.Thread(target=kill_some, daemon=True)
    killer.start()
    outcome = run(source, store, watch, ON_CLUSTER)
    killer.join(timeout=300)
    assert not killer.is_alive()
    return outcome


def _kill_one(phase: str, over: threading.Event, rng: random.Random) -> int:
    """Kill a worker of a phase at a random moment; 0 where none was at work any more at any such moment."""
    while not over.is_set():
        _await_workers(phase, over)
        time.sleep(rng.uniform(0.0, LONGEST_DELAY_S[phase]))
        if busy := [] if over.is_set() else workers_of(phase):
            rng.choice(busy).kill()
            return 1
    return 0


def workers_of(phase: str) -> list[psutil.Process]:
    return workers_titled(psutil.Process(), WORKERS[phase])


def _await_workers(phase: str, over: threading.Event) -> None:
    deadline = time.monotonic() + 300.0
    while not workers_of(phase) and not over.is_set() and time.monotonic() < deadline:
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(900)
def test_a_driver_with_a_cluster_killed_and_run_again(
    source: Path, undisturbed: tuple[IndexOutcome, int], tmp_path: Path
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
    source: Path, undisturbed: tuple[IndexOutcome, int], tmp_path: Path, delay_s: float
) -> None:
    """ING-24, OPS-13: of three nodes one dies while it works, and the content hash is that of an undisturbed run."""
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
