"""Gives sessions that started something to fork from, and says what merging those that completed ran against."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cached_property

from pipelines.catalog.catalog import Catalog
from pipelines.catalog.overlays import BaseId
from pipelines.domain.errors import StoreError
from pipelines.domain.ids import SessionId
from pipelines.feedback.fold.sessions import OPEN, Phase
from pipelines.feedback.store.overlays import SETTLED, Fork
from pipelines.feedback.store.state import PartitionState
from pipelines.learning.pooling.conflicts import Sides, conflicts, sides_of

_AT_ONCE = 10_000  # sessions held in memory together


class Forks:
    """The bases of one partition's sessions; the caller holds `catalog.bases.writing()`."""

    def __init__(self, catalog: Catalog, state: PartitionState) -> None:
        self._catalog = catalog
        self._state = state
        self._read: dict[BaseId, Sides] = {}

    def follow(self) -> None:
        """Fork what started since the last time, and let go of what ended; durable when this returns.

        Raises:
            FencedError: Another updater owns the partition.
        """
        lost = sorted(set(self._state.bases()) - set(self._catalog.bases.names()))[:_AT_ONCE]
        while some := self._state.forks(lost, at_most=_AT_ONCE):
            self._state.note_forks([self._followed(fork) for fork in some])

    def _followed(self, fork: Fork) -> Fork:
        life = fork.life
        if life is None or life.phase not in OPEN:
            return self._ended(fork)
        return fork._replace(base=self._base, started_ms=life.started_ms, settled=life.settled)

    @cached_property
    def _base(self) -> BaseId:
        """One for all sessions that started since the last time."""
        return self._catalog.bases.fork(at=self._state.report().clock_ms / 1000)

    def _ended(self, fork: Fork) -> Fork:
        life = fork.life
        if life is None:
            return fork._replace(base="")
        self._catalog.memories.forget(SessionId(life.session))
        report = self._report(fork) if life.phase is Phase.COMPLETED and fork.base else fork.report
        return fork._replace(base="", report=report)

    def _report(self, fork: Fork) -> str | None:
        """What the merge of a completed session met, as JSON (LRN-16)."""
        life, rules = fork.life, self._state.rules.merge
        if life is None or fork.settled:
            return None  # what was settled before the fork cannot be told from what came after
        try:
            before = self._before(BaseId(fork.base))
        except StoreError:
            return None  # what it forked from is gone, and with it what others added since
        mine = sides_of(self._state.overlay(life.session, SETTLED))
        found = conflicts(before, self._now, mine, margin=rules.margin, strength=rules.strength)
        shown = [asdict(conflict) for conflict in found[: rules.reported]]
        return json.dumps({"conflicts": len(found), "widest": shown})

    def _before(self, base: BaseId) -> Sides:
        if base not in self._read:
            self._read[base] = sides_of(self._catalog.bases.read(base).evidence)
        return self._read[base]

    @cached_property
    def _now(self) -> Sides:
        """What is known now, with everything that this partition has merged."""
        return sides_of(self._catalog.live_evidence_with(self._state.partition, self._state.evidence()))
