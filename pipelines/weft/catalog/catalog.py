"""The catalog of one store: which generation and which learned version are live, and how that changes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from weft.catalog.citations import CitationFile
from weft.catalog.learned import LEARNED, LearnedStore, read_evidence
from weft.catalog.live import LiveEvidence, change_relations, read_relations
from weft.catalog.overlays import BaseId, read_session_moments
from weft.catalog.pointer import Pointer, PointerFile
from weft.catalog.staging import StagingArea
from weft.catalog.store_id import OnOtherHosts, StoreGuard, ensure_store_id, read_store_id, require_shared
from weft.domain.errors import CorruptionError, NothingPublishedError, StaleVersionError, StoreError
from weft.domain.ids import GenerationId, SessionId, StoreId, VersionName
from weft.domain.links import Relation
from weft.domain.understanding import SessionMemory
from weft.indexes.copies import COPIES_FOLDER, remove_copies
from weft.indexes.generation import Generation, open_generation, open_indexes, verify_generation
from weft.indexes.manifest import Manifest, read_generation_manifest
from weft.indexes.parts import IndexPart, Share, is_table
from weft.indexes.spread import Indexes
from weft.learning.evidence import Evidence
from weft.learning.pooling.shrinkage import Moments
from weft.runtime.storage.files import (
    file_hashes,
    read_manifest,
    sync_folder,
    sync_tree,
    verify_files,
    verify_some,
    write_atomically,
    write_manifest,
)
from weft.runtime.storage.locks import Patience, locked
from weft.runtime.storage.packs import PACKS
from weft.runtime.storage.run_files import PARTS, RunFiles
from weft.runtime.storage.working_copy import WorkingCopy, working_copy_of

# What sessions forked from: live evidence held still, without copying it (LRN-14); and their memories (LRN-15).


FOLDER = "sessions"
GENERATIONS = "generations"
_SEARCHED = ".searched"  # in a working copy: what is fetched of generations that are searched in shares
_LOCK_FILE = ".lock"
_HELD = 4
"""Bases kept read: those of sessions started within some seconds are one or two."""


@dataclass(frozen=True, slots=True)
class SessionBase:
    """What a session reads beneath its overlay."""

    base: BaseId
    learned: VersionName | None  # the version that was live
    at: float  # when it was forked, in seconds since the epoch, by the clock of a partition
    evidence: Evidence
    moments: Moments  # how much sessions that had completed by then differ


class BaseManifest(BaseModel):
    """What a base consists of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    learned: VersionName | None
    decided: VersionName | None
    at: float
    snapshots: tuple[str, ...]
    files: Mapping[str, str] = {}  # SHA-256 by name, where the base is fetched by other hosts


class BaseStore:
    """The folder `sessions/` of a store."""

    def __init__(self, root: Path, pointer: PointerFile, live: LiveEvidence) -> None:
        self._folder = root / FOLDER
        self._copy = working_copy_of(root)
        self._pointer = pointer
        self._live = live
        self._staging = StagingArea(self._folder)
        self._lock = threading.Lock()
        self._held: OrderedDict[BaseId, SessionBase] = OrderedDict()

    def writing(self, patience: Patience) -> contextlib.AbstractContextManager[None]:
        """Hold forking and pruning still, so that a base forked in here stays until it is referred to."""
        return locked(self._folder / _LOCK_FILE, patience)

    def fork(self, *, at: float) -> BaseId:
        """Hold what is live at `at`, in seconds; the same base while nothing changes. The caller holds `writing`."""
        pointer = self._pointer.read()
        staging = self._staging.stage()
        try:
            linked = [_link(path, staging / f"{path.parent.name}.parquet") for path in self._live.snapshots()]
            snapshots = [path for path in linked if path is not None]
            base = _name_of(pointer.learned, pointer.decided, snapshots)
            if not (self._folder / base).exists():
                manifest = BaseManifest(
                    learned=pointer.learned,
                    decided=pointer.decided,
                    at=at,
                    snapshots=tuple(path.name for path in snapshots),
                    files={} if self._copy is None else file_hashes(staging),
                )
                write_manifest(staging, manifest.model_dump(mode="json"))
                sync_tree(staging)
                if self._copy is not None:
                    self._copy.publish(f"{FOLDER}/{base}", staging)
                staging.rename(self._folder / base)
                sync_folder(self._folder)
        finally:
            self._staging.release(staging)
        return base

    def read(self, base: BaseId) -> SessionBase:
        """A base, as it was forked; StoreError where there is none, CorruptionError where a file is damaged."""
        with self._lock:
            session_base = self._held.get(base)
        session_base = session_base or self._read(base)
        with self._lock:
            self._held[base] = session_base
            self._held.move_to_end(base)
            while len(self._held) > _HELD:
                self._held.popitem(last=False)
        return session_base

    def prune(self, in_use: Collection[BaseId]) -> list[Path]:
        """Remove bases that nobody refers to; the caller holds `writing`."""
        unused = [path for path in self._bases() if path.name not in in_use]
        for path in unused:
            self._staging.retire(path)
            if self._copy is not None:
                self._copy.remove(f"{FOLDER}/{path.name}")
        return unused

    def names(self) -> list[BaseId]:
        """Every base that lies here."""
        return [BaseId(path.name) for path in self._bases()]

    def exists(self, base: BaseId) -> bool:
        """Whether there is a base of that name."""
        return self._folder_of(base).is_dir()

    def _read(self, base: BaseId) -> SessionBase:
        folder = self._folder_of(base)
        if not folder.is_dir():
            raise StoreError(f"{folder}: expected what a session forked from, found nothing: the session has ended")
        try:
            manifest = BaseManifest.model_validate(read_manifest(folder))
        except ValidationError as error:
            raise CorruptionError(f"{folder}: expected the base of a session, found: {error}") from error
        linked = [folder / name for name in manifest.snapshots]
        streamed = Evidence.sum(map(read_evidence, linked))
        evidence = self._live.given(manifest.learned, manifest.decided, streamed)
        return SessionBase(base, manifest.learned, manifest.at, evidence, read_session_moments(linked))

    def _folder_of(self, base: BaseId) -> Path:
        return self._folder / base if self._copy is None else self._copy.bring(f"{FOLDER}/{base}")

    def _bases(self) -> list[Path]:
        return sorted(path for path in self._folder.glob("[0-9a-f]*") if path.is_dir())


def _link(path: Path, target: Path) -> Path | None:
    try:
        os.link(path, target)
    except FileNotFoundError:
        return None
    except OSError:  # a file system without hard links
        shutil.copy2(path, target)
    return target


def _name_of(learned: str | None, decided: str | None, snapshots: Sequence[Path]) -> BaseId:
    stamps = [
        (path.name, status.st_ino, status.st_size, status.st_mtime_ns) for path in snapshots for status in [path.stat()]
    ]
    return BaseId(hashlib.sha256(json.dumps([learned, decided, stamps]).encode()).hexdigest()[:32])


class MemoryStore:
    """One file per session, named by a hash: session ids come from outside and never become part of a path.

    A file is replaced in one step, and whoever makes a new memory out of the last one holds a lock meanwhile, so that
    several processes may search for one session. Of sessions that never end the newest `MOST` are remembered.
    """

    MOST = 4096  # a memory is some 50 kB: 200 MB at most
    LOCKS = 16  # shared by all sessions: files of locks are never removed
    PATIENCE = Patience(stopped_s=1.0, seconds=5.0)  # for another search of the same session, which takes milliseconds

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER / "memories"

    def update(self, session_id: SessionId, step: Callable[[SessionMemory], SessionMemory]) -> None:
        """Replace a session's memory by what `step` makes of it; nobody else does so meanwhile."""
        path = self._path(session_id)
        with locked(self._folder / f"{_LOCK_FILE}-{int(path.stem[:8], 16) % self.LOCKS}", self.PATIENCE):
            try:
                memory = self.read(session_id)
            except CorruptionError as error:
                log.warning("%s: %s", path, error)
                memory = SessionMemory()
            self.write(session_id, step(memory))

    def write(self, session_id: SessionId, memory: SessionMemory) -> None:
        """Keep a session's memory, durably; where it is a new one, those not written for longest make room."""
        path = self._path(session_id)
        is_new = not path.exists()
        write_atomically(path, memory.to_json().encode())
        if is_new:
            self._make_room()

    def read(self, session_id: SessionId) -> SessionMemory:
        """Exactly what was kept last; an empty memory where nothing was."""
        try:
            return SessionMemory.from_json(self._path(session_id).read_bytes())
        except FileNotFoundError:
            return SessionMemory()

    def forget(self, session_id: SessionId) -> None:
        """Remove what a session that has ended left."""
        self._path(session_id).unlink(missing_ok=True)

    def _make_room(self) -> None:
        written = []
        for path in self._folder.glob("[0-9a-f]*.json"):
            with contextlib.suppress(FileNotFoundError):  # another process made room meanwhile
                written.append((path.stat().st_mtime_ns, path.name))
        for _, name in sorted(written, reverse=True)[self.MOST :]:
            (self._folder / name).unlink(missing_ok=True)

    def _path(self, session_id: SessionId) -> Path:
        return self._folder / f"{hashlib.sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()}.json"


log = logging.getLogger(__name__)

Opened = TypeVar("Opened")


class Catalog:
    """Everything published below one root. Safe for many processes: readers never wait, writers take turns."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._copy: WorkingCopy | None = working_copy_of(root)
        self._pointer = PointerFile(root)
        self._folder = root / GENERATIONS
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

    @property
    def is_remote(self) -> bool:
        """Whether the store lies in an object store, and this is a working copy."""
        return self._copy is not None

    def claim(self, on_other_hosts: OnOtherHosts) -> StoreGuard:
        """Check that every host sees this store before it is written; a store without an id gets one."""
        root = self.root.absolute()
        require_shared(root, on_other_hosts)
        with self._pointer.writing():
            return StoreGuard(root, ensure_store_id(root), url=None if self._copy is None else self._copy.url)

    def store_id(self) -> StoreId | None:
        """Which store this is; None of one that was never written."""
        return read_store_id(self.root)

    def require(self, store: StoreId | None) -> None:
        """Check, in another process maybe, that this is the store of that id; StoreError where it is not."""
        StoreGuard(self.root.absolute(), store, url=None if self._copy is None else self._copy.url)()

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
        """Remove what killed runs left behind; folders of running processes stay, and uploads of the last day."""
        guests: Collection[Path] = ()
        if self._copy is not None:
            for kind in (GENERATIONS, LEARNED, FOLDER, PARTS, PACKS):
                self._copy.sweep(kind)
            guests = RunFiles(self.root).guests()
        return [*self._staging.clean_leftovers(guests), *self.learned.staging.clean_leftovers()]

    def publish(
        self,
        staging: Path,
        *,
        expected_parent: GenerationId | None,
        elsewhere: Callable[[Manifest], Collection[str]] | None = None,
    ) -> GenerationId:
        """Make a staged generation the live one; a process killed at any point leaves the old one or the new one.

        The order is the argument: (1) verify, (2) make the files durable, (3) refuse if another went live,
        (4) rename the folder and make that durable, (5) replace the pointer and make that durable. In an object store
        (4) is an upload with the manifest last, and (5) a compare-and-set.

        Args:
            elsewhere: Has the hosts that built a generation send its files, each verified, and says which these were;
                of a generation that is not built on this host alone, which has no copy of it then.

        Raises:
            CorruptionError: The staged files are not those of their manifest.
            StaleVersionError: Another generation than `expected_parent` is live; rebuild on top of it.
        """
        manifest = read_generation_manifest(staging)
        if elsewhere is None:
            sent: Collection[str] = ()
            verify_files(staging, manifest.files)
        else:
            sent = elsewhere(manifest)
            verify_some(staging, {file: digest for file, digest in manifest.files.items() if file not in sent})
        sync_tree(staging)
        _require_live(self._pointer.read(), expected_parent)
        if self._copy is not None:
            self._copy.publish(f"{GENERATIONS}/{manifest.id}", staging, sent)
        try:
            with self._pointer.writing():
                _require_live(self._pointer.read(), expected_parent)
                if elsewhere is None:
                    staging.rename(self._folder / manifest.id)
                    sync_folder(self._folder)
                self._pointer.replace(lambda live: _at(_require_live(live, expected_parent), manifest.id))
        except StaleVersionError:
            if self._copy is not None:  # another host was faster
                self._retire(manifest.id)
            raise
        self._staging.release(staging)
        if self._copy is not None:
            self._copy.forget([self.root / PACKS])  # what was computed for it, it holds itself
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
        live = self.pointer().generation
        if live is None:
            return {}
        with contextlib.suppress(StoreError):  # where it is here, nothing else is asked for
            return read_generation_manifest(self._folder / live).precisions
        readable = self.generations()
        return next((one for one in readable if one.id == live), readable[-1]).precisions if readable else {}

    def verify(self, generation: GenerationId) -> Manifest:
        """Compare every file of a generation with its manifest."""
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
        return self._folder / generation if self._copy is None else self._copy.bring(f"{GENERATIONS}/{generation}")

    def _retire(self, generation: GenerationId) -> None:
        if self._copy is not None:
            self._copy.remove(f"{GENERATIONS}/{generation}")
        if (self._folder / generation).is_dir():
            self._staging.retire(self._folder / generation)

    def rollback(self, generation: GenerationId) -> Pointer:
        """Make an older generation live again, after verifying it; errors as in `verify`, and what is live stays."""
        self.verify(generation)
        return self._pointer.move(lambda live: _at(live, generation))

    def prune(self, keep: int, *, among: Collection[GenerationId] | None = None) -> list[GenerationId]:
        """Remove all but the `keep` newest, the live and the previous generation; what was removed, oldest first.

        Args:
            among: Others than these stay, too; None for all there are.
        """
        if keep < 0:
            raise ValueError(f"expected to keep 0 or more generations, got {keep}")
        with self._pointer.writing():
            live = self._pointer.read()
            names = [manifest.id for manifest in self.generations()]
            spared = {live.generation, live.previous, *names[max(0, len(names) - keep) :]}
            removed = [name for name in names if name not in spared and (among is None or name in among)]
            if self._copy is not None and among is None:  # what other hosts removed
                removed += [
                    GenerationId(path.name)
                    for path in self._folders()
                    if path.name not in names and path.name not in spared
                ]
            for name in removed:
                self._retire(name)
        remove_copies(self.root / COPIES_FOLDER, removed)
        return removed

    def open_live(self, *, searched: bool = True) -> Generation:
        """Open the live generation; where it is damaged, the one before it, with a warning.

        Args:
            searched: Compare every file with its hash, and open what searches; who only names contents does without.
        """
        opened = partial(open_generation, verify=searched, searched=searched, copies=self.root / COPIES_FOLDER)
        return self._first_whole(opened)

    def verified_live(self) -> GenerationId:
        """The generation that `open_live` would open, verified: it may be opened without comparing again."""
        return self._first_whole(verify_generation).id

    def open(self, generation: GenerationId) -> Generation:
        """Open a generation that `verified_live` named; errors as in `open_generation`."""
        return open_generation(self.folder_of(generation), verify=False, copies=self.root / COPIES_FOLDER)

    def open_tables(self, generation: GenerationId, parts: Callable[[Manifest], Sequence[IndexPart]]) -> Generation:
        """Open a generation whose shards are searched elsewhere: its tables and its graph, verified once."""
        folder, manifest = self._some_of(generation, "tables", lambda _manifest, file: is_table(file))
        return open_generation(folder, verify=False, copies=self.root / COPIES_FOLDER, parts=parts(manifest))

    def open_share(self, generation: GenerationId, share: Share) -> Indexes | None:
        """Open the indexes of a share of a generation's shards, verified once; None where it has none."""
        folder, manifest = self._some_of(generation, f"{share.number}-of-{share.of}", share.has)
        return open_indexes(folder, manifest, share) if share.rows(manifest) else None

    def drop_share(self, generation: GenerationId, share: Share) -> None:
        """Remove what was fetched of a share; a store that lies here keeps it."""
        shutil.rmtree(self.root / _SEARCHED / f"{share.number}-of-{share.of}" / GENERATIONS / generation, True)

    def _some_of(
        self, generation: GenerationId, name: str, wanted: Callable[[Manifest, str], bool]
    ) -> tuple[Path, Manifest]:
        """A folder that has some files of a generation: verified here, or, once, as they are fetched."""
        if self._copy is None:
            folder = self.folder_of(generation)
            manifest = read_generation_manifest(folder)
            verify_some(folder, {file: digest for file, digest in manifest.files.items() if wanted(manifest, file)})
            return folder, manifest
        published = f"{GENERATIONS}/{generation}"
        facts = self._copy.bring(published, within=f"{_SEARCHED}/manifests", wanted=lambda _file: False)
        manifest = read_generation_manifest(facts)
        within = f"{_SEARCHED}/{name}"
        return self._copy.bring(published, within=within, wanted=partial(wanted, manifest)), manifest

    def make_live(self, version: VersionName) -> Pointer:
        """Make a learned version live, after verifying it; an older one just as well."""
        self.learned.read(version)
        return self._pointer.move(
            lambda live: replace(live, learned=version, decided=max(version, live.decided or version))
        )

    def leave_out(self, version: VersionName) -> Pointer:
        """Settle a version that is not to go live: what was streamed up to its cut counts no more."""
        self.learned.read(version)
        return self._pointer.move(lambda live: replace(live, decided=max(version, live.decided or version)))

    def relations(self) -> tuple[Relation, ...]:
        """Relations that were declared in this store; CorruptionError where their file holds none."""
        return read_relations(self.root)

    def declare(self, relation: Relation) -> None:
        """Add a relation to those of this store; one that is declared already stays as it is."""
        with self._pointer.writing():
            change_relations(self.root, lambda declared: [*declared, relation])

    def retract(self, relation: Relation) -> None:
        """Take a relation out again, whoever declared it here and when."""
        gone = (relation.uri, relation.kind, relation.target)
        with self._pointer.writing():
            change_relations(
                self.root, lambda declared: [one for one in declared if (one.uri, one.kind, one.target) != gone]
            )

    def _first_whole(self, opened: Callable[[Path], Opened]) -> Opened:
        """What the live generation's folder opens as; where it is damaged, the folder of the one before it."""
        while True:
            pointer = self._pointer.read()
            if pointer.generation is None:
                raise NothingPublishedError("expected a live generation, found none: run `weft index`")
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
            f"no generation can be opened, the live one because: {reason}: index again with `weft index`"
        ) from reason

    def _published(self) -> Iterator[Path]:
        if self._copy is None:
            return self._folders()
        pointer = self._pointer.read()
        named = (pointer.generation, pointer.previous)
        return iter(self._copy.manifests(GENERATIONS, *(each for each in named if each is not None)))

    def _folders(self) -> Iterator[Path]:
        if self._folder.is_dir():
            yield from (path for path in sorted(self._folder.iterdir()) if path.is_dir() and path.name[0] != ".")


def _require_live(live: Pointer, expected: GenerationId | None) -> Pointer:
    if live.generation != expected:
        raise StaleVersionError(
            f"expected {expected or 'nothing'} to be live, found {live.generation or 'nothing'}; "
            "build again on top of it"
        )
    return live


def _at(live: Pointer, generation: GenerationId) -> Pointer:
    previous = live.previous if generation == live.generation else live.generation
    return replace(live, generation=generation, previous=previous)
