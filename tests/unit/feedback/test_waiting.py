"""FBK-2: services start before their broker, and go on while it is away."""

from __future__ import annotations

import pytest

from tests.unit.feedback.test_producer import a_query, an_answer
from weft.domain.errors import BrokerUnavailableError, ConfigurationError
from weft.feedback.events.producer import FeedbackProducer
from weft.runtime.kafka import writer
from weft.runtime.kafka.writer import KafkaPublisher
from weft.runtime.settings import KafkaSettings
from weft.settings import load_settings

RECORD = (b"s1", bytes(510))
NOWHERE = "127.0.0.1:1"


def nowhere(*assignments: str) -> KafkaSettings:
    times = ["kafka.connect_timeout_ms=300", "kafka.send_block_ms=50"]
    return load_settings([], [f"kafka.bootstrap={NOWHERE}", *times, *assignments], environment={}).kafka


def test_memory_is_bounded_and_what_is_beyond_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """FBK-2: what cannot wait any more is refused to whoever sends it, and counted where a search does."""
    monkeypatch.setattr(writer, "_WAITING_KIB", 1)
    publisher = KafkaPublisher(nowhere(), "events", patient=True)
    publisher.send(*RECORD)
    publisher.send(*RECORD)
    with pytest.raises(BrokerUnavailableError, match="2 events wait, as many as may"):
        publisher.send(*RECORD)
    producer = FeedbackProducer(publisher)
    producer.emit(an_answer(a_query()))
    assert (producer.lost, producer.waiting) == (1, 2)
    with pytest.raises(BrokerUnavailableError, match="0 given up and 2 without an answer"):
        producer.flush()
    assert producer.close() == 3
    assert (producer.lost, producer.waiting) == (3, 0)
    with pytest.raises(BrokerUnavailableError, match="expected an open producer, found it closed"):
        publisher.send(*RECORD)


def test_nothing_to_say_is_no_reason_to_wait_in_the_end() -> None:
    """FBK-2."""
    publisher = KafkaPublisher(nowhere("kafka.connect_timeout_ms=1000000"), "events", patient=True)
    publisher.flush()
    assert publisher.close() == 0


def test_a_setting_that_no_client_takes_is_named() -> None:
    """OPS-15: whoever opens a producer is told, at once."""
    with pytest.raises(ConfigurationError, match=r"kafka\.ssl_cafile: expected a PEM file"):
        KafkaPublisher(nowhere("kafka.security_protocol=SSL", "kafka.ssl_cafile=/no/such/file"), "events", patient=True)
