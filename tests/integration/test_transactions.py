"""FBK-14: what a log never delivers is neither a hole nor lag, on both brokers; an open transaction is named."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.feedback_events import LESSON, review
from tests.support.places import Place
from weft.app.producer import acknowledged_producer
from weft.cli.commands import update
from weft.domain.lesson import lesson_session
from weft.feedback.events.codec import encode
from weft.feedback.run.actors import Task, open_updater
from weft.feedback.run.updater import PartitionProgress
from weft.runtime.clock import system_clock
from weft.settings import Settings, load_settings

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
}


@pytest.fixture
def settings(place: Place, tmp_path: Path) -> Settings:
    return settings_at(place.bootstrap, tmp_path / "store")


def settings_at(bootstrap: str, store: Path, *more: str, **topic: str) -> Settings:
    """A store and a topic of its own, of one partition."""
    store.mkdir()
    name = f"events-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, 1, 1, config=topic)]).values():
        made.result()
    assignments = [f"kafka.bootstrap={bootstrap}", f"storage.root={store}", f"feedback.topic={name}", *more]
    return load_settings([], [*assignments, f"kafka.group=of-{name}"], environment={})


def events(count: int) -> list[bytes]:
    now = round(system_clock() * 1000)
    return [encode(review(0.5, good=True, event_id=uuid.uuid4().hex, ts=now)) for _ in range(count)]


def transactional(settings: Settings) -> Producer:
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    return producer


def send(producer: Producer, settings: Settings, values: Sequence[bytes]) -> None:
    for value in values:
        producer.produce(settings.feedback.topic, value, b"session")
    producer.flush()


def committed(producer: Producer, settings: Settings, values: Sequence[bytes]) -> None:
    producer.begin_transaction()
    send(producer, settings, values)
    producer.commit_transaction(30)


def aborted(producer: Producer, settings: Settings, values: Sequence[bytes]) -> None:
    producer.begin_transaction()
    send(producer, settings, values)
    producer.abort_transaction(30)


def caught_up(settings: Settings) -> PartitionProgress:
    (progress,) = update.run(settings, local=True, until_caught_up=True)
    assert progress.report.balanced
    return progress


def test_control_records_at_the_end_of_a_log_are_no_lag(settings: Settings) -> None:
    """FBK-14: a job that ends by itself ends, with everything read; a marker is skipped, and nothing is lost."""
    committed(transactional(settings), settings, events(3))
    progress = caught_up(settings)
    report = progress.report
    assert (progress.lag, report.applied, report.skipped, report.holes) == (0, 3, 1, 0)
    assert report.next_offset == 4


def test_reading_goes_on_behind_a_marker_in_a_later_run(settings: Settings) -> None:
    """FBK-14, ARC-3: the offset behind a marker is kept with the state."""
    producer = transactional(settings)
    counts = []
    for _ in range(3):
        committed(producer, settings, events(2))
        report = caught_up(settings).report
        counts.append((report.applied, report.skipped, report.holes, report.next_offset))
    assert counts == [(2, 1, 0, 3), (4, 2, 0, 6), (6, 3, 0, 9)]


def test_small_transactions_are_read_without_asking_twice(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """FBK-14: a hundred transactions of one event each: no hole, and no offset is sought again."""
    producer = transactional(settings)
    for value in events(100):
        committed(producer, settings, [value])
    sought: list[int] = []
    updater = open_updater(task(settings), [0])
    seek = updater._source.seek
    monkeypatch.setattr(
        updater._source, "seek", lambda partition, offset: (sought.append(offset), seek(partition, offset))
    )
    until(lambda: updater.step(time.monotonic()) == 0 and updater.caught_up)
    (progress,) = updater.progress()
    updater.close()
    assert (progress.report.applied, progress.report.skipped, progress.report.holes) == (100, 100, 0)
    assert sought == []


def test_aborted_records_are_skipped(apache_kafka: object, tmp_path: Path) -> None:
    """FBK-14: on Apache Kafka nobody gets them; those between others, and those at the end of the log."""
    settings = settings_at(apache_kafka.bootstrap, tmp_path / "store")  # type: ignore[attr-defined]
    producer = transactional(settings)
    for values in (2, 3):
        aborted(producer, settings, events(4))
        committed(producer, settings, events(values))
    aborted(producer, settings, events(5))
    progress = caught_up(settings)
    report = progress.report
    assert (progress.lag, report.applied, report.holes) == (0, 5, 0)
    assert report.skipped == 4 + 1 + 1 + 4 + 1 + 1 + 5 + 1


def test_aborted_records_are_applied_where_the_setting_says_so(apache_kafka: object, tmp_path: Path) -> None:
    """FBK-14: `kafka.isolation`."""
    bootstrap = apache_kafka.bootstrap  # type: ignore[attr-defined]
    settings = settings_at(bootstrap, tmp_path / "store", "kafka.isolation=read_uncommitted")
    aborted(transactional(settings), settings, events(4))
    report = caught_up(settings).report
    assert (report.applied, report.skipped, report.holes) == (4, 1, 0)


def test_compacted_records_are_skipped(apache_kafka: object, tmp_path: Path) -> None:
    """FBK-14: what compaction took was not lost by the broker."""
    bootstrap = apache_kafka.bootstrap  # type: ignore[attr-defined]
    settings = settings_at(bootstrap, tmp_path / "store", **COMPACTED)
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in events(20):  # all with one key: the last one stays
        send(producer, settings, [value])

    def compacted() -> bool:
        time.sleep(0.2)
        producer.produce(settings.feedback.topic, events(1)[0], b"another")  # the active segment is never cleaned
        producer.flush()
        return len(read_back(settings)) < 10

    until(compacted)
    left = len(read_back(settings))
    report = caught_up(settings).report
    assert (report.consumed, report.holes) == (left, 0)
    assert report.skipped == report.next_offset - left > 10


def test_a_forgotten_lesson_leaves_a_topic_that_is_compacted(apache_kafka: object, tmp_path: Path) -> None:
    """LES-14: what was said of it under its own key goes for the event that forgets it."""
    bootstrap = apache_kafka.bootstrap  # type: ignore[attr-defined]
    settings = settings_at(bootstrap, tmp_path / "store", **COMPACTED)
    with acknowledged_producer(settings) as producer:
        producer.lesson_added(lesson_session(LESSON.id), LESSON, principal="ada")
        producer.lesson_forgotten(LESSON.id, partitions=1, principal="eve")
    sender = Producer({"bootstrap.servers": bootstrap})

    def gone() -> bool:
        time.sleep(0.2)
        send(sender, settings, events(1))  # the active segment is never cleaned
        left = b"".join(read_back(settings).values())
        return LESSON.content.encode() not in left and b'"forget"' in left

    until(gone)


def test_an_open_transaction_is_named_with_its_age(
    settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FBK-14: what lies behind it is lag until it ends."""
    monkeypatch.setattr("weft.feedback.run.updater.OPEN_TRANSACTION_S", 0.0)
    producer = transactional(settings)
    producer.begin_transaction()
    send(producer, settings, events(1))
    send(Producer({"bootstrap.servers": settings.kafka.bootstrap}), settings, events(2))
    updater = open_updater(task(settings), [0])

    def named() -> bool:
        updater.step(time.monotonic())
        return "is open for" in caplog.text

    until(named)
    (progress,) = updater.progress()
    assert progress.lag == 3
    assert progress.open_transaction_s is not None
    producer.commit_transaction(30)
    until(lambda: updater.step(time.monotonic()) == 0 and updater.caught_up)
    (progress,) = updater.progress()
    updater.close()
    assert (progress.report.applied, progress.open_transaction_s) == (3, None)


def test_a_job_that_ends_waits_for_a_transaction_as_for_a_silent_broker(settings: Settings) -> None:
    """FBK-14: then it ends, and says how much is left."""
    committed(transactional(settings), settings, events(1))
    producer = transactional(settings)
    producer.begin_transaction()
    send(producer, settings, events(2))
    impatient = load_settings(
        [],
        [
            f"kafka.bootstrap={settings.kafka.bootstrap}",
            f"storage.root={settings.storage.root}",
            f"feedback.topic={settings.feedback.topic}",
            "feedback.unreachable_s=2.0",
        ],
        environment={},
    )
    (progress,) = update.run(impatient, local=True, until_caught_up=True)
    producer.abort_transaction(30)
    assert (progress.report.applied, progress.lag) == (1, 2)


def test_a_transaction_that_ends_meanwhile_is_read_by_a_job_that_ends_by_itself(settings: Settings) -> None:
    """FBK-14: it waits until nothing is held back any more."""
    producer = transactional(settings)
    producer.begin_transaction()
    send(producer, settings, events(2))
    waiting = threading.Event()

    def commit() -> None:
        waiting.wait(60)
        producer.commit_transaction(30)

    thread = threading.Thread(target=commit)
    thread.start()

    def note(standings: Sequence[PartitionProgress]) -> None:
        if any(one.open_transaction_s is not None for one in standings):
            waiting.set()

    (progress,) = update.run(settings, local=True, until_caught_up=True, on_progress=note)
    thread.join()
    assert (progress.report.applied, progress.lag) == (2, 0)


def test_tools_for_groups_show_how_far_was_read(settings: Settings) -> None:
    """FBK-4: group offsets are committed after the state, best effort."""
    committed(transactional(settings), settings, events(3))
    caught_up(settings)
    assert group_offset(settings) == 4


def task(settings: Settings, *more: str) -> Task:
    changed = load_settings([], [f"feedback.topic={settings.feedback.topic}", *more], environment={}).feedback
    return Task(Path(settings.storage.root), settings.kafka, changed, unreachable_s=30.0)


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, "it never came about"


def read_back(settings: Settings) -> dict[int, bytes]:
    """What the topic holds, by offset."""
    from confluent_kafka import Consumer, KafkaError

    consumer = Consumer(
        {"bootstrap.servers": settings.kafka.bootstrap, "group.id": "offsets", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(settings.feedback.topic, 0, 0)])
    values: dict[int, bytes] = {}
    while True:
        message = consumer.poll(10)
        if message is None or (message.error() and message.error().code() == KafkaError._PARTITION_EOF):
            consumer.close()
            return values
        values[message.offset()] = message.value()


def group_offset(settings: Settings) -> int:
    admin = AdminClient({"bootstrap.servers": settings.kafka.bootstrap})
    group = ConsumerGroupTopicPartitions(settings.kafka.group)
    (answer,) = admin.list_consumer_group_offsets([group]).values()
    (place,) = answer.result().topic_partitions
    return int(place.offset)
