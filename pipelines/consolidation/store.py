"""What a night needs of the catalog: the learned versions, and what was streamed since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipelines.consolidation.champion import LearnedCatalog
from pipelines.domain.ids import LearnedVersion
from pipelines.learning.calibration import Calibration
from pipelines.learning.evidence import Evidence


class Learned(Protocol):
    """One published learned version."""

    @property
    def parent(self) -> LearnedVersion | None:
        """What was live when it was published, None before the first."""

    @property
    def evidence(self) -> Evidence:
        """Its base."""

    @property
    def cut(self) -> Evidence:
        """What the updaters had when it was cut."""

    @property
    def calibration(self) -> Calibration | None:
        """From score to probability; None where there never was enough evidence."""


class LearnedStore(LearnedCatalog, Protocol):
    """The catalog's learned side."""

    def learned_versions(self) -> Sequence[LearnedVersion]:
        """Every published version, oldest first."""

    def read_learned(self, version: LearnedVersion) -> Learned:
        """One version, verified."""

    def streamed_evidence(self) -> Evidence:
        """The sum of the updaters' snapshots."""

    def publish_learned(
        self,
        evidence: Evidence,
        cut: Evidence,
        calibration: Calibration | None,
        *,
        parent: LearnedVersion | None,
        newest: LearnedVersion | None,
    ) -> LearnedVersion:
        """Write a version beside the others, without making it live.

        Raises:
            StaleVersionError: `parent` is no longer live, or `newest` no longer the newest.
        """
