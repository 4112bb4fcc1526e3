"""What an updater makes of some events, and what searches of a collection make of that."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from pathlib import Path

from tests.support.feedback_events import RULES, records
from tests.support.feedback_source import FakeLog, FakeSource
from weft.catalog.catalog import Catalog
from weft.domain.events import AnyEvent
from weft.feedback.run.updater import Updater
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.tables import evidence_in
from weft.learning.beliefs import Beliefs, read_beliefs
from weft.learning.evidence import Evidence
from weft.retrieval.snapshot.live import CatalogSource
from weft.retrieval.snapshot.snapshot import Snapshot
from weft.settings import Settings


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
