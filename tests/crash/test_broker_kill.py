"""FBK-5: brokers and the updater are killed, again and again, while a producer goes on producing.

A broker keeps its log where it outlives it, the embedded one in an object store: what it acknowledged is there when it
comes back. Producers are not idempotent: the embedded broker loses acknowledged records of those when it is killed, and
none of others.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer
from kafka.errors import KafkaError

from tests.support.apache_kafka import ApacheKafka, MissingKafkaError
from tests.support.feedback_traffic import traffic
from tests.support.object_store import ObjectStore
from tests.support.places import Place
from tests.support.updater_process import (
    PARTITIONS,
    begun_ms,
    catch_up,
    consumed,
    folded,
    kill,
    require_the_same_bits,
    start,
    whole_log,
)
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import create_topic
from weft.settings import Settings, load_settings

EVENTS = 14_000  # 40 ms apart, begun ten minutes ago: none is newer than its record
PER_SECOND = 100


class LiveProducer:
    """Sends events at a steady pace, whatever happens, and notes which of them were acknowledged."""

    def __init__(self, settings: Settings, records: list[tuple[bytes, bytes]], *, per_second: int = PER_SECOND) -> None:
        self.acknowledged: list[bytes] = []
        self.refused = 0
        self._settings = settings
        self._records = records
        self._pause_s = 1 / per_second
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._producer = KafkaProducer(
            bootstrap_servers=settings.kafka.bootstrap.split(","),
            acks="all",
            enable_idempotence=False,
            retries=1_000,
            linger_ms=5,
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
            if self._stopped.wait(self._pause_s):
                return
            try:
                sent = self._producer.send(self._settings.feedback.topic, key=key, value=value)
            except KafkaError:
                self.refused += 1
            else:
                sent.add_callback(lambda _, value=value: self.acknowledged.append(value))


class Mortal:
    """An embedded broker that comes back with what it acknowledged."""

    def __init__(self) -> None:
        self._broker = EmbeddedBroker(storage="s3://tansu/").__enter__()
        self.bootstrap = self._broker.bootstrap

    def kill(self) -> None:
        os.kill(self._broker.pid, signal.SIGKILL)

    def start(self) -> None:
        port = int(self.bootstrap.rpartition(":")[2])
        self._broker = EmbeddedBroker(port=port, storage="s3://tansu/").__enter__()

    def close(self) -> None:
        self._broker.__exit__(None, None, None)


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mortal]:
    with ObjectStore() as store:
        for name, value in store.environment().items():
            monkeypatch.setenv(name, value)
        with contextlib.closing(Mortal()) as broker:
            yield broker


def cluster(folder: Path, **options: Any) -> Iterator[ApacheKafka]:
    try:
        brokers = ApacheKafka(folder / "kafka", **options)
    except MissingKafkaError as missing:
        pytest.skip(str(missing))
    with brokers:
        yield brokers


@pytest.fixture
def apache(tmp_path: Path) -> Iterator[ApacheKafka]:
    yield from cluster(tmp_path)


@pytest.fixture
def three(tmp_path: Path) -> Iterator[ApacheKafka]:
    yield from cluster(tmp_path, brokers=3, settings={"min.insync.replicas": "2"})


@pytest.fixture(params=["embedded", "apache"])
def broker(request: pytest.FixtureRequest) -> Mortal | ApacheKafka:
    found: Mortal | ApacheKafka = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    return folder


def settings_at(place: Place, replication: int) -> Settings:
    settings = load_settings([], place.assignments, environment={})
    for topic, partitions in ((place.topic, PARTITIONS), (settings.feedback.dead_letter_topic, 1)):
        create_topic(settings.kafka, topic, partitions=partitions, replication=replication)
    return settings


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_what_was_acknowledged_counts_once_whoever_dies(broker: Mortal | ApacheKafka, store: Path) -> None:
    """FBK-5: ten deaths of the broker and twenty of the updater; the last one reads to the end of the log."""
    rng, place = random.Random(9), Place(broker.bootstrap)
    records = traffic(rng, EVENTS, until_ms=begun_ms(), duplicates=0.02, garbage=0.01)
    settings = settings_at(place, replication=1)
    with LiveProducer(settings, records) as producer:
        for death in range(20):
            updater = start(store, place)
            began, had = time.monotonic(), consumed(store)
            if death % 2:
                time.sleep(rng.random())
                broker.kill()
                time.sleep(rng.random() * 0.5)
                broker.start()
            while consumed(store) <= had and time.monotonic() < began + 30:
                time.sleep(0.05)
            time.sleep(rng.random() * 0.5)
            kill(updater)
    before = consumed(store)
    summary = catch_up(store, place)
    require_each_once(store, settings, producer, summary)
    assert 0 < before <= summary["consumed"] == consumed(store), "what earlier ones committed is not read again"


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_what_was_acknowledged_counts_once_whichever_leader_dies(three: ApacheKafka, store: Path) -> None:
    """FBK-5: of three brokers, the leader of each partition is killed in turn; every other time the updater, too."""
    place, admin = Place(three.bootstrap), three.admin()
    records = traffic(random.Random(9), EVENTS, until_ms=begun_ms(), duplicates=0.02, garbage=0.01)
    settings = settings_at(place, replication=3)
    updater = start(store, place)
    with LiveProducer(settings, records, per_second=40) as producer:
        for partition in range(4):
            leader, copies = described(admin, place.topic, partition)
            assert copies == 3
            three.kill(leader)
            until(lambda gone=leader: described(admin, place.topic, partition)[0] not in {gone, -1})  # noqa: B023
            if partition % 2:
                kill(updater)
                updater = start(store, place)
            acknowledged, had = len(producer.acknowledged), consumed(store)
            until(lambda a=acknowledged, h=had: len(producer.acknowledged) > a + 40 and consumed(store) > h + 40)
            three.start(leader)
            until(lambda: all(described(admin, place.topic, one)[1] == 3 for one in range(PARTITIONS)))
    assert updater.poll() is None, updater.said()
    kill(updater)
    require_each_once(store, settings, producer, catch_up(store, place))


def described(admin: AdminClient, topic: str, partition: int) -> tuple[int, int]:
    """The leader of a partition, and how many copies are in sync."""
    found = admin.list_topics(topic, timeout=30).topics[topic].partitions[partition]
    return found.leader, len(found.isrs)


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while not done():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.1)


def require_each_once(store: Path, settings: Settings, producer: LiveProducer, summary: dict[str, Any]) -> None:
    """All that was acknowledged is in the log, and the evidence is that of an independent reading of it."""
    values = whole_log(settings.kafka.bootstrap, settings.feedback.topic, len(producer.acknowledged))
    there = {value for partition in values for value in partition}
    lost = [value for value in producer.acknowledged if value not in there]
    sys.stderr.write(
        f"{len(producer.acknowledged)} acknowledged, {sum(map(len, values))} in the log, {summary['holes']} holes, "
        f"{summary['applied']} applied, {summary['duplicate']} duplicates\n"
    )
    assert not lost
    assert len(producer.acknowledged) > 1_000
    require_the_same_bits(store, summary, folded(values, settings))
