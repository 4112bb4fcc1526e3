"""A store whose partitions are fed event by event: what a project's updaters would make of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.feedback_events import RULES, explicit, impression, records, session
from weft.catalog.catalog import Catalog
from weft.domain.events import AnyEvent
from weft.feedback.pipeline import consume
from weft.feedback.publish.snapshot import publish_snapshot
from weft.feedback.run.partitions import partition_folder
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.overlays import PENDING, overlay_in
from weft.feedback.store.report import PartitionReport
from weft.feedback.store.state import PartitionState
from weft.feedback.store.tables import evidence_in
from weft.learning.evidence import Evidence
from weft.runtime.kafka.log import LogFacts

FACTS = LogFacts("weft.feedback", "one", 1)


class Partition:
    """A partition's store, fed event by event, as an updater that can be killed would."""

    def __init__(
        self, store: Path, settings: FeedbackSettings = RULES, *, partition: int = 0, partitions: int = 1
    ) -> None:
        self.settings = settings
        self._facts = LogFacts("weft.feedback", "one", partitions)
        self._place = (partition_folder(store, partition), partition)
        self.catalog = Catalog(store)
        self.open()

    def open(self) -> None:
        """Claim the store: whoever held it before is fenced."""
        self.state = PartitionState(*self._place, self.settings)
        self.state.claim(self._facts, log_start=0)

    def feed(self, events: Sequence[AnyEvent], *, cuts: bool = True) -> None:
        """One transaction per event, or one for all."""
        first = self.report.next_offset
        lain = [record._replace(offset=first + record.offset) for record in records(events)]
        for batch in [[record] for record in lain] if cuts else [lain]:
            consume(batch, self._facts, self.state, self.settings)

    def publish(self) -> None:
        """What the updater does about every second."""
        publish_snapshot(self.state)

    @property
    def report(self) -> PartitionReport:
        return self.state.report()

    @property
    def shared(self) -> Evidence:
        return self.state.read(evidence_in)

    def overlay(self, session_id: str, kind: int = PENDING) -> Evidence:
        return self.state.read(overlay_in, session_id, kind)


def phase(name: str, session_id: str = "s1", **changes: Any) -> AnyEvent:
    return session(name, **{"event_id": f"{session_id}-{name}", "session_id": session_id, **changes})


def judged(
    session_id: str = "s1", signal: float = 1.0, rank: int = 1, query: str = "q1", **changes: Any
) -> list[AnyEvent]:
    """An answer, and a verdict on it."""
    shared = {"session_id": session_id, **changes}
    return [
        impression(query, event_id=f"{session_id}-{query}-shown", **shared),
        explicit(signal, rank, query_id=query, event_id=f"{session_id}-{query}-judged", **shared),
    ]


def alone(folder: Path, events: Sequence[AnyEvent], *rules: FeedbackSettings) -> Evidence:
    """What events come to in a partition that saw nothing else."""
    partition = Partition(folder, *rules)
    partition.feed(events)
    return partition.shared
