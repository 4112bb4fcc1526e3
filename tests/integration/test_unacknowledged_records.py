"""OPS-10a, FBK-2: what was sent is acknowledged or reported lost, exactly, on Apache Kafka."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.secured_kafka import PASSWORD, Permission, SecuredKafka
from weft.cli.main import main
from weft.domain.errors import BrokerUnavailableError, ConfigurationError, InvalidEventError
from weft.feedback.events.producer import FeedbackProducer
from weft.runtime.kafka.reader import KafkaSource
from weft.runtime.kafka.writer import KafkaPublisher
from weft.settings import Settings

# A record that nobody acknowledges is given up soon; nothing here depends on how soon.
SOON = {"request_timeout_ms": 3000}


@pytest.fixture
def topic(secured_kafka: SecuredKafka, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic of the test's own, that takes records of 2,000 bytes, and that ada may write and read."""
    name = request.node.name.replace("[", ".").replace("]", "")
    secured_kafka.make_topic(name, config={"max.message.bytes": "2000"})
    secured_kafka.permit(*may(name))
    yield name
    secured_kafka.withdraw("User:ada")


def may(topic: str) -> list[Permission]:
    on_topic = [Permission("User:ada", operation, "topic", topic) for operation in ("Read", "Write")]
    return [*on_topic, Permission("User:ada", "Read", "group", "weft")]


def settings_for(broker: SecuredKafka, topic: str, **kafka: int) -> Settings:
    return broker.by_password("ada", f"feedback.topic={topic}", **kafka)


def say(producer: FeedbackProducer, times: int) -> None:
    for _ in range(times):
        producer.session("s1", "start", principal="ada")


@pytest.mark.timeout(120)
def test_a_broker_killed_before_the_end_costs_what_it_did_not_acknowledge(
    secured_kafka: SecuredKafka, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """OPS-10a: closing does not raise, counts and logs; what was acknowledged is in the log."""
    settings = settings_for(secured_kafka, topic, **SOON)
    service = FeedbackProducer.connect(settings.kafka, settings.feedback)
    job = FeedbackProducer.connect_now(settings.kafka, settings.feedback)
    for producer in (service, job):
        say(producer, 5)
        producer.flush()
        assert (producer.waiting, producer.lost) == (0, 0)
    secured_kafka.kafka.kill()
    try:
        for producer, more in ((service, 3), (job, 4)):
            say(producer, more)
            assert producer.waiting == more
        with pytest.raises(BrokerUnavailableError):
            job.flush()
        assert (service.close(), job.close()) == (3, 4)
        assert [(producer.waiting, producer.lost) for producer in (service, job)] == [(0, 3), (0, 4)]
        assert "4 records were not acknowledged, and are lost" in caplog.text
    finally:
        secured_kafka.kafka.start()
    assert len(secured_kafka.log_of(topic)) == 10


@pytest.mark.timeout(120)
def test_a_topic_that_is_deleted_is_named(secured_kafka: SecuredKafka, topic: str) -> None:
    """OPS-10a, OPS-15: the broker is up, and nobody asks whether it is."""
    publisher = KafkaPublisher(settings_for(secured_kafka, topic, **SOON).kafka, topic)
    publisher.send(b"s1", b"before")
    publisher.flush()
    secured_kafka.drop_topics(topic)
    publisher.send(b"s1", b"behind")
    with pytest.raises(BrokerUnavailableError, match="expected the topic, found none"):
        publisher.flush()
    assert publisher.close() == 1


@pytest.mark.timeout(120)
def test_a_record_too_large_for_the_topic_is_lost_by_name_and_holds_up_no_other(
    secured_kafka: SecuredKafka, topic: str
) -> None:
    """OPS-10a, FBK-3: kafka-python's client sends nothing more after it, so another one does."""
    publisher = KafkaPublisher(settings_for(secured_kafka, topic).kafka, topic)
    publisher.send(b"s1", b"before")
    publisher.flush()
    publisher.send(b"s1", b"x" * 5_000)
    with pytest.raises(ConfigurationError, match=f"raise max.message.bytes of {topic}"):
        publisher.flush()
    publisher.send(b"s1", b"behind")
    publisher.flush()
    with pytest.raises(InvalidEventError, match="oversized"):
        publisher.send(b"s1", b"x" * 5_000_000)  # for any request: whoever sends it is told
    assert (publisher.waiting, publisher.lost, publisher.close()) == (0, 1, 1)
    assert secured_kafka.log_of(topic) == [b"before", b"behind"]


@pytest.mark.timeout(120)
def test_a_permission_that_is_withdrawn_is_named_and_one_that_comes_back_is_used(
    secured_kafka: SecuredKafka, topic: str
) -> None:
    """OPS-10a, FBK-11: no patience is spent on it."""
    publisher = KafkaPublisher(settings_for(secured_kafka, topic).kafka, topic)
    publisher.send(b"s1", b"before")
    publisher.flush()
    secured_kafka.withdraw("User:ada")
    publisher.send(b"s1", b"lost")
    with pytest.raises(ConfigurationError, match=f"permission Write on topic {topic}"):
        publisher.flush()
    with pytest.raises(ConfigurationError, match=f"permission Write on topic {topic}"):
        publisher.send(b"s1", b"refused")  # so it is not lost: whoever sends it is told
    secured_kafka.permit(*may(topic))
    publisher.send(b"s1", b"behind")
    publisher.flush()
    assert publisher.close() == 1
    assert secured_kafka.log_of(topic) == [b"before", b"behind"]


def poll_on(source: KafkaSource) -> None:
    while True:
        source.poll(10, 0.1)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_password_that_is_changed_is_named_once_a_connection_is_made_anew(
    secured_kafka: SecuredKafka, topic: str
) -> None:
    """FBK-11, OPS-15: by the producer and by the reader, which otherwise try again for ever."""
    settings = settings_for(secured_kafka, topic)
    publisher = KafkaPublisher(settings.kafka, topic)
    publisher.send(b"s1", b"before")
    publisher.flush()
    with closing(KafkaSource(settings.kafka, topic, max_poll_records=10)) as source:
        source.facts()
        source.assign([0])
        source.seek(0, source.log_start(0))
        secured_kafka.change_password("ada", "another")
        secured_kafka.kafka.kill()
        secured_kafka.kafka.start()
        try:
            publisher.send(b"s1", b"lost")
            with pytest.raises(ConfigurationError, match="user 'ada' to be let in"):
                poll_on(source)
            with pytest.raises(ConfigurationError, match="user 'ada' to be let in"):
                publisher.flush()
            assert publisher.close() == 1
        finally:
            secured_kafka.change_password("ada", PASSWORD)
    assert secured_kafka.log_of(topic) == [b"before"]


@pytest.mark.timeout(120)
def test_a_command_that_was_not_acknowledged_fails(
    secured_kafka: SecuredKafka, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-10a: exit code 1 and the reason; nothing says that it was sent."""
    asked = {"user_query": "how", "query_id": "q1", "client_id": "c" * 100, "timestamp": round(time.time() * 1000)}
    documents = tmp_path / "ubi.ndjson"
    documents.write_text(json.dumps({**asked, "query_response_hit_ids": [f"{number:064x}" for number in range(90)]}))
    conf = tmp_path / "mine.yaml"
    conf.write_text(json.dumps({"feedback": {"topic": topic}}))
    assert main(["ubi", str(documents), "--conf", str(conf), "--bootstrap", secured_kafka.kafka.at("OPEN")]) == 78
    told = capsys.readouterr()
    assert f"raise max.message.bytes of {topic}" in told.err
    assert "sent" not in told.out
