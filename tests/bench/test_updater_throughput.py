"""FBK-8: what an updater reaches beside a bare kafka-python poll loop, in the same run on the same topic."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from pipelines.feedback.actors import Task, open_updater
from pipelines.feedback.codec import encode
from pipelines.learning.binning import bins_of
from pipelines.runtime.broker import EmbeddedBroker
from pipelines.runtime.kafka import create_topic
from pipelines.settings import Settings, load_settings
from tests.support.feedback_events import HASHES, NOON, impression

EVENTS = 100_000
PER_QUERY = 20


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_updater_beside_a_bare_poll_loop(tmp_path: Path) -> None:
    """FBK-8: decode, validate, dedupe, join, attribute, evidence and durable commit included."""
    with EmbeddedBroker() as broker:
        settings = load_settings([], [f"kafka.bootstrap={broker.bootstrap}"], environment={})
        create_topic(settings.kafka, settings.feedback.topic, partitions=1, replication=1)
        create_topic(settings.kafka, settings.feedback.dead_letter_topic, partitions=1, replication=1)
        size = produced(settings)
        bare = [bare_rate(settings) for _ in range(2)]
        rates = [updater_rate(settings, tmp_path / str(run)) for run in range(2)]
    sys.stderr.write(
        f"{EVENTS} events of {size} bytes on average: bare poll loop {max(bare):,.0f}/s, updater {max(rates):,.0f}/s, "
        f"ratio {max(rates) / max(bare):.2f}\n"
    )
    assert max(rates) > 0


def produced(settings: Settings) -> int:
    producer = KafkaProducer(bootstrap_servers=settings.kafka.bootstrap, acks="all", linger_ms=20, batch_size=262_144)
    total = 0
    for value in values():
        producer.send(settings.feedback.topic, key=b"s1", value=value, timestamp_ms=NOON)
        total += len(value)
    producer.close()
    return total // EVENTS


def values() -> Iterator[bytes]:
    for number in range(EVENTS):
        query = f"q{number // PER_QUERY}"
        if number % PER_QUERY == 0:
            yield encode(impression(query))
        else:
            facts = {"event_id": f"{number:032x}", "ts": NOON, "session_id": "s1", "principal": "ada"}
            verdict = {"type": "explicit", "query_id": query, "signal": 0.5, "content_hash": HASHES[1 + number % 4]}
            yield json.dumps({**facts, **verdict}, separators=(",", ":")).encode()


def bare_rate(settings: Settings) -> float:
    consumer = KafkaConsumer(
        bootstrap_servers=settings.kafka.bootstrap,
        group_id=None,
        enable_auto_commit=False,
        max_poll_records=settings.feedback.poll_records,
        max_partition_fetch_bytes=settings.kafka.fetch_bytes,
    )
    place = TopicPartition(settings.feedback.topic, 0)
    consumer.assign([place])
    consumer.seek(place, 0)
    started, found = time.perf_counter(), 0
    while found < EVENTS:
        found += sum(map(len, consumer.poll(timeout_ms=200).values()))
    seconds = time.perf_counter() - started
    consumer.close()
    return EVENTS / seconds


def updater_rate(settings: Settings, store: Path) -> float:
    bins = bins_of(settings.learning, settings.priors.quality)
    task = Task(store, settings.kafka, settings.feedback, bins, unreachable_s=None)
    updater = open_updater(task, [0])
    started, found = time.perf_counter(), 0
    while found < EVENTS:
        found += updater.step(time.monotonic())
    seconds = time.perf_counter() - started
    (standing,) = updater.progress()
    updater.close()
    assert (standing.report.applied, standing.report.balanced) == (EVENTS, True)
    return EVENTS / seconds
