"""Snapshots of a store: the live generation and the beliefs that its live evidence gives (FBK-7)."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Protocol

from pipelines.catalog.catalog import Catalog
from pipelines.catalog.overlays import SessionListing
from pipelines.domain.errors import CorruptionError, StoreError
from pipelines.domain.ids import GenerationId, LearnedVersion, StoreId
from pipelines.embedding.encoders.precision import ROUNDED_APART, UNKNOWN, Arithmetic
from pipelines.indexes.generation import Generation
from pipelines.indexes.manifest import Manifest
from pipelines.learning.beliefs import read_beliefs
from pipelines.learning.evidence import Evidence
from pipelines.learning.priors import Priors
from pipelines.retrieval.snapshot.filters import RowFilter
from pipelines.retrieval.snapshot.ports import Calibration
from pipelines.retrieval.snapshot.sessions import ListedSessions, ReadingCache
from pipelines.retrieval.snapshot.snapshot import Snapshot
from pipelines.runtime.clock import Clock

log = logging.getLogger(__name__)

PRIORS_ALONE = LearnedVersion("priors")
"""What stands for the learned version while none is live."""

_NONE = GenerationId("")  # where no generation is live


class Closable(Protocol):
    """Something that holds files open."""

    def close(self) -> None:
        """Release them."""


@dataclass(frozen=True, slots=True)
class Pin:
    """What was live at one time, in values alone: whoever is handed it opens the same snapshot, in any process (ARC-2).

    Attributes:
        learned: None where no version was live.
        evidence: Everything that was believed then follows from it.
        listing: The sessions that were open.
        at: When that was, seconds since the epoch.
        store: Which store that was; None of one that has not been written since stores have ids.
    """

    generation: GenerationId
    learned: LearnedVersion | None
    evidence: Evidence
    listing: SessionListing
    at: float
    store: StoreId | None


class CatalogSource:
    """What a catalog says is live.

    Args:
        arithmetic: How queries are encoded; a generation of another precision is not searched.
    """

    def __init__(
        self,
        catalog: Catalog,
        priors: Priors,
        *,
        clock: Clock,
        sessions_held: int,
        arithmetic: Arithmetic = UNKNOWN,
    ) -> None:
        self._catalog = catalog
        self._arithmetic = arithmetic
        self._priors = priors
        self._clock = clock
        self._asked_for = _NONE
        self._verified: GenerationId | None = None
        self._calibration: tuple[LearnedVersion | None, Calibration | None] = (None, None)
        self._readings = ReadingCache(catalog, priors, self._described, held=sessions_held)

    def token(self) -> Hashable:
        """A value that changes whenever the pointer moves or evidence comes in."""
        return self._catalog.live_token()

    def take(self, previous: Snapshot | None) -> Snapshot:
        """What is live now; beliefs are read anew, a generation only when another one is live.

        Raises:
            NothingPublishedError: No generation is live.
            CorruptionError: The live generation is damaged and so is every other one.
            StoreError: Its vectors are of another precision than queries are.
        """
        return self._snapshot(self._now(), previous, self._catalog.open_live)

    def pin(self) -> Pin:
        """What is live now, its generation verified, for other processes to open.

        Raises:
            NothingPublishedError: No generation is live.
            CorruptionError: The live generation is damaged and so is every other one.
        """
        pin = self._now()
        if pin.generation != self._verified:
            self._verified = self._catalog.verified_live()
        return replace(pin, generation=self._verified)

    def at(self, pin: Pin, previous: Snapshot | None) -> Snapshot:
        """What was live when something was pinned; a generation that `previous` has open is not opened again.

        Raises:
            StoreError: The generation was removed since, or this host sees another store.
        """
        self._catalog.require(pin.store)
        return self._snapshot(pin, previous, lambda: self._catalog.open(pin.generation))

    def _now(self) -> Pin:
        # Sessions first: one that completes in between is seen open by this snapshot, not as if it had never been.
        listing, pointer = self._catalog.listing(), self._catalog.pointer()
        evidence = self._catalog.live_evidence()
        store = self._catalog.store_id()
        return Pin(pointer.generation or _NONE, pointer.learned, evidence, listing, self._clock(), store)

    def _snapshot(self, pin: Pin, previous: Snapshot | None, open_generation: Callable[[], Generation]) -> Snapshot:
        sessions = ListedSessions(pin.listing, self._readings)
        beliefs = read_beliefs(self._priors, pin.evidence, now=pin.at)
        learned, calibration = self._described(pin.learned)
        if previous is not None and pin.generation == self._asked_for:
            return replace(previous, learned=learned, beliefs=beliefs, calibration=calibration, sessions=sessions)
        generation = _let_go(open_generation())
        self._compare_arithmetic(generation.manifest)
        self._asked_for = pin.generation
        filters = RowFilter(generation.chunks)
        return Snapshot(generation.manifest.id, generation, filters, learned, beliefs, calibration, sessions)

    def _compare_arithmetic(self, manifest: Manifest) -> None:
        for encoder, ours in self._arithmetic.precisions.items():
            theirs = manifest.precisions.get(encoder, ours)
            if theirs != ours:
                raise StoreError(
                    f"{manifest.id}: expected vectors of {encoder} in {ours}, in which this process encodes queries, "
                    f"found {theirs}: start it anew"
                )
        ours, made_with = self._arithmetic.instructions, manifest.instructions
        if ours and made_with and made_with != {ours}:
            log.warning(
                "%s: its vectors were computed with %s instructions, queries are encoded here with %s: %s",
                manifest.id,
                " and ".join(sorted(made_with)),
                ours,
                ROUNDED_APART,
            )

    def _described(self, version: LearnedVersion | None) -> tuple[LearnedVersion, Calibration | None]:
        return version or PRIORS_ALONE, self._calibrated(version)

    def _calibrated(self, version: LearnedVersion | None) -> Calibration | None:
        if version is None:
            return None
        kept = self._calibration  # searches of sessions ask from their own threads
        if kept[0] != version:
            kept = self._calibration = (version, self._read_calibration(version))
        return kept[1]

    def _read_calibration(self, version: LearnedVersion) -> Calibration | None:
        try:
            return self._catalog.read_learned(version).calibration
        except CorruptionError as error:
            log.warning("no probabilities until another learned version is live: %s", error)
            return None


def _let_go(generation: Generation) -> Generation:
    """The generation, closed when the last search that holds it has ended, whichever that is."""
    weakref.finalize(generation, _close, generation.lexical, generation.chunks)
    return generation


def _close(*parts: Closable) -> None:
    for part in parts:
        part.close()
