"""The catalog of one store: which generation and which learned version are live, and how that changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pipelines.catalog.bases import BaseStore
from pipelines.catalog.generations import GenerationStore
from pipelines.catalog.learned import LearnedManifest, LearnedState, LearnedStore
from pipelines.catalog.live import LiveEvidence, LiveToken, Reach
from pipelines.catalog.memories import MemoryStore
from pipelines.catalog.overlays import SessionListing
from pipelines.catalog.pointer import Pointer, PointerFile
from pipelines.catalog.store_id import OnOtherHosts, StoreGuard, ensure_store_id, read_store_id, require_shared
from pipelines.domain.ids import GenerationId, LearnedVersion, StoreId
from pipelines.indexes.generation import Generation
from pipelines.indexes.manifest import Manifest
from pipelines.learning.evidence import Evidence


class Catalog:
    """Everything published below one root. Safe for many processes: readers never wait, writers take turns."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._pointer = PointerFile(root)
        self._generations = GenerationStore(root, self._pointer)
        self._learned = LearnedStore(root, self._pointer)
        self._live = LiveEvidence(root, self._pointer, self._learned)
        self.bases = BaseStore(root, self._pointer, self._live)
        self.memories = MemoryStore(root)

    def claim(self, on_other_hosts: OnOtherHosts) -> StoreGuard:
        """Check that every host sees this store before it is written; a store without an id gets one.

        Raises:
            StoreError: A host does not; the message names it and the path, and nothing was changed.
        """
        root = self.root.absolute()
        require_shared(root, on_other_hosts)
        with self._pointer.writing():
            return StoreGuard(root, ensure_store_id(root))

    def store_id(self) -> StoreId | None:
        """Which store this is; None of one that has not been written since stores have ids."""
        return read_store_id(self.root)

    def require(self, store: StoreId | None) -> None:
        """Check, in another process maybe, that this is the store of that id.

        Raises:
            StoreError: It is not; the message names the host and the path.
        """
        StoreGuard(self.root.absolute(), store)()

    def pointer(self) -> Pointer:
        """What is live now."""
        return self._pointer.read()

    def stage(self) -> Path:
        """A new empty folder to build a generation in; it belongs to this process."""
        return self._generations.staging.stage()

    def discard(self, staging: Path) -> None:
        """Remove a staged generation that will not be published."""
        self._generations.staging.release(staging)

    def clean_leftovers(self) -> list[Path]:
        """Remove what killed runs left behind; folders of running processes stay."""
        return [*self._generations.staging.clean_leftovers(), *self._learned.staging.clean_leftovers()]

    def publish(self, staging: Path, *, expected_parent: GenerationId | None) -> GenerationId:
        """Make a staged generation live; see `GenerationStore.publish`.

        Raises:
            CorruptionError: The staged files are not those of their manifest.
            StaleVersionError: Another generation than `expected_parent` is live; rebuild on top of it.
        """
        return self._generations.publish(staging, expected_parent=expected_parent)

    def generations(self) -> list[Manifest]:
        """Every generation, oldest first."""
        return self._generations.manifests()

    def precisions(self) -> Mapping[str, str]:
        """The arithmetic of the live vectors by encoder name; where their manifest is damaged, that of the newest."""
        live, readable = self.pointer().generation, self.generations()
        if live is None or not readable:
            return {}
        return next((manifest for manifest in readable if manifest.id == live), readable[-1]).precisions

    def verify(self, generation: GenerationId) -> Manifest:
        """Compare every file of a generation with its manifest.

        Raises:
            StoreError: There is no such generation.
            CorruptionError: A file differs; the message names it.
        """
        return self._generations.verify(generation)

    def folder_of(self, generation: GenerationId) -> Path:
        """Where a generation lies; to read its files without opening it, `verify` it first.

        Raises:
            StoreError: The name cannot be a generation's.
        """
        return self._generations.folder_of(generation)

    def rollback(self, generation: GenerationId) -> Pointer:
        """Make an older generation live again, after verifying it."""
        return self._generations.rollback(generation)

    def prune(self, keep: int) -> list[GenerationId]:
        """Remove all but the `keep` newest generations; the live one and the one before it always stay."""
        return self._generations.prune(keep)

    def open_live(self) -> Generation:
        """Open the live generation, verified; where it is damaged, the one before it, with a warning.

        Raises:
            NothingPublishedError: No generation is live.
            CorruptionError: It is damaged and so is every other one.
        """
        return self._generations.open_live()

    def verified_live(self) -> GenerationId:
        """The generation that `open_live` would open, verified: other processes may `open` it without doing that again.

        Raises:
            NothingPublishedError: No generation is live.
            CorruptionError: It is damaged and so is every other one.
        """
        return self._generations.verified_live()

    def open(self, generation: GenerationId) -> Generation:
        """Open a generation that `verified_live` named.

        Raises:
            StoreError: There is no such generation any more.
        """
        return self._generations.open(generation)

    def publish_learned(self, state: LearnedState, *, expected_newest: LearnedVersion | None) -> LearnedVersion:
        """Write a learned version, not yet live.

        Raises:
            StaleVersionError: Another version than `expected_newest` is the newest by now; cut again.
        """
        return self._learned.publish(state, expected_newest=expected_newest)

    def read_learned(self, version: LearnedVersion) -> LearnedState:
        """A learned version, verified.

        Raises:
            StoreError: There is no such version.
            CorruptionError: A file differs from its manifest.
        """
        return self._learned.read(version)

    def make_live(self, version: LearnedVersion) -> Pointer:
        """Make a learned version live, after verifying it; an older one just as well."""
        self._learned.read(version)
        return self._pointer.move(
            lambda live: replace(live, learned=version, decided=max(version, live.decided or version))
        )

    def learned_versions(self) -> list[LearnedVersion]:
        """Every learned version, oldest first; the last is the newest, live or not."""
        return self._learned.versions()

    def learned_manifest(self, version: LearnedVersion) -> LearnedManifest:
        """What is known of a learned version without reading its evidence."""
        return self._learned.manifest(version)

    def learned_folder(self, version: LearnedVersion) -> Path:
        """Where the files of a learned version lie; to read them, `read_learned` it first."""
        return self._learned.folder_of(version)

    def streamed_evidence(self) -> Evidence:
        """The sum of all updaters' snapshots: what a night takes as its cut."""
        return self._live.streamed()

    def streamed_reach(self) -> tuple[Evidence, Reach]:
        """The same, and how far into each partition it reaches: which sessions are in it follows from that (LRN-17)."""
        return self._live.streamed_reach()

    def streamed_topics(self) -> frozenset[str]:
        """Identities of the topics that this store's updaters read."""
        return self._live.topics()

    def live_evidence(self) -> Evidence:
        """Base of the live learned version + (streamed − cut of the newest one that was ever live)."""
        return self._live.evidence()

    def live_token(self) -> LiveToken:
        """A value that changes whenever `live_evidence` may have; costs a few file lookups."""
        return self._live.token()

    def listing(self) -> SessionListing:
        """The sessions that are open now, and what each has learned by itself.

        Raises:
            CorruptionError: A file is not what was written.
        """
        return self._live.listing()

    def snapshots(self) -> list[Path]:
        """The evidence file of every partition."""
        return self._live.snapshots()

    def live_evidence_with(self, partition: int, evidence: Evidence) -> Evidence:
        """What would be live if one partition had published this evidence."""
        return self._live.given_partition(partition, evidence)
