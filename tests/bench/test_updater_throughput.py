"""FBK-8: what an updater reaches beside a bare kafka-python poll loop and Quix Streams, in one run on one topic."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.support.many_sessions import PAGE, PER_QUERY, SESSIONS, events_of
from tests.support.updater_time import MIXES, microseconds
from weft.feedback.run.actors import Task, open_updater
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.log import FETCH_BYTES
from weft.runtime.kafka.writer import create_topic
from weft.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parents[2]
RIVAL = ROOT / "tests/support/rivals/quix_updates.py"
RIVAL_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
EVENTS = 300_000  # some seconds: what is done once, at the start and at the end, weighs little then
ROUNDS = 3


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(scope="module", params=["embedded", "apache_kafka"])
def settings(request: pytest.FixtureRequest) -> Settings:
    """A broker with the topic full of events."""
    bootstrap = request.getfixturevalue(request.param).bootstrap
    settings = load_settings([], [f"kafka.bootstrap={bootstrap}"], environment={})
    create_topic(settings.kafka, settings.feedback.topic, partitions=settings.feedback.partitions, replication=1)
    create_topic(settings.kafka, settings.feedback.dead_letter_topic, partitions=1, replication=1)
    size = produced(settings)
    told(f"{request.param}: {EVENTS} events of {SESSIONS} sessions, {size} bytes on average")
    return settings


def told(line: str) -> None:
    sys.stderr.write(f"{line}\n")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_updater_over_a_log_in_memory() -> None:
    """FBK-8: one path is quick for verdicts that repeat each other, and for those that are each of another result."""
    took = {page: microseconds(page) for page in MIXES.values()}
    for name, page in MIXES.items():
        told(f"{name}, {page} results a page: {took[page]:.1f} µs of a core per event")
    assert took[PER_QUERY] < 4 * took[PAGE]  # five times as many results are shown, judged and kept


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_updater_beside_a_bare_poll_loop(settings: Settings, tmp_path: Path) -> None:
    """FBK-8: decode, validate, dedupe, join, attribute, evidence and durable commit included."""
    bare, updater = [], []
    for run in range(ROUNDS):
        bare.append(bare_rate(settings))
        updater.append(updater_rate(settings, tmp_path / str(run)))
    ratios = []
    for place, per in enumerate(("second", "second of a core")):
        theirs, ours = max(rate[place] for rate in bare), max(rate[place] for rate in updater)
        told(f"events per {per}: bare poll loop {theirs:,.0f}, updater {ours:,.0f}, ratio {ours / theirs:.2f}")
        ratios.append(ours / theirs)
    assert ratios[0] >= 0.6  # by the clock; per core it is told beside


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("settings", ["embedded"], indirect=True)
@pytest.mark.parametrize(("how", "at_least"), [("once", 5.0), ("least", 5.0), ("core", 1.0)])
def test_an_updater_beside_quix_streams(settings: Settings, tmp_path: Path, how: str, at_least: float) -> None:
    """FBK-8: beside the same decode, join, group, add up and commit; and, as "core", beside far less work than that."""
    if not RIVAL_PYTHON.exists():
        pytest.skip("no .venv-bench: `make bench-feedback` makes it")
    updater = [
        max(rates) for rates in zip(*(updater_rate(settings, tmp_path / str(run)) for run in range(2)), strict=True)
    ]
    verdicts = EVENTS - EVENTS // PER_QUERY
    place = (
        settings.kafka.bootstrap,
        settings.feedback.topic,
        str(EVENTS),
        str(verdicts),
        str(tmp_path / "rival"),
        how,
    )
    done = subprocess.run([RIVAL_PYTHON, RIVAL, *place], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    took = json.loads(done.stdout)
    ratios = []
    for per, seconds, ours in zip(("second", "second of a core"), took.values(), updater, strict=True):
        ratios.append(ours * seconds / EVENTS)
        told(f"events per {per}: quix streams, {how}, {EVENTS / seconds:,.0f}, updater {ours:,.0f}: {ratios[-1]:.1f}")
    assert ratios[0] >= at_least


def produced(settings: Settings) -> int:
    producer = KafkaProducer(bootstrap_servers=settings.kafka.bootstrap, acks="all", linger_ms=20, batch_size=262_144)
    total, now = 0, round(time.time() * 1000)
    for key, value in events_of(EVENTS, ts=now):
        producer.send(settings.feedback.topic, key=key, value=value, timestamp_ms=now)
        total += len(value)
    producer.close()
    return total // EVENTS


Rate = tuple[float, float]
"""Events per second by the clock, and per second that a core was kept busy, by all threads of this process."""


def bare_rate(settings: Settings) -> Rate:
    consumer = KafkaConsumer(
        bootstrap_servers=settings.kafka.bootstrap,
        group_id=None,
        enable_auto_commit=False,
        max_poll_records=settings.feedback.poll_records,
        max_partition_fetch_bytes=FETCH_BYTES,
    )
    places = [TopicPartition(settings.feedback.topic, one) for one in range(settings.feedback.partitions)]
    consumer.assign(places)
    for place in places:
        consumer.seek(place, 0)
    started, found = (time.perf_counter(), time.process_time()), 0
    while found < EVENTS:
        found += sum(map(len, consumer.poll(timeout_ms=200).values()))
    rate = rate_since(*started)
    consumer.close()
    return rate


def rate_since(clock: float, core: float) -> Rate:
    return EVENTS / (time.perf_counter() - clock), EVENTS / (time.process_time() - core)


def updater_rate(settings: Settings, store: Path) -> Rate:
    task = Task(store, settings.kafka, settings.feedback, unreachable_s=None)
    updater = open_updater(task, range(settings.feedback.partitions))
    started, found = (time.perf_counter(), time.process_time()), 0
    while found < EVENTS:
        found += updater.step(time.monotonic())
    updater.publish()  # a run may end before a snapshot is due
    rate = rate_since(*started)
    reports = [standing.report for standing in updater.progress()]
    updater.close()
    assert (sum(report.applied for report in reports), all(report.balanced for report in reports)) == (EVENTS, True)
    return rate
