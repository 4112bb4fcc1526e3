"""Saying something to the feedback topic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from weft.feedback.events.producer import FeedbackProducer
from weft.settings import Settings


@contextmanager
def acknowledged_producer(settings: Settings) -> Iterator[FeedbackProducer]:
    """A producer for who has nothing to do without a broker; what was said is acknowledged when the block is left."""
    # An idempotent producer waits a second for its number at the start; what comes twice counts once by its event's id.
    kafka = settings.kafka.model_copy(update={"idempotent": False})
    with closing(FeedbackProducer.connect_now(kafka, settings.feedback)) as producer:
        yield producer
        producer.flush()
