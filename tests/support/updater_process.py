"""An updater as a process of its own, to be killed; and what it leaves behind."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from tests.support.feedback_fold import fold_log
from tests.support.folded_evidence import Folded, digest_of_stores
from tests.support.places import Place
from tests.support.preloaded import Server, Split
from weft.catalog.overlays import OFFSET_KEY, metadata_of
from weft.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 4
# Small batches make many commits, so that kills fall into and between them.
_PACED = ("--set", "feedback.poll_records=5", "--set", "feedback.publish_every_s=0.02")
_CHECKPOINTS = ("--set", "feedback.checkpoint_records=10")


def begun_ms() -> int:
    """Ten minutes ago: events 40 ms apart are older than their records then, and within every window."""
    return round(time.time() * 1000) - 600_000


def command(store: Path, place: Place, *more: str, program: Sequence[str] = ("-m", "jobs.update")) -> list[str]:
    return [sys.executable, *program, "--local", "--store", str(store), *place.arguments, *more]


def start(store: Path, place: Place, *program: str) -> Split:
    """An updater; or another module that runs one, by its name, with arguments of its own before the updater's."""
    module, *own = program or ("jobs.update",)
    _, *arguments = command(store, place, *_PACED, *_CHECKPOINTS, program=())
    return _server().start(module, [*own, *arguments])


@functools.cache
def _server() -> Server:
    server = Server()
    atexit.register(server.close)
    return server


def kill(updater: Split) -> None:
    """End it without a word; it may have ended already."""
    if updater.poll() is None:
        os.kill(updater.pid, signal.SIGKILL)
        updater.wait(30)


def await_claims(updater: Split, store: Path, before: int) -> None:
    """Wait until it owns all partitions."""
    while epochs(store) < before + PARTITIONS:
        assert updater.poll() is None, updater.said()
        time.sleep(0.02)


def catch_up(store: Path, place: Place) -> dict[str, Any]:
    """Let one last updater consume everything; its report."""
    arguments = command(store, place, "--until-caught-up", "--json")
    run = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    summary: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return summary


def whole_log(bootstrap: str, topic: str, at_least: int) -> list[list[bytes | None]]:
    """Values of every partition up to where the log ends, without those of aborted transactions."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap.split(","),
        group_id=None,
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    consumer.assign(places)
    values: list[list[bytes | None]] = [[] for _ in places]
    for place in places:
        consumer.seek(place, 0)
    while True:
        for place, records in consumer.poll(timeout_ms=500).items():
            values[place.partition] += [record.value for record in records]
        ends = [consumer.highwater(place) for place in places]
        there = [end is not None and consumer.position(place) >= end for place, end in zip(places, ends, strict=True)]
        if all(there) and sum(map(len, values)) >= at_least:
            break
    consumer.close()
    return values


def folded(values: list[list[bytes | None]], settings: Settings) -> Folded:
    """What an independent reading of a log comes to, under the settings' weights."""
    weights = settings.feedback.credit.model_dump()
    limits = settings.feedback.limits.model_dump()
    weights |= {name: limits[name] for name in ("principal_daily", "reports_daily", "newcomers")}
    return fold_log(values, weights=weights)


def require_the_same_bits(store: Path, summary: dict[str, Any], expected: Folded) -> None:
    assert digest_of_stores((store / "updaters").iterdir()) == expected.digest()
    fates = ("applied", "duplicate", "dead_lettered", "late")
    assert {name: summary[name] for name in fates} == {name: expected.fates[name] for name in fates}
    assert summary["consumed"] == sum(expected.fates.values())
    assert summary["balanced"]


def epochs(store: Path) -> int:
    return sum(column(store, "epoch"))


def consumed(store: Path) -> int:
    return sum(column(store, "consumed"))


def published(store: Path) -> int:
    """How many records the snapshots of all partitions hold: behind that, an updater writes nothing more."""
    return sum(int(metadata_of(path)[OFFSET_KEY]) for path in (store / "updaters").glob("*/evidence.parquet"))


def column(store: Path, name: str) -> list[int]:
    found = []
    for path in (store / "updaters").glob("*/state.sqlite"):
        with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(path)) as connection:
            found += [row[0] for row in connection.execute(f"select {name} from progress")]
    return found
