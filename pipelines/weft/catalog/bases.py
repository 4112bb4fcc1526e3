"""What sessions forked from: live evidence held still, without copying it (LRN-14); and their memories (LRN-15).

A base is a folder with hard links to the partitions' snapshots of one moment, and the names of the learned versions
then in force. Snapshots are replaced and never edited, and learned versions are immutable, so what a base stands for
cannot change. Sessions that start between two changes share one base.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from weft.catalog.learned import read_evidence
from weft.catalog.live import LiveEvidence
from weft.catalog.overlays import BaseId, read_session_moments
from weft.catalog.pointer import PointerFile
from weft.catalog.staging import StagingArea
from weft.domain.errors import CorruptionError, StoreError
from weft.domain.ids import SessionId, VersionName
from weft.domain.understanding import SessionMemory
from weft.learning.evidence import Evidence
from weft.learning.pooling.shrinkage import Moments
from weft.runtime.storage.files import read_manifest, sync_folder, sync_tree, write_atomically, write_manifest
from weft.runtime.storage.locks import Patience, locked

log = logging.getLogger(__name__)

FOLDER = "sessions"
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


class BaseStore:
    """The folder `sessions/` of a store."""

    def __init__(self, root: Path, pointer: PointerFile, live: LiveEvidence) -> None:
        self._folder = root / FOLDER
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
                )
                write_manifest(staging, manifest.model_dump(mode="json"))
                sync_tree(staging)
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
        return unused

    def names(self) -> list[BaseId]:
        """Every base there is."""
        return [BaseId(path.name) for path in self._bases()]

    def _read(self, base: BaseId) -> SessionBase:
        folder = self._folder / base
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
        """Replace a session's memory by what `step` makes of it; nobody else does so meanwhile.

        A memory that cannot be read counts as none: what a session remembers is a help, and no reason to fail it.

        Raises:
            StoreError: Another process held it all the time; then `step` was not called.
        """
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
        """Exactly what was kept last; an empty memory where nothing was.

        Raises:
            CorruptionError: The file is not what was written.
        """
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
