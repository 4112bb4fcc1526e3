"""Generations of one store: published, listed, verified, rolled back and pruned (ING-26)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pipelines.catalog.pointer import Pointer, PointerFile
from pipelines.catalog.staging import StagingArea
from pipelines.domain.errors import CorruptionError, NothingPublishedError, StaleVersionError, StoreError
from pipelines.domain.ids import GenerationId
from pipelines.indexes.generation import Generation, open_generation, verify_generation
from pipelines.indexes.manifest import Manifest, read_generation_manifest
from pipelines.runtime.storage.files import sync_folder, sync_tree, verify_files

log = logging.getLogger(__name__)

Found = TypeVar("Found")


class GenerationStore:
    """The folder `generations/` of a store."""

    def __init__(self, root: Path, pointer: PointerFile) -> None:
        self._folder = root / "generations"
        self._pointer = pointer
        self.staging = StagingArea(self._folder)

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
        self.staging.release(staging)
        return manifest.id

    def manifests(self) -> list[Manifest]:
        """Every readable generation, oldest first; one whose manifest is damaged is logged and left out."""
        found = []
        for folder in self._published():
            try:
                found.append(read_generation_manifest(folder))
            except StoreError as error:
                log.warning("%s is left out: %s", folder.name, error)
        return sorted(found, key=lambda manifest: (manifest.created_at, manifest.id))

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

    def rollback(self, generation: GenerationId) -> Pointer:
        """Make an older generation live again, after verifying it.

        Raises:
            StoreError: There is no such generation.
            CorruptionError: It is damaged; what is live stays.
        """
        self.verify(generation)
        return self._pointer.move(lambda live: _at(live, generation))

    def prune(self, keep: int) -> list[GenerationId]:
        """Remove all but the `keep` newest generations; the live one and the one before it always stay.

        Returns:
            What was removed, oldest first.
        """
        if keep < 0:
            raise ValueError(f"expected to keep 0 or more generations, got {keep}")
        with self._pointer.writing():
            live = self._pointer.read()
            known = [manifest.id for manifest in self.manifests()]
            spared = {live.generation, live.previous, *known[max(0, len(known) - keep) :]}
            removed = [name for name in known if name not in spared]
            for name in removed:
                self.staging.retire(self.folder_of(name))
        return removed

    def open_live(self) -> Generation:
        """Open the live generation, verified; where it is damaged, the one before it, with a warning.

        Raises:
            NothingPublishedError: No generation is live.
            CorruptionError: It is damaged and so is every other one.
        """
        return self._first_whole(open_generation)

    def verified_live(self) -> GenerationId:
        """Name what `open_live` would open, without opening it: whoever is told may `open` it without comparing again.

        Raises:
            NothingPublishedError: No generation is live.
            CorruptionError: It is damaged and so is every other one.
        """
        return self._first_whole(verify_generation).id

    def open(self, generation: GenerationId) -> Generation:
        """Open a generation that `verified_live` named.

        Raises:
            StoreError: There is no such generation any more.
            CorruptionError: A file of it is missing.
        """
        return open_generation(self.folder_of(generation), verify=False)

    def folder_of(self, generation: GenerationId) -> Path:
        """Where a generation lies.

        Raises:
            StoreError: The name cannot be a generation's.
        """
        if Path(generation).name != generation or generation.startswith("."):
            raise StoreError(
                f"expected the id of a generation, found {generation!r}; list them with `weft generations list`"
            )
        return self._folder / generation

    def _first_whole(self, opened: Callable[[Path], Found]) -> Found:
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

    def _fallback(self, pointer: Pointer, reason: Exception, opened: Callable[[Path], Found]) -> Found:
        others = [manifest.id for manifest in reversed(self.manifests())]
        for name in dict.fromkeys([pointer.previous, *others]):
            if name is None or name == pointer.generation:
                continue
            try:
                found = opened(self.folder_of(name))
            except (StoreError, OSError) as error:
                log.warning("%s cannot stand in: %s", name, error)
                continue
            log.warning("serving %s, for the live generation cannot be opened: %s", name, reason)
            return found
        raise CorruptionError(
            f"no generation can be opened, the live one because: {reason}: index again with `python -m jobs.reindex`"
        ) from reason

    def _published(self) -> Iterator[Path]:
        if self._folder.is_dir():
            yield from (path for path in sorted(self._folder.iterdir()) if path.is_dir() and path.name[0] != ".")


def _at(live: Pointer, generation: GenerationId) -> Pointer:
    previous = live.previous if generation == live.generation else live.generation
    return replace(live, generation=generation, previous=previous)
