"""Runs of ingestion in processes of their own, which die where they are told to."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from tests.support.ingestion import SLOW, WORDS, a_plan
from weft.catalog.catalog import Catalog
from weft.ingestion.pipeline import Watch, ingest
from weft.ingestion.report import IndexOutcome, IndexProgress
from weft.runtime.ray.cluster import connect
from weft.runtime.ray.stages import ON_CLUSTER
from weft.runtime.stages import HERE, Executor
from weft.runtime.storage.origins import source_place
from weft.runtime.storage.working_copy import place_of
from weft.settings import load_settings

WAYS = ("index.shards=3", "extraction.enabled=true")


@dataclass(frozen=True)
class Point:
    """Where to kill: some time after a run has told of something for the n-th time."""

    event: int
    delay_s: float


def run(
    source: Path, store: Path, watch: Watch = lambda _: None, executor: Executor = HERE, encoder: str = SLOW
) -> IndexOutcome:
    return ingest(a_plan(source, store, *WAYS, encoder=encoder), Catalog(store), executor, watch, clock=time.monotonic)


def run_and_die(source: Path, store: Path, point: Point) -> None:
    """A run in this process, which is killed at a point unless it is done before."""
    run(source, store, killing(point))


def killing(point: Point) -> Watch:
    """A watch that starts the clock of a killer of its own process."""
    events = iter(range(1_000_000))

    def watch(progress: IndexProgress) -> None:
        if next(events) == point.event:
            threading.Timer(point.delay_s, os.kill, [os.getpid(), signal.SIGKILL]).start()

    return watch


def run_and_die_by_words(source: Path, store: Path) -> None:
    """A run in this process, which is killed as soon as its first generation is live, without vectors."""

    def watch(progress: IndexProgress) -> None:
        if "answers by words" in progress.phase:
            os.kill(os.getpid(), signal.SIGKILL)

    plan = replace(a_plan(source, store, *WAYS), words_first=3)
    ingest(plan, Catalog(store), HERE, watch, clock=time.monotonic)


def workers_titled(process: psutil.Process, title: str) -> list[psutil.Process]:
    """Ray's workers below a process that are at work of that title."""
    workers = []
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if " ".join(child.cmdline()).startswith(f"ray::{title}"):
                workers.append(child)
    return workers


def on_cluster_at(
    address: str, source: Path, store: Path, encoder: str, *assignments: str, here: bool = False
) -> IndexOutcome:
    """A run on a cluster that is there already, with one kind of actors."""
    connect(load_settings(assignments=[f"cluster.address={address}"], environment={}).cluster)
    plan = replace(a_plan(source, store, *assignments, encoder=encoder), here=here)

    def watch(progress: IndexProgress) -> None:
        if progress.phase not in phases:
            phases.append(progress.phase)
            sys.stdout.write(f"{progress.phase}\n")
            sys.stdout.flush()

    phases: list[str] = []
    return ingest(plan, Catalog(store), ON_CLUSTER, watch, clock=time.monotonic)


def on_own_cluster(source: Path, store: Path, point: Point | None, encoder: str = SLOW) -> IndexOutcome:
    """A run on a cluster that starts and ends with this process."""
    connect(load_settings(assignments=["cluster.cpus=4", "cluster.address=local"], environment={}).cluster)
    return run(source, store, (lambda _: None) if point is None else killing(point), ON_CLUSTER, encoder)


def on_several_nodes(source: Path, store: Path, delay_s: float) -> tuple[IndexOutcome, int]:
    """A run on three nodes of which one, not the driver's, is killed while it works; the outcome, and nodes left."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    others = [cluster.add_node(num_cpus=2) for _ in range(2)]
    cluster.wait_for_nodes()
    settings = load_settings(assignments=[f"cluster.address={cluster.address}"], environment={}).cluster
    connect(settings)
    begun = threading.Event()

    def kill_one() -> None:
        begun.wait()
        time.sleep(delay_s)
        cluster.remove_node(others[0], allow_graceful=False)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    outcome = run(source, store, lambda progress: begun.set() if progress.done else None, ON_CLUSTER)
    killer.join()
    left = sum(node["Alive"] for node in ray.nodes())
    ray.shutdown()
    cluster.shutdown()
    return outcome, left


def peak_mb() -> float:
    """The most memory this program has held; `getrusage` would tell that of the program that started it, if larger."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def main(kind: str, source: str, store: str, *numbers: str) -> None:
    if kind == "nodes":
        outcome, left = on_several_nodes(Path(source), Path(store), float(numbers[0]))
        sys.stdout.write(json.dumps({"content_hash": outcome.content_hash, "nodes": left}) + "\n")
        return
    if kind in {"joined", "here"}:
        address, encoder, *assignments = numbers
        places = source_place(source), place_of(store)
        outcome = on_cluster_at(address, *places, encoder, *assignments, here=kind == "here")
        # Java writes the text index: a driver that has none has built nothing.
        report = {"content_hash": outcome.content_hash, "documents": outcome.documents, "built": "jnius" in sys.modules}
        sys.stdout.write(json.dumps(report) + "\n")
        return
    if kind == "memory":
        outcome = on_own_cluster(Path(source), Path(store), None, encoder=WORDS)
        sys.stdout.write(json.dumps({"documents": outcome.documents, "peak_mb": peak_mb()}) + "\n")
        return
    point = Point(int(numbers[0]), float(numbers[1])) if numbers else None
    outcome = on_own_cluster(Path(source), Path(store), point)
    sys.stdout.write(json.dumps({"content_hash": outcome.content_hash}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
