"""FBK-5: the broker and the updater are killed, again and again, while a producer goes on producing.

The broker keeps its log in an object store that outlives it: what it acknowledged is there when it comes back. It runs
without idempotent producers: this broker loses acknowledged records of those when it is killed, and none of others.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError

from pipelines.runtime.broker import EmbeddedBroker
from pipelines.runtime.kafka import create_topic
from pipelines.settings import Settings, load_settings
from tests.support.feedback_traffic import traffic
from tests.support.object_store import ObjectStore
from tests.support.updater_process import (
    NOON,
    PARTITIONS,
    catch_up,
    consumed,
    folded,
    kill,
    require_the_same_bits,
    start,
    whole_log,
)

EVENTS = 7_000  # 40 ms apart: all within the five minutes that an event may lead its record
PER_SECOND = 100


class LiveProducer:
    """Sends events at a steady pace, whatever happens, and notes which of them were acknowledged."""

    def __init__(self, settings: Settings, records: list[tuple[bytes, bytes]]) -> None:
        self.acknowledged: list[bytes] = []
        self.refused = 0
        self._settings = settings
        self._records = records
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._producer = KafkaProducer(
            bootstrap_servers=settings.kafka.bootstrap, acks="all", enable_idempotence=False, retries=1_000, linger_ms=5
        )

    def __enter__(self) -> LiveProducer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._producer.flush()
        self._producer.close()

    def _run(self) -> None:
        for key, value in self._records:
            if self._stopped.wait(1 / PER_SECOND):
                return
            try:
                sent = self._producer.send(self._settings.feedback.topic, key=key, value=value, timestamp_ms=NOON)
            except KafkaError:
                self.refused += 1
            else:
                sent.add_callback(lambda _, value=value: self.acknowledged.append(value))


@pytest.fixture
def durable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A place for a broker's log that outlives the broker."""
    with ObjectStore() as store:
        for name, value in store.environment().items():
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("durable")
def test_what_was_acknowledged_counts_once_whoever_dies(tmp_path: Path) -> None:
    """FBK-5: ten deaths of the broker and twenty of the updater; the last one reads to the end of the log."""
    rng = random.Random(9)
    records = traffic(rng, EVENTS, start_ms=NOON, duplicates=0.02, garbage=0.01)
    broker = EmbeddedBroker(storage="s3://tansu/").__enter__()
    port = int(broker.bootstrap.rpartition(":")[2])
    settings = load_settings([], [f"kafka.bootstrap={broker.bootstrap}"], environment={})
    create_topic(settings.kafka, settings.feedback.topic, partitions=PARTITIONS, replication=1)
    try:
        with LiveProducer(settings, records) as producer:
            for death in range(20):
                updater = start(tmp_path, settings.kafka.bootstrap)
                began, had = time.monotonic(), consumed(tmp_path)
                if death % 2:
                    time.sleep(rng.random())
                    os.kill(broker.pid, signal.SIGKILL)
                    time.sleep(rng.random() * 0.5)
                    broker = EmbeddedBroker(port=port, storage="s3://tansu/").__enter__()
                while consumed(tmp_path) <= had and time.monotonic() < began + 30:
                    time.sleep(0.05)
                time.sleep(rng.random() * 0.5)
                kill(updater)
        behind = -consumed(tmp_path)
        summary = catch_up(tmp_path, settings.kafka.bootstrap)
        behind += consumed(tmp_path)
        values = whole_log(settings.kafka.bootstrap, settings.feedback.topic, len(producer.acknowledged))
    finally:
        broker.__exit__(None, None, None)
    there = {value for partition in values for value in partition}
    lost = [value for value in producer.acknowledged if value not in there]
    holes = summary["holes"]
    sys.stderr.write(
        f"{len(producer.acknowledged)} acknowledged, {sum(map(len, values))} in the log, {holes} offsets skipped, "
        f"{summary['applied']} applied, {summary['duplicate']} duplicates; {behind} after the last death\n"
    )
    assert not lost
    assert len(producer.acknowledged) > 1_000
    require_the_same_bits(tmp_path, summary, folded(values, settings))
    assert 0 <= behind < summary["consumed"], "what earlier ones committed is not read again"
