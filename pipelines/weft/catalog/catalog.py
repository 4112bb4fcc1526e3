"""The catalog of one store: which generation and which learned version are live, and how that changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from weft.catalog.bases import BaseStore, MemoryStore
from weft.catalog.citations import CitationFile
from weft.catalog.learned import LearnedStore
from weft.catalog.live import LiveEvidence, read_relations, write_relations
from weft.catalog.pointer import Pointer, PointerFile
from weft.catalog.staging import StagingArea
from weft.catalog.store_id import OnOtherHosts, StoreGuard, ensure_store_id, read_store_id, require_shared
from weft.domain.errors import CorruptionError, NothingPublishedError, StaleVersionError, StoreError
from weft.domain.ids import GenerationId, StoreId, VersionName
from weft.domain.links import Relation
from weft.indexes.generation import Generation, open_generation, verify_generation
from weft.indexes.manifest import Manifest, read_generation_manifest
from weft.runtime.storage.files import sync_folder, sync_tree, verify_files

log = logging.getLogger(__name__)

Opened = TypeVar("Opened")


class Catalog:
    """Everything published below one root. Safe for many processes: readers never wait, writers take turns."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._pointer = PointerFile(root)
        self._folder = root / "generations"
        self._staging = StagingArea(self._folder)
        self.learned = LearnedStore(root, self._pointer)
        self.live = LiveEvidence(root, self._pointer, self.learned)
        self.citations = CitationFile(root)

    @cached_property
    def bases(self) -> BaseStore:
        """What sessions forked from."""
        return BaseStore(self.root, self._pointer, self.live)

    @cached_property
    def memories(self) -> MemoryStore:
        """What sessions remember."""
        return MemoryStore(self.root)

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
        """Which store this is; None of one that was never written."""
        return read_store_id(self.root)

    def require(self, store: StoreId | None) -> None:
        """Check, in another process maybe, that this is the store of that id; StoreError where it is not."""
        StoreGuard(self.root.absolute(), store)()

    def pointer(self) -> Pointer:
        """What is live now."""
        return self._pointer.read()

    def stage(self) -> Path:
        """A new empty folder to build a generation in; it belongs to this process."""
        return self._staging.stage()

    def discard(self, staging: Path) -> None:
        """Remove a staged generation that will not be published."""
        self._staging.release(staging)

    def clean_leftovers(self) -> list[Path]:
        """Remove what killed runs left behind; folders of running processes stay."""
        return [*self._staging.clean_leftovers(), *self.learned.staging.clean_leftovers()]

    def publish(self, staging: Path, *, expected_parent: GenerationId | None) -> GenerationId:
        """Make a staged generation the live one; a process killed at any point leaves the old one or the new one.

        The order is the argument: (1) verify, (2) make the files durable, (3) refuse if another went live,
        (4) rename the folder and make that durable, (5) replace the pointer and make that durable.

        Raises:
            CorruptionError: The staged files are not those of their manifest.
            StaleVersionError: Another generation than `expected_parent` is live; rebuild on top of it.
        """
        manifest = read_generation_manifest(staging)
        verify_files(staging, manifest.files)
        sync_tree(staging)
        with self._pointer.writing():
            live = self._pointer.read()
            if live.generation != expected_parent:
                raise StaleVersionError(
                    f"expected {expected_parent or 'nothing'} to be live, found {live.generation or 'nothing'}; "
                    "build again on top of it"
                )
            staging.rename(self.folder_of(manifest.id))
            sync_folder(self._folder)
            self._pointer.replace(_at(live, manifest.id))
        self._staging.release(staging)
        return manifest.id

    def generations(self) -> list[Manifest]:
        """Every readable generation, oldest first; one whose manifest is damaged is logged and left out."""
        readable = []
        for folder in self._published():
            try:
                readable.append(read_generation_manifest(folder))
            except StoreError as error:
                log.warning("%s is left out: %s", folder.name, error)
        return sorted(readable, key=lambda manifest: (manifest.created_at, manifest.id))

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
        folder = self.folder_of(generation)
        manifest = read_generation_manifest(folder)
        if manifest.id != generation:
            raise CorruptionError(f"{folder}: expected {generation}, found {manifest.id}; rebuild or roll back")
        verify_files(folder, manifest.files)
        return manifest

    def folder_of(self, generation: GenerationId) -> Path:
        """Where a generation lies; StoreError where the name cannot be a generation's."""
        if Path(generation).name != generation or generation.startswith("."):
            raise StoreError(
                f"expected the id of a generation, found {generation!r}; list them with `weft generations list`"
            )
        return self._folder / generation

    def rollback(self, generation: GenerationId) -> Pointer:
        """Make an older generation live again, after verifying it; errors as in `verify`, and what is live stays."""
        self.verify(generation)
        return self._pointer.move(lambda live: _at(live, generation))

    def prune(self, keep: int) -> list[GenerationId]:
        """Remove all but the `keep` newest, the live and the previous generation; what was removed, oldest first."""
        if keep < 0:
            raise ValueError(f"expected to keep 0 or more generations, got {keep}")
        with self._pointer.writing():
            live = self._pointer.read()
            names = [manifest.id for manifest in self.generations()]
            spared = {live.generation, live.previous, *names[max(0, len(names) - keep) :]}
            removed = [name for name in names if name not in spared]
            for name in removed:
                self._staging.retire(self.folder_of(name))
        return removed

    def open_live(self) -> Generation:
        """Open the live generation, verified; where it is damaged, the one before it, with a warning.

        Raises:
            NothingPublishedError: No generation is live.
            CorruptionError: It is damaged and so is every other one.
        """
        return self._first_whole(open_generation)

    def verified_live(self) -> GenerationId:
        """The generation that `open_live` would open, verified: it may be opened without comparing again."""
        return self._first_whole(verify_generation).id

    def open(self, generation: GenerationId) -> Generation:
        """Open a generation that `verified_live` named; errors as in `open_generation`."""
        return open_generation(self.folder_of(generation), verify=False)

    def make_live(self, version: VersionName) -> Pointer:
        """Make a learned version live, after verifying it; an older one just as well."""
        self.learned.read(version)
        return self._pointer.move(
            lambda live: replace(live, learned=version, decided=max(version, live.decided or version))
        )

    def leave_out(self, version: VersionName) -> Pointer:
        """Settle a version that is not to go live: what was streamed up to its cut counts no more.

        Raises:
            StoreError: There is no such version, or it is damaged.
        """
        self.learned.read(version)
        return self._pointer.move(lambda live: replace(live, decided=max(version, live.decided or version)))

    def relations(self) -> tuple[Relation, ...]:
        """Relations that were declared in this store; CorruptionError where their file holds none."""
        return read_relations(self.root)

    def declare(self, relation: Relation) -> None:
        """Add a relation to those of this store; one that is declared already stays as it is."""
        with self._pointer.writing():
            write_relations(self.root, [*self.relations(), relation])

    def retract(self, relation: Relation) -> None:
        """Take a relation out again, whoever declared it here and when."""
        gone = (relation.uri, relation.kind, relation.target)
        with self._pointer.writing():
            write_relations(self.root, [one for one in self.relations() if (one.uri, one.kind, one.target) != gone])

    def _first_whole(self, opened: Callable[[Path], Opened]) -> Opened:
        """What the live generation's folder opens as; where it is damaged, the folder of the one before it."""
        while True:
            pointer = self._pointer.read()
            if pointer.generation is None:
                raise NothingPublishedError("expected a live generation, found none: run `python -m jobs.reindex`")
            try:
                return opened(self.folder_of(pointer.generation))
            except (StoreError, OSError) as error:
                # Pruned or replaced between reading the pointer and opening: what is live now is another.
                if self._pointer.read().generation == pointer.generation:
                    return self._fallback(pointer, error, opened)

    def _fallback(self, pointer: Pointer, reason: Exception, opened: Callable[[Path], Opened]) -> Opened:
        others = [manifest.id for manifest in reversed(self.generations())]
        for name in dict.fromkeys([pointer.previous, *others]):
            if name is None or name == pointer.generation:
                continue
            try:
                generation = opened(self.folder_of(name))
            except (StoreError, OSError) as error:
                log.warning("%s cannot stand in: %s", name, error)
                continue
            log.warning("serving %s, for the live generation cannot be opened: %s", name, reason)
            return generation
        raise CorruptionError(
            f"no generation can be opened, the live one because: {reason}: index again with `python -m jobs.reindex`"
        ) from reason

    def _published(self) -> Iterator[Path]:
        if self._folder.is_dir():
            yield from (path for path in sorted(self._folder.iterdir()) if path.is_dir() and path.name[0] != ".")


def _at(live: Pointer, generation: GenerationId) -> Pointer:
    previous = live.previous if generation == live.generation else live.generation
    return replace(live, generation=generation, previous=previous)
