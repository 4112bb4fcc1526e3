"""Simulated users at work: what they do with an answer, as events on the topic (EVA-6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pipelines.domain.ranking import Query
from pipelines.evaluation.simulation import Reaction
from pipelines.feedback.producer import FeedbackProducer
from pipelines.settings import Settings


@contextmanager
def connected(settings: Settings) -> Iterator[FeedbackProducer]:
    """A producer for the configured broker, closed in the end."""
    producer = FeedbackProducer.connect(settings.kafka, settings.feedback)
    try:
        yield producer
    finally:
        producer.close()


def tell(producer: FeedbackProducer, query: Query, reactions: Iterable[Reaction]) -> None:
    """Say what a user did about the results of a query."""
    for reaction in reactions:
        if reaction.satisfaction is None:
            producer.selection(query, reaction.content_hash, reaction.rank)
        else:
            producer.explicit(query, reaction.satisfaction, content_hash=reaction.content_hash)
