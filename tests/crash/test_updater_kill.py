"""FBK-5, ARC-3: an updater process killed with SIGKILL again and again, against a real broker.

`WEFT_CRASH_KILLS` and `WEFT_CRASH_SEED` choose how often and where.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest
from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaProducer

from tests.support.apache_kafka import ApacheKafka
from tests.support.failpoints import NAMES
from tests.support.feedback_traffic import traffic
from tests.support.places import Place
from tests.support.updater_process import (
    PARTITIONS,
    await_claims,
    begun_ms,
    catch_up,
    consumed,
    epochs,
    folded,
    kill,
    published,
    require_the_same_bits,
    start,
    whole_log,
)
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import create_topic
from weft.settings import Settings, load_settings

EVENTS = 5_000
LESSON_EVENTS = 10_000


def kills(default: int) -> int:
    return int(os.environ.get("WEFT_CRASH_KILLS") or default)


def seed() -> int:
    return int(os.environ.get("WEFT_CRASH_SEED") or 20_260_821)


@dataclass
class Loop:
    """A broker, a store, and a log that grows by a share per life, so that no kill comes after the work is done."""

    store: Path
    lifecycles: int
    rng: random.Random
    settings: Settings
    place: Place
    records: list[tuple[bytes, bytes]]
    sent: int = 0

    def __post_init__(self) -> None:
        self.producer = KafkaProducer(bootstrap_servers=self.place.bootstrap, acks="all")

    @classmethod
    def at(cls, place: Place, store: Path, lifecycles: int, *, lessons_alone: bool = False) -> Self:
        rng = random.Random(seed())
        events = LESSON_EVENTS if lessons_alone else EVENTS
        records = traffic(rng, events, until_ms=begun_ms(), duplicates=0.05, garbage=0.01, lessons_alone=lessons_alone)
        settings = load_settings([], place.assignments, environment={})
        create_topic(settings.kafka, place.topic, partitions=PARTITIONS, replication=1)
        return cls(store, lifecycles, rng, settings, place, records)

    @property
    def events(self) -> int:
        return len(self.records)

    @property
    def share(self) -> int:
        return -(-self.events // self.lifecycles)

    def grow(self) -> None:
        for key, value in self.records[self.sent : self.sent + self.share]:
            self.producer.send(self.place.topic, key=key, value=value)
        self.producer.flush()
        self.sent = min(self.events, self.sent + self.share)

    def settle(self) -> None:
        """Write what is left."""
        while self.sent < self.events:
            self.grow()
        self.producer.close()

    def finish(self) -> dict[str, Any]:
        """Consume what is left; the evidence is that of an independent reading of the log."""
        self.settle()
        summary = catch_up(self.store, self.place)
        values = whole_log(self.place.bootstrap, self.place.topic, self.events)
        expected = folded(values, self.settings)
        require_the_same_bits(self.store, summary, expected)
        assert expected.fates["duplicate"] == self.events * 0.05
        assert expected.fates["dead_lettered"] == self.events * 0.01
        return summary


class InTransactions(Loop):
    """The same log, written in transactions: some are aborted and made again, and the last one stays open for a life.

    Attributes:
        unread: Aborted records, and a marker for every partition of a transaction.
    """

    def __post_init__(self) -> None:
        self.transactions = Producer({"bootstrap.servers": self.place.bootstrap, "transactional.id": self.place.topic})
        self.transactions.init_transactions(60)
        self.written: list[int] = []  # partition of every record of the open transaction
        self.unread = self.aborted = 0

    def grow(self) -> None:
        self._end()
        until = min(self.events, self.sent + self.share)
        while self.sent < until:
            self._end()
            self._begin(min(self.rng.randint(1, 40), self.events - self.sent))

    def settle(self) -> None:
        while self.sent < self.events or self.written:
            if self.sent < self.events:
                self.grow()
            self._end()

    def _begin(self, size: int) -> None:
        self.transactions.begin_transaction()
        for key, value in self.records[self.sent : self.sent + size]:
            self.transactions.produce(self.place.topic, value, key, on_delivery=self._note)
        self.transactions.flush()
        self.sent += size

    def _note(self, error: KafkaError | None, record: Message) -> None:
        assert error is None
        self.written.append(int(record.partition()))

    def _end(self) -> None:
        written, self.written = self.written, []
        if not written:
            return
        self.unread += len(set(written))
        if self.rng.random() < 0.4:
            self.transactions.abort_transaction(60)
            self.sent -= len(written)
            self.unread += len(written)
            self.aborted += len(written)
        else:
            self.transactions.commit_transaction(60)


@pytest.fixture
def embedded() -> Iterator[Place]:
    with EmbeddedBroker() as broker:
        yield Place(broker.bootstrap)


@pytest.fixture
def apache(apache_kafka: ApacheKafka) -> Place:
    return Place(apache_kafka.bootstrap)


@pytest.mark.crash
@pytest.mark.timeout(600)
def test_killed_anywhere_the_evidence_has_the_same_bits(embedded: Place, tmp_path: Path) -> None:
    """FBK-5: 5,000 events, 5 % repeated, 1 % garbage; the evidence is that of an independent reading of the log."""
    kill_at_random(Loop.at(embedded, tmp_path, kills(default=10)))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(900)
def test_killed_anywhere_what_is_said_of_lessons_has_the_same_bits(embedded: Place, tmp_path: Path) -> None:
    """LES-7, FBK-5: twenty kills over 10,000 events of lessons: texts, sayings, outcomes, injections and links."""
    kill_at_random(Loop.at(embedded, tmp_path, kills(default=20), lessons_alone=True))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_killed_beside_apache_kafka_the_evidence_has_the_same_bits(apache: Place, tmp_path: Path) -> None:
    """FBK-5: twenty kills, the same on a broker that sets the times of records itself."""
    kill_at_random(Loop.at(apache, tmp_path, kills(default=20)))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_killed_while_transactions_are_open_nothing_aborted_counts(apache: Place, tmp_path: Path) -> None:
    """FBK-14, FBK-5: the evidence is that of committed records; markers and aborted records are counted as skipped."""
    world = InTransactions.at(apache, tmp_path, kills(default=20))
    summary = kill_at_random(world)
    sys.stderr.write(f"{world.aborted} records aborted, {summary['skipped']} offsets skipped\n")
    assert world.aborted > EVENTS // 20
    assert (summary["skipped"], summary["holes"]) == (world.unread, 0)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_killed_150_times_the_evidence_has_the_same_bits(embedded: Place, tmp_path: Path) -> None:
    """FBK-5: the long run."""
    kill_at_random(Loop.at(embedded, tmp_path, kills(default=150)))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_killed_at_fifty_named_instants_the_evidence_has_the_same_bits(embedded: Place, tmp_path: Path) -> None:
    """FBK-5, ARC-3: inside claims, transactions, commits, snapshots and checkpoints."""
    died: Counter[str] = Counter()
    world = Loop.at(embedded, tmp_path, 60)
    while died.total() < kills(default=50):
        world.grow()
        name = NAMES[died.total() % len(NAMES)]
        # Each claims four partitions and commits a few times; checkpoints come once or twice in such a life.
        nth = world.rng.randint(1, 1 if "checkpoint" in name else 4)
        updater = start(world.store, world.place, "tests.support.failpoints", name, str(nth))
        try:
            updater.wait(20)
            assert updater.returncode == -signal.SIGKILL, updater.said()
            died[name] += 1
        finally:
            kill(updater)
    world.finish()
    sys.stderr.write("".join(f"{count:4} deaths {name}\n" for name, count in sorted(died.items())))
    assert set(died) == set(NAMES)


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_a_zombie_is_fenced_twenty_times(embedded: Place, tmp_path: Path) -> None:
    """FBK-4: an updater that slept while another took over wakes up, and ends without a commit."""
    world = Loop.at(embedded, tmp_path, 40)
    for _ in range(20):
        world.grow()
        before = epochs(world.store)
        zombie = start(world.store, world.place)
        await_claims(zombie, world.store, before)
        # It falls asleep between transactions: in one, it would hold the store, and nobody could take over.
        while published(world.store) < world.sent:
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(zombie.pid, signal.SIGSTOP)
        before = epochs(world.store)
        heir = start(world.store, world.place)
        try:
            await_claims(heir, world.store, before)
            os.kill(zombie.pid, signal.SIGCONT)
            world.grow()
            assert zombie.wait(30) == 1
            assert "another updater took partition" in " ".join(zombie.said().split())
            assert heir.poll() is None
        finally:
            kill(zombie)
            kill(heir)
    world.finish()


def kill_at_random(world: Loop) -> dict[str, Any]:
    midway = 0
    for _ in range(world.lifecycles):
        world.grow()
        one_life(world)
        midway += consumed(world.store) < world.sent
    summary = world.finish()
    sys.stderr.write(f"{world.lifecycles} kills with seed {seed()}, {midway} of them with records left to consume\n")
    assert midway > world.lifecycles // 4
    return summary


def one_life(world: Loop) -> None:
    """Start an updater, kill it at a random instant.

    Most deaths come soon after it owns its partitions; some before, while it opens its stores.
    """
    before = epochs(world.store)
    updater = start(world.store, world.place)
    try:
        if world.rng.random() < 0.1:
            time.sleep(world.rng.random())
        else:
            await_claims(updater, world.store, before)
            time.sleep(world.rng.random() * 0.15)
        assert updater.poll() is None
    finally:
        kill(updater)
