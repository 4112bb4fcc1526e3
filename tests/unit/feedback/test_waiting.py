"""FBK-2: services start before their broker, and go on while it is away."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.support.feedback_publisher import MemoryPublisher
from tests.unit.feedback.test_producer import a_query, an_answer
from weft.domain.errors import BrokerUnavailableError, ConfigurationError, InvalidEventError
from weft.feedback.events.buffered_publisher import BufferedPublisher
from weft.feedback.events.producer import FeedbackProducer, Publisher

RECORD = (b"s1", b"12345678")
BYTES = sum(map(len, RECORD))


class Broker:
    """Away until told otherwise; answers with one and the same topic."""

    def __init__(self, topic: MemoryPublisher | None = None) -> None:
        self.topic = topic or MemoryPublisher()
        self.error: Exception | None = BrokerUnavailableError("is the broker up?")

    def opened(self) -> Publisher:
        if self.error is not None:
            raise self.error
        return self.topic


def waiting_for(broker: Broker, *, records: int = 100, patience_s: float = 0.05) -> BufferedPublisher:
    return BufferedPublisher(
        broker.opened, most_bytes=records * BYTES, retry_s=0.005, patience_s=patience_s, broker="kafka:9092"
    )


def awaited(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(2_000):
        if condition():
            return
        pause.wait(0.005)
    pytest.fail("not within 10 s")


def test_what_is_said_before_there_is_a_broker_is_sent_in_its_order() -> None:
    """FBK-2: a search tells what it showed, and does not wait."""
    broker = Broker()
    publisher = waiting_for(broker, patience_s=10.0)
    said = [(b"s1", b"%d" % number) for number in range(5)]
    for record in said:
        publisher.send(*record)
    assert publisher.waiting == 5
    broker.error = None
    publisher.flush()
    publisher.send(b"s1", b"at once")
    assert broker.topic.sent == [*said, (b"s1", b"at once")]
    assert publisher.waiting == 0
    publisher.close()


def test_memory_is_bounded_and_what_is_beyond_is_counted() -> None:
    """FBK-2: what cannot wait any more is refused to whoever sends it, and counted where a search does."""
    publisher = waiting_for(Broker(), records=2)
    publisher.send(*RECORD)
    publisher.send(*RECORD)
    with pytest.raises(BrokerUnavailableError, match=r"2 events wait for it in 20 bytes, and no more than 20 may"):
        publisher.send(*RECORD)
    producer = FeedbackProducer(publisher)
    producer.emit(an_answer(a_query()))
    assert (producer.lost, producer.waiting) == (1, 2)
    with pytest.raises(BrokerUnavailableError, match=r"2 events wait for kafka:9092.*is the broker up\?"):
        producer.flush()
    assert producer.close() == 3
    assert (producer.lost, producer.waiting) == (3, 0)


def test_what_a_client_has_and_no_broker_acknowledged_waits_too() -> None:
    """OPS-10a: it is lost where the client gives it up, and closing says so without raising."""
    broker = Broker(Forgetful())
    broker.error = None
    publisher = waiting_for(broker, patience_s=10.0)
    for _ in range(3):
        publisher.send(*RECORD)
    awaited(lambda: len(broker.topic.sent) == 3)
    assert (publisher.waiting, publisher.lost) == (3, 0)
    assert publisher.close() == 3
    assert (publisher.waiting, publisher.lost) == (0, 3)
    with pytest.raises(BrokerUnavailableError, match="expected an open producer for kafka:9092, found it closed"):
        publisher.send(*RECORD)


def test_a_refusal_ends_the_wait_for_a_broker_at_once() -> None:
    """OPS-15: what waits is lost by name, not by patience."""
    broker = Broker()
    publisher = waiting_for(broker, patience_s=1e6)
    publisher.send(*RECORD)
    broker.error = ConfigurationError("wrong password")
    with pytest.raises(ConfigurationError, match="wrong password"):
        publisher.flush()
    assert publisher.close() == 1


def test_nothing_to_say_is_no_reason_to_wait_in_the_end() -> None:
    """FBK-2."""
    publisher = waiting_for(Broker(), patience_s=1e6)
    publisher.flush()
    publisher.close()


def test_a_broker_that_goes_away_finds_what_was_said_meanwhile() -> None:
    """FBK-2: so does a topic that the updaters have not made yet."""
    broker = Broker()
    broker.error = None
    publisher = waiting_for(broker, patience_s=10.0)
    publisher.send(b"s1", b"before")
    publisher.flush()
    broker.topic.available = False
    publisher.send(b"s1", b"first")
    publisher.send(b"s1", b"second")
    assert publisher.waiting == 2
    broker.topic.available = True
    publisher.flush()
    assert broker.topic.values == [b"before", b"first", b"second"]


def test_a_broker_that_refuses_is_no_broker_that_is_away() -> None:
    """FBK-11: a wrong password is told to whoever sends; whatever the client raises for a wrong setting is, too."""
    for error in (ConfigurationError("wrong password"), ValueError("no such mechanism")):
        broker = Broker()
        broker.error = error
        publisher = waiting_for(broker)

        def is_told(publisher: BufferedPublisher = publisher) -> bool:
            try:
                publisher.send(*RECORD)
            except ConfigurationError:
                return True
            return False

        awaited(is_told)


class Forgetful(MemoryPublisher):
    """Takes everything, and hears of nothing."""

    @property
    def waiting(self) -> int:
        return len(self.sent) - self.lost

    def flush(self) -> None:
        raise BrokerUnavailableError("nothing was acknowledged")

    def close(self) -> int:
        self.lost = len(self.sent)
        return self.lost


class Choosy(MemoryPublisher):
    """Takes no record of more than a byte."""

    def send(self, key: bytes, value: bytes) -> None:
        if len(value) > 1:
            raise InvalidEventError("oversized", "too much for a request")
        super().send(key, value)


def test_one_that_no_broker_takes_holds_up_no_other() -> None:
    """FBK-3."""
    broker = Broker(Choosy())
    publisher = waiting_for(broker, patience_s=10.0)
    for value in (b"a", b"too much", b"b"):
        publisher.send(b"s1", value)
    broker.error = None
    with pytest.raises(BrokerUnavailableError, match="0 events wait for kafka:9092, and 1 were refused"):
        publisher.flush()
    assert broker.topic.values == [b"a", b"b"]
    assert publisher.close() == 1
