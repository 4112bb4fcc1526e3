"""What an updater makes of some events, and what searches of a collection make of that."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from pathlib import Path

from pipelines.catalog.catalog import Catalog
from pipelines.domain.events import AnyEvent
from pipelines.feedback.run.updater import Updater
from pipelines.feedback.settings import FeedbackSettings
from pipelines.feedback.store.tables import evidence_in
from pipelines.learning.beliefs import Beliefs, read_beliefs
from pipelines.learning.evidence import Evidence
from pipelines.retrieval.snapshot.live import CatalogSource
from pipelines.retrieval.snapshot.snapshot import Snapshot
from pipelines.settings import Settings
from tests.support.feedback_events import RULES, records
from tests.support.feedback_source import FakeLog, FakeSource


class Learner:
    """A source of snapshots whose beliefs are those of the evidence it has been taught."""

    def __init__(self, settings: Settings, catalog: Catalog, *, now: float) -> None:
        self._live = CatalogSource(catalog, settings.priors, clock=lambda: now)
        self._priors, self._now = settings.priors, now
        self.evidence = Evidence()

    @property
    def beliefs(self) -> Beliefs:
        return read_beliefs(self._priors, self.evidence, now=self._now)

    def token(self) -> Hashable:
        return self.evidence.digest()

    def take(self, previous: Snapshot | None) -> Snapshot:
        return replace(self._live.take(previous), beliefs=self.beliefs)


def learned(store: Path, events: Iterable[AnyEvent | bytes], settings: FeedbackSettings = RULES) -> Evidence:
    """What an updater makes of a log of these events."""
    updater = Updater.open(FakeSource(FakeLog.of(records(events))), store, [0], settings)
    while updater.step(0.0):
        pass
    state = updater._states[0]
    assert state.report().balanced
    evidence = state.read(evidence_in)
    updater.close()
    return evidence
