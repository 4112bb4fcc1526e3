"""Reading what became of logged queries from the topic of feedback."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from weft.evaluation.queries.outcomes import POLL_RECORDS, Collected, Outcomes
from weft.runtime.clock import system_clock
from weft.settings import Settings


def collected(root: Path, settings: Settings) -> Collected:
    """Read new feedback from the configured topic."""
    # Kafka's clients take .2 s to import: `weft queries list` does without.
    from weft.runtime.kafka.reader import KafkaSource  # noqa: PLC0415

    most = settings.feedback.limits.event_bytes
    with closing(KafkaSource(settings.kafka, settings.feedback.topic, max_poll_records=POLL_RECORDS)) as source:
        return Outcomes(root, settings.query_log, max_bytes=most, now=system_clock()).collect(source)
