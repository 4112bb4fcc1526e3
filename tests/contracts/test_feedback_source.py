"""One behaviour of every log an updater may read: the fake in memory, and Kafka's protocol."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.support.feedback_source import FakeLog, FakeSource
from weft.domain.errors import BrokerUnavailableError, WrongLogError
from weft.feedback.log import FeedbackSource
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.log import Record
from weft.runtime.kafka.reader import KafkaSource
from weft.runtime.kafka.writer import KafkaPublisher, create_topic
from weft.runtime.settings import KafkaSettings
from weft.settings import load_settings

VALUES = [b"event %d" % number for number in range(30)]
KEY = b"one session"


@dataclass
class Log:
    """A topic of two partitions with `VALUES` in one of them, and a way to read it."""

    source: FeedbackSource
    partition: int
    another: Callable[[], FeedbackSource]


def fake(_: pytest.FixtureRequest) -> Iterator[Log]:
    log = FakeLog([[], [Record(1, offset, 7, KEY, value) for offset, value in enumerate(VALUES)]])
    yield Log(FakeSource(log), 1, lambda: FakeSource(FakeLog([[], []])))


def embedded(_: pytest.FixtureRequest) -> Iterator[Log]:
    with EmbeddedBroker() as broker:
        yield from kafka(broker.bootstrap)


def apache(request: pytest.FixtureRequest) -> Iterator[Log]:
    yield from kafka(request.getfixturevalue("apache_kafka").bootstrap)


def kafka(bootstrap: str) -> Iterator[Log]:
    settings = kafka_at(bootstrap)
    events, others = f"events-{uuid.uuid4().hex}", f"others-{uuid.uuid4().hex}"
    for topic in (events, others):
        create_topic(settings, topic, partitions=2, replication=1)
    publisher = KafkaPublisher(settings, events)
    for value in VALUES:
        publisher.send(KEY, value)
    publisher.flush()
    publisher.close()
    source = KafkaSource(settings, events, max_poll_records=100)
    source.assign([0, 1])
    for partition in (0, 1):
        source.seek(partition, 0)
    (partition,) = polled(source, 1)
    opened: list[KafkaSource] = []

    def another() -> FeedbackSource:
        opened.append(KafkaSource(settings, others, max_poll_records=100))
        return opened[-1]

    yield Log(source, partition, another)
    for each in (source, *opened):
        each.close()


def kafka_at(bootstrap: str, **changes: object) -> KafkaSettings:
    return load_settings([], [f"kafka.bootstrap={bootstrap}"], environment={}).kafka.model_copy(update=changes)


@pytest.fixture(params=[fake, embedded, apache], ids=["fake", "embedded", "apache"], scope="module")
def log(request: pytest.FixtureRequest) -> Iterator[Log]:
    yield from request.param(request)


def polled(source: FeedbackSource, at_least: int, max_records: int = 100) -> dict[int, list[Record]]:
    """Poll until so many records came: a fetch may bring fewer than there are."""
    found: dict[int, list[Record]] = {}
    while sum(map(len, found.values())) < at_least:
        for partition, records in source.poll(max_records, 0.2).items():
            found.setdefault(partition, []).extend(records)
    return found


def sought(log: Log, offset: int) -> FeedbackSource:
    log.source.assign([log.partition])
    log.source.seek(log.partition, offset)
    return log.source


def test_records_come_in_order_from_where_was_sought(log: Log) -> None:
    """FBK-4: bytes as they are, with partition, offset and key."""
    found = polled(sought(log, 10), 20)[log.partition]
    assert [(r.partition, r.offset, r.key, r.value) for r in found] == [
        (log.partition, offset, KEY, VALUES[offset]) for offset in range(10, 30)
    ]


def test_a_poll_brings_at_most_what_was_asked_for(log: Log) -> None:
    """FBK-4: and the next one reads on without a gap."""
    source, sizes, offsets = sought(log, 0), [], []
    while len(offsets) < 30:
        for records in source.poll(7, 0.2).values():
            sizes.append(len(records))
            offsets += [record.offset for record in records]
    assert max(sizes) == 7
    assert offsets == list(range(30))


def test_the_end_is_known_after_a_fetch(log: Log) -> None:
    """FBK-4: lag is high watermark minus next offset."""
    source = sought(log, 29)
    polled(source, 1)
    assert source.highwater(log.partition) == 30


def test_the_end_is_reached_when_all_was_read(log: Log) -> None:
    """FBK-14: and is not known any more after a seek."""
    source = sought(log, 20)
    assert source.reached(log.partition) is None
    polled(source, 10)
    while source.reached(log.partition) is None:
        assert source.poll(10, 0.2) == {}
    assert source.reached(log.partition) == 30
    source.seek(log.partition, 5)
    assert source.reached(log.partition) is None


def test_offsets_with_records_are_explained_by_nothing(log: Log) -> None:
    """FBK-14: a record that was not delivered is still to come, whatever lies around it."""
    assert log.source.skipped(log.partition, 3, 9) == 0


def test_nothing_fails_over_showing_how_far_was_read(log: Log) -> None:
    """FBK-4: group offsets are for tools alone."""
    source = sought(log, 0)
    source.note_offsets({log.partition: 12})
    assert len(polled(source, 30)[log.partition]) == 30


def test_seeking_beyond_the_end_shows_where_the_end_is(log: Log) -> None:
    """FBK-5: a broker says that there is no such offset, or the high watermark does."""
    source = sought(log, 1000)
    with contextlib.suppress(WrongLogError):
        while source.highwater(log.partition) is None:
            assert source.poll(10, 0.2) == {}
        assert source.highwater(log.partition) == 30


def test_a_log_has_an_identity(log: Log) -> None:
    """FBK-5: the same one again when asked again, another for another topic."""
    first, again, other = log.source.facts(), log.source.facts(), log.another().facts()
    assert first == again
    assert (first.partitions, other.partitions) == (2, 2)
    assert first.topic_id != other.topic_id
    assert log.source.log_start(log.partition) == 0


def test_a_silent_broker_is_an_error_of_our_own() -> None:
    """FBK-5: what a later try may cure is BrokerUnavailableError, whoever noticed."""
    with EmbeddedBroker() as broker:
        settings = kafka_at(broker.bootstrap, connect_timeout_ms=1000, request_timeout_ms=1000)
        create_topic(settings, "events", partitions=1, replication=1)
        source = KafkaSource(settings, "events", max_poll_records=10)
    with pytest.raises(BrokerUnavailableError):
        source.facts()
    source.close()
    with pytest.raises(BrokerUnavailableError, match="is the broker up"):
        KafkaSource(settings, "events", max_poll_records=10).facts()


def test_a_missing_topic_is_not_made_by_looking() -> None:
    """FBK-5: a look would make it with the broker's default partitions."""
    with EmbeddedBroker() as broker:
        settings = kafka_at(broker.bootstrap)
        for _ in range(2):
            source = KafkaSource(settings, "absent", max_poll_records=10)
            with pytest.raises(BrokerUnavailableError, match="absent"):
                source.facts()
            source.close()


def test_making_a_topic_again_leaves_it_as_it_is() -> None:
    """FBK-5: the partition count of an existing topic is never touched."""
    with EmbeddedBroker() as broker:
        settings = kafka_at(broker.bootstrap)
        for partitions in (2, 5):
            create_topic(settings, "events", partitions=partitions, replication=1)
        source = KafkaSource(settings, "events", max_poll_records=10)
        assert source.facts().partitions == 2
        source.close()


def test_a_poll_waits_for_records_although_it_is_at_the_end() -> None:
    """FBK-4: who stops at the first empty poll has read what was there."""
    with EmbeddedBroker() as broker:
        settings = kafka_at(broker.bootstrap)
        create_topic(settings, "events", partitions=1, replication=1)
        source = KafkaSource(settings, "events", max_poll_records=10)
        source.assign([0])
        source.seek(0, 0)
        publisher = KafkaPublisher(settings, "events")
        later = threading.Timer(1.0, publisher.send, (KEY, VALUES[0]))
        later.start()
        assert [record.value for record in source.poll(10, 60.0)[0]] == [VALUES[0]]
        later.join()
        publisher.close()
        source.close()
