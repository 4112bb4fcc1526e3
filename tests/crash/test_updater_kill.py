"""FBK-5, ARC-3: an updater process killed with SIGKILL again and again, against a real broker.

`WEFT_CRASH_KILLS` and `WEFT_CRASH_SEED` choose how often and where.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from pipelines.runtime.broker import EmbeddedBroker
from pipelines.runtime.kafka import create_topic
from pipelines.settings import Settings, load_settings
from tests.support.feedback_fold import digest_of_stores, fold_log
from tests.support.feedback_traffic import traffic

ROOT = Path(__file__).resolve().parents[2]
EVENTS = 5_000
NOON_TODAY = int(time.time() // 86_400 * 86_400 + 43_200) * 1000 - 86_400_000


def kills(default: int) -> int:
    return int(os.environ.get("WEFT_CRASH_KILLS") or default)


def seed() -> int:
    return int(os.environ.get("WEFT_CRASH_SEED") or 20_260_821)


@pytest.mark.crash
@pytest.mark.timeout(600)
def test_killed_anywhere_the_evidence_has_the_same_bits(tmp_path: Path) -> None:
    """FBK-5: 5,000 events, 5 % repeated, 1 % garbage; the evidence is that of an independent reading of the log."""
    kill_and_compare(tmp_path, kills(default=30))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_killed_a_hundred_times_the_evidence_has_the_same_bits(tmp_path: Path) -> None:
    """FBK-5: the long run."""
    kill_and_compare(tmp_path, kills(default=100))


def kill_and_compare(store: Path, times: int) -> None:
    rng = random.Random(seed())
    records = traffic(rng, EVENTS, start_ms=NOON_TODAY, duplicates=0.05, garbage=0.01)
    with EmbeddedBroker() as broker:
        settings = load_settings([], [f"kafka.bootstrap={broker.bootstrap}"], environment={})
        create_topic(settings.kafka, settings.feedback.topic, partitions=4, replication=1)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap, acks="all")
        midway = 0
        # Each life finds a share of the log that it has not seen, so that no kill comes after the work is done.
        for life in range(times):
            for key, value in records[life * EVENTS // times : (life + 1) * EVENTS // times]:
                producer.send(settings.feedback.topic, key=key, value=value, timestamp_ms=NOON_TODAY)
            producer.flush()
            midway += one_life(store, broker.bootstrap, rng, left=(life + 1) * EVENTS // times)
        producer.close()
        summary = last_life(store, broker.bootstrap)
        values = whole_log(broker.bootstrap, settings)
    weights = settings.feedback.credit.model_dump()
    weights["principal_daily"] = settings.feedback.limits.principal_daily
    expected = fold_log(values, bins=settings.learning.relevance_bins, weights=weights)
    sys.stderr.write(f"{times} kills with seed {seed()}, {midway} of them with records left to consume\n")
    assert midway > times // 4
    assert digest_of_stores((store / "updaters").iterdir()) == expected.digest()
    assert {name: summary[name] for name in ("applied", "duplicate", "dead_lettered", "late")} == {
        **expected.fates,
        "late": 0,
    }
    assert summary["consumed"] == EVENTS
    assert summary["balanced"]
    assert expected.fates["duplicate"] == EVENTS * 0.05
    assert expected.fates["dead_lettered"] == EVENTS * 0.01


def command(store: Path, bootstrap: str, *more: str) -> list[str]:
    # Small batches make many commits, so that kills fall into and between them.
    paced = ("--set", "feedback.poll_records=5", "--set", "feedback.publish_every_s=0.02")
    return [
        sys.executable,
        "-m",
        "jobs.update",
        "--local",
        "--store",
        str(store),
        "--bootstrap",
        bootstrap,
        *paced,
        *more,
    ]


def one_life(store: Path, bootstrap: str, rng: random.Random, *, left: int) -> bool:
    """Start an updater, kill it at a random instant; whether it left records unread.

    Most deaths come soon after it owns its partitions; some before, while it opens its stores.
    """
    before = epochs(store)
    # Small batches make many commits, so that kills fall into them and between them.
    paced = ("--set", "feedback.poll_records=5", "--set", "feedback.publish_every_s=0.05")
    updater = subprocess.Popen(
        command(store, bootstrap, *paced), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        if rng.random() < 0.1:
            time.sleep(rng.random())
        else:
            while epochs(store) < before + 4:
                assert updater.poll() is None, updater.stderr and updater.stderr.read().decode()
                time.sleep(0.02)
            time.sleep(rng.random() * 0.15)
        assert updater.poll() is None
    finally:
        os.kill(updater.pid, signal.SIGKILL)
        updater.communicate()
    return consumed(store) < left


def last_life(store: Path, bootstrap: str) -> dict[str, int]:
    run = subprocess.run(
        command(store, bootstrap, "--until-caught-up", "--json"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    summary: dict[str, int] = json.loads(run.stdout.splitlines()[-1])
    return summary


def whole_log(bootstrap: str, settings: Settings) -> list[list[bytes | None]]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    places = [TopicPartition(settings.feedback.topic, partition) for partition in range(4)]
    consumer.assign(places)
    values: list[list[bytes | None]] = [[], [], [], []]
    for place in places:
        consumer.seek(place, 0)
    while sum(map(len, values)) < EVENTS:
        for place, records in consumer.poll(timeout_ms=1000).items():
            values[place.partition] += [record.value for record in records]
    consumer.close()
    return values


def epochs(store: Path) -> int:
    return sum(column(store, "epoch"))


def consumed(store: Path) -> int:
    return sum(column(store, "consumed"))


def column(store: Path, name: str) -> list[int]:
    found = []
    for path in (store / "updaters").glob("*/state.sqlite"):
        with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(path)) as connection:
            found += [row[0] for row in connection.execute(f"select {name} from progress")]
    return found
