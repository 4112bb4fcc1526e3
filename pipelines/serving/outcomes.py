"""Feedback read from the topic and kept beside the logged queries that it is about (EVA-3)."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pipelines.evaluation.queries.outcomes import POLL_RECORDS, Collected, Outcomes
from pipelines.runtime.clock import system_clock
from pipelines.settings import Settings


def collected(root: Path, settings: Settings) -> Collected:
    """Read new feedback from the configured topic.

    Raises:
        BrokerUnavailableError: The broker does not answer.
    """
    from pipelines.runtime.kafka.reader import KafkaSource  # noqa: PLC0415  librdkafka is loaded by who needs it

    most = settings.feedback.limits.event_bytes
    with closing(KafkaSource(settings.kafka, settings.feedback.topic, max_poll_records=POLL_RECORDS)) as source:
        return Outcomes(root, settings.query_log, max_bytes=most, now=system_clock()).collect(source)
