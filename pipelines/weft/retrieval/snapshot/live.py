"""What a catalog says is live: opened as a snapshot, or pinned for other processes to open (ARC-2, FBK-7)."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from weft.catalog.catalog import Catalog
from weft.catalog.citations import NO_CITATION_COUNTS, CitationCounts
from weft.catalog.overlays import SessionListing
from weft.domain.errors import CorruptionError, StoreError
from weft.domain.ids import GenerationId, StoreId, VersionName
from weft.domain.links import Relation
from weft.indexes.generation import Generation
from weft.indexes.manifest import ANSWERING, Manifest
from weft.learning.aliases import ContentAliases
from weft.learning.beliefs import Beliefs, believed
from weft.learning.calibration.matching import Answering
from weft.learning.parts import LearnedVersion, Part
from weft.learning.priors import Priors
from weft.retrieval.snapshot.filters import RowFilter, communities_of
from weft.retrieval.snapshot.ports import Fleet, OpenGeneration
from weft.retrieval.snapshot.snapshot import SESSIONS_HELD, ListedSessions, ReadingCache, Snapshot
from weft.runtime.clock import Clock

log = logging.getLogger(__name__)

PRIORS_ONLY = VersionName("priors")
"""What stands for the learned version while none is live."""

_NONE = GenerationId("")  # where no generation is live


@dataclass(frozen=True, slots=True)
class Pin:
    """What was live at one time, in values alone: its holder opens the same snapshot, in any process (ARC-2)."""

    generation: GenerationId
    version: VersionName | None  # none where no version was live
    learned: LearnedVersion  # everything that was believed then follows from it
    listing: SessionListing  # the sessions that were open
    at: float  # when that was, seconds since the epoch
    store: StoreId | None  # which store that was; None of one that was never written
    relations: tuple[Relation, ...] = ()  # declared in the store
    counted: CitationCounts = field(default_factory=dict)  # what providers say of works


class CatalogSource:
    """What a catalog says is live."""

    def __init__(
        self,
        catalog: Catalog,
        priors: Priors,
        *,
        clock: Clock,
        sessions_held: int = SESSIONS_HELD,
        precisions: Mapping[str, str] | None = None,  # in which queries are encoded, by encoder
        fleet: Fleet | None = None,  # what searches the shards; None where this process does
    ) -> None:
        self._catalog = catalog
        self._precisions = precisions or {}
        self._fleet = fleet
        self._priors = priors
        self._clock = clock
        self._asked_for = _NONE
        self._verified: GenerationId | None = None
        self._held: tuple[VersionName, Mapping[str, Part]] = (PRIORS_ONLY, {})
        self._readings = ReadingCache(catalog, priors, self._parts_of, held=sessions_held)

    def token(self) -> Hashable:
        """A value that changes whenever the pointer moves or evidence comes in, and when a fleet has followed."""
        live = self._catalog.live.token()
        return live if self._fleet is None else (live, self._fleet.holds(self._catalog.pointer().generation or _NONE))

    def take(self, previous: Snapshot | None) -> Snapshot:
        """What is live now; beliefs are read anew, a generation only when another one is live.

        What a fleet does not hold yet is waited for where nothing was before it; else that goes on (SCL-13).
        """
        now, fleet = self._now(), self._fleet
        if fleet is None or now.generation == _NONE:
            return self._snapshot(now, previous, self._catalog.open_live)
        if previous is not None and not fleet.holds(now.generation):
            now = replace(now, generation=self._asked_for)
        return self._snapshot(now, previous, lambda: self._catalog.open_tables(now.generation, fleet.parts))

    def pin(self) -> Pin:
        """What is live now, its generation verified, for other processes to open."""
        pin = self._now()
        if pin.generation != self._verified:
            self._verified = self._catalog.verified_live()
        return replace(pin, generation=self._verified)

    def at(self, pin: Pin, previous: Snapshot | None) -> Snapshot:
        """What was live when something was pinned; a generation that `previous` has open is not opened again."""
        self._catalog.require(pin.store)
        return self._snapshot(pin, previous, lambda: self._catalog.open(pin.generation))

    def _now(self) -> Pin:
        # Sessions first: one that completes in between is seen open by this snapshot, not as if it had never been.
        listing, pointer = self._catalog.live.listing(), self._catalog.pointer()
        evidence = self._catalog.live.evidence(pointer)
        _, parts = self._parts_of(pointer.learned)
        return Pin(
            generation=pointer.generation or _NONE,
            version=pointer.learned,
            learned=LearnedVersion(evidence, parts),
            listing=listing,
            at=self._clock(),
            store=self._catalog.store_id(),
            relations=self._relations(),
            counted=self._counted(),
        )

    def _counted(self) -> CitationCounts:
        try:
            return self._catalog.citations.read()
        except CorruptionError as error:
            log.warning("no counts but those of documents: %s", error)
            return NO_CITATION_COUNTS

    def _relations(self) -> tuple[Relation, ...]:
        try:
            return self._catalog.relations()
        except CorruptionError as error:
            log.warning("no relations but those of documents: %s", error)
            return ()

    def _snapshot(self, pin: Pin, previous: Snapshot | None, open_generation: Callable[[], Generation]) -> Snapshot:
        if previous is not None and pin.generation == self._asked_for:
            return replace(
                previous,
                version=pin.version or PRIORS_ONLY,
                learned=pin.learned,
                beliefs=self._believed(pin, previous.generation),
                sessions=ListedSessions(pin.listing, self._readings),
                relations=pin.relations,
                counted=pin.counted,
            )
        generation = open_generation()
        # Closed when the last search that holds it has ended, whichever that is.
        weakref.finalize(generation, generation.chunks.close)
        weakref.finalize(generation, _close_in, os.getpid(), generation.lexical.close)
        self._compare_precisions(generation.manifest)
        opened = generation.manifest.id
        # Another may have gone live since; where the live one is damaged, an older one stands in for it.
        self._asked_for = opened if self._catalog.pointer().generation == opened else pin.generation
        filters = RowFilter(generation.chunks, partial(communities_of, generation))
        return Snapshot(
            generation_id=opened,
            generation=generation,
            filters=filters,
            version=pin.version or PRIORS_ONLY,
            learned=pin.learned,
            beliefs=self._believed(pin, generation),
            sessions=ListedSessions(pin.listing, self._readings),
            built=_answering_of(generation.manifest),
            relations=pin.relations,
            counted=pin.counted,
        )

    def _believed(self, pin: Pin, generation: OpenGeneration) -> Beliefs:
        learned, row_of = pin.learned, generation.chunks.row_of
        if (aliases := learned.part(ContentAliases)) is not None:
            learned = learned.with_part(ContentAliases, aliases.led_by(lambda content: row_of(content) is not None))
        return believed(self._priors, learned, now=pin.at)

    def _compare_precisions(self, manifest: Manifest) -> None:
        for encoder, ours in self._precisions.items():
            theirs = manifest.precisions.get(encoder, ours)
            if theirs != ours:
                raise StoreError(
                    f"{manifest.id}: expected vectors of {encoder} in {ours}, in which this process encodes queries, "
                    f"found {theirs}: start it anew"
                )

    def _parts_of(self, version: VersionName | None) -> tuple[VersionName, Mapping[str, Part]]:
        if version is None:
            return PRIORS_ONLY, {}
        cached = self._held  # searches of sessions ask from their own threads
        if cached[0] != version:
            try:
                cached = (version, self._catalog.learned.read(version).parts)
            except CorruptionError as error:
                log.warning("no probabilities until another learned version is live: %s", error)
                cached = (version, {})
            self._held = cached
        return cached


def _close_in(process: int, close: Callable[[], None]) -> None:
    """Close something where it was opened: in a child that was forked since, Java does not answer."""
    if os.getpid() == process:
        close()


def _answering_of(manifest: Manifest) -> Answering | None:
    stated = manifest.facts.get(ANSWERING)
    try:
        return None if stated is None else Answering.of(stated)
    except TypeError as error:
        log.warning("%s: no threshold of answers: %s; index again", manifest.id, error)
        return None
