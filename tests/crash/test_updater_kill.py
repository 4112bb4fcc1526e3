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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaProducer

from pipelines.runtime.broker import EmbeddedBroker
from pipelines.runtime.kafka import create_topic
from pipelines.settings import Settings, load_settings
from tests.support.failpoints import NAMES
from tests.support.feedback_traffic import traffic
from tests.support.updater_process import (
    NOON,
    PARTITIONS,
    await_claims,
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

EVENTS = 5_000


def kills(default: int) -> int:
    return int(os.environ.get("WEFT_CRASH_KILLS") or default)


def seed() -> int:
    return int(os.environ.get("WEFT_CRASH_SEED") or 20_260_821)


@dataclass
class Loop:
    """A broker, a store, and a log that grows by a share per life, so that no kill comes after the work is done."""

    store: Path
    lives: int
    rng: random.Random
    settings: Settings
    bootstrap: str
    producer: KafkaProducer
    records: list[tuple[bytes, bytes]]
    sent: int = 0

    def grow(self) -> None:
        share = -(-EVENTS // self.lives)
        for key, value in self.records[self.sent : self.sent + share]:
            self.producer.send(self.settings.feedback.topic, key=key, value=value, timestamp_ms=NOON)
        self.producer.flush()
        self.sent = min(EVENTS, self.sent + share)

    def finish(self) -> None:
        """Consume what is left; the evidence is that of an independent reading of the log."""
        while self.sent < EVENTS:
            self.grow()
        summary = catch_up(self.store, self.bootstrap)
        values = whole_log(self.bootstrap, self.settings.feedback.topic, EVENTS)
        expected = folded(values, self.settings)
        require_the_same_bits(self.store, summary, expected)
        assert expected.fates["duplicate"] == EVENTS * 0.05
        assert expected.fates["dead_lettered"] == EVENTS * 0.01


@contextmanager
def loop(store: Path, lives: int) -> Iterator[Loop]:
    rng = random.Random(seed())
    records = traffic(rng, EVENTS, start_ms=NOON, duplicates=0.05, garbage=0.01)
    with EmbeddedBroker() as broker:
        settings = load_settings([], [f"kafka.bootstrap={broker.bootstrap}"], environment={})
        create_topic(settings.kafka, settings.feedback.topic, partitions=PARTITIONS, replication=1)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap, acks="all")
        yield Loop(store, lives, rng, settings, broker.bootstrap, producer, records)
        producer.close()


@pytest.mark.crash
@pytest.mark.timeout(600)
def test_killed_anywhere_the_evidence_has_the_same_bits(tmp_path: Path) -> None:
    """FBK-5: 5,000 events, 5 % repeated, 1 % garbage; the evidence is that of an independent reading of the log."""
    kill_at_random(tmp_path, kills(default=10))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_killed_150_times_the_evidence_has_the_same_bits(tmp_path: Path) -> None:
    """FBK-5: the long run."""
    kill_at_random(tmp_path, kills(default=150))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(3600)
def test_killed_at_fifty_named_instants_the_evidence_has_the_same_bits(tmp_path: Path) -> None:
    """FBK-5, ARC-3: inside claims, transactions, commits, snapshots and checkpoints."""
    died: Counter[str] = Counter()
    with loop(tmp_path, 60) as world:
        while died.total() < kills(default=50):
            world.grow()
            name = NAMES[died.total() % len(NAMES)]
            # Each claims four partitions and commits a few times; checkpoints come once or twice in such a life.
            nth = world.rng.randint(1, 1 if "checkpoint" in name else 4)
            updater = start(world.store, world.bootstrap, "tests.support.failpoints", name, str(nth))
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
def test_a_zombie_is_fenced_twenty_times(tmp_path: Path) -> None:
    """FBK-4: an updater that slept while another took over wakes up, and ends without a commit."""
    with loop(tmp_path, 40) as world:
        for _ in range(20):
            world.grow()
            before = epochs(world.store)
            zombie = start(world.store, world.bootstrap)
            await_claims(zombie, world.store, before)
            # It falls asleep between transactions: in one, it would hold the store, and nobody could take over.
            while published(world.store) < world.sent:
                time.sleep(0.05)
            time.sleep(0.5)
            os.kill(zombie.pid, signal.SIGSTOP)
            before = epochs(world.store)
            heir = start(world.store, world.bootstrap)
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


def kill_at_random(store: Path, times: int) -> None:
    midway = 0
    with loop(store, times) as world:
        for _ in range(times):
            world.grow()
            one_life(world)
            midway += consumed(store) < world.sent
        world.finish()
    sys.stderr.write(f"{times} kills with seed {seed()}, {midway} of them with records left to consume\n")
    assert midway > times // 4


def one_life(world: Loop) -> None:
    """Start an updater, kill it at a random instant.

    Most deaths come soon after it owns its partitions; some before, while it opens its stores.
    """
    before = epochs(world.store)
    updater = start(world.store, world.bootstrap)
    try:
        if world.rng.random() < 0.1:
            time.sleep(world.rng.random())
        else:
            await_claims(updater, world.store, before)
            time.sleep(world.rng.random() * 0.15)
        assert updater.poll() is None
    finally:
        kill(updater)
