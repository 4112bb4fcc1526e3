"""FBK-2: a service that starts before its broker."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.support.updater_process import PARTITIONS, whole_log
from weft.feedback.events.codec import decode
from weft.feedback.events.producer import FeedbackProducer
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import create_topic
from weft.settings import load_settings


@pytest.mark.timeout(120)
def test_a_service_starts_before_its_broker_and_loses_nothing() -> None:
    """FBK-2: neither is it held up, nor does it fail; the topic, too, may come later than the broker."""
    with EmbeddedBroker() as gone:
        port = int(gone.bootstrap.rsplit(":", 1)[1])
    settings = load_settings(
        [], [f"kafka.bootstrap={gone.bootstrap}", "kafka.connect_timeout_ms=30000"], environment={}
    )
    producer = FeedbackProducer.connect(settings.kafka, settings.feedback)
    said = [producer.session("s-1", phase, principal="ada") for phase in ("start", "suspend")]
    assert producer.waiting == 2
    with EmbeddedBroker(port=port):
        said.append(producer.session("s-1", "resume", principal="ada"))
        create_topic(settings.kafka, settings.feedback.topic, partitions=PARTITIONS, replication=1)
        producer.flush()
        said.append(producer.session("s-1", "complete", principal="ada"))
        producer.close()
        found = list(chain.from_iterable(whole_log(gone.bootstrap, settings.feedback.topic, 4)))
    assert [decode(value, max_bytes=settings.feedback.limits.event_bytes).event_id for value in found] == said
