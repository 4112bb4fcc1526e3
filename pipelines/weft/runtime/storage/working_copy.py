"""The copy on this machine's disk of a store that lies in an object store (SCL-4).

What works on a store sees the folder of its copy. Published folders are whole and never change: they are fetched once,
each file compared with its manifest. Small tables that change, such as the pointer to what is live, are looked up every
two seconds and replaced by compare-and-set. What else lies in the folder (databases of updaters, caches, what a
service announces) belongs to this machine alone.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import random
import secrets
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from weft.domain.errors import ConfigurationError, CorruptionError, StoreError
from weft.runtime.storage.files import (
    MANIFEST_FILE,
    canonical,
    read_manifest,
    sha256_of,
    sync_tree,
    write_atomically,
)
from weft.runtime.storage.objects import Objects, is_url, objects_at, require_scheme

MARKER = "remote.json"
"""In a working copy: the URL of the store, and which copy of it this is."""

POINTER, IDENTITY = "current.json", "store.json"
"""Tables that lie at the top of an object store; all others lie below `live/`."""

GRACE_S = 86_400.0
"""After which what no manifest names is taken for a leftover: no upload and no fetch takes so long."""

FOLLOW_S = 2.0
"""That a change elsewhere may stay unseen here."""

BRIEF_S, AWAY_S = 5.0, 30.0
"""That who has a copy waits for a store which cannot be reached, and then goes on without it."""

DAMAGED_S, DAMAGED_MOST_S = 2.0, 300.0
"""That what was damaged is not fetched again: each time twice as long, at most that long."""

HEAD = "head.json"
"""A table of the files that take the place of those beside it: key and SHA-256 by name; and its `owner`."""

_LIVE = "live/"
_ROUNDS = 60  # of a compare-and-set against other writers, who each need some hundredths of a second
_AT_ONCE = 8  # files that are sent or fetched side by side
_FETCHING = ".fetching-"
_VARIABLE = "WEFT__STORAGE__LOCAL"
_log = logging.getLogger(__name__)
_copies: dict[Path, WorkingCopy] = {}
_lock = threading.Lock()


def place_of(root: str, local: str | None = None) -> Path:
    """The folder to work in: `root` itself, or the working copy of the store at that URL, which is made.

    Args:
        root: A folder or a URL.
        local: The working copy, where it is not to lie below the user's cache folder.
    """
    if not is_url(root):
        return Path(root).expanduser()
    url = root.rstrip("/")
    name = f"{url.rpartition('/')[2]}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    local = local or os.environ.get(_VARIABLE)
    folder = (Path(local) if local else cache / "weft" / "stores" / name).expanduser().absolute()
    make_working_copy(folder, url)
    return folder


def make_working_copy(folder: Path, url: str) -> None:
    """Make a folder the working copy of the store at a URL, where it is not that already; nothing is fetched."""
    require_scheme(url)
    marked = _marked(folder)
    if marked is None:
        if (folder / IDENTITY).exists():
            raise ConfigurationError(f"{folder}: expected the working copy of {url}, found a store of its own")
        write_atomically(folder / MARKER, json.dumps({"url": url, "copy": secrets.token_hex(16)}).encode())
    elif marked["url"] != url:
        raise ConfigurationError(f"{folder}: expected the working copy of {url}, found that of {marked['url']}")


def working_copy_of(root: Path) -> WorkingCopy | None:
    """The working copy that a folder is; None of a store that lies in the folder itself."""
    marked = _marked(root)
    if marked is None:
        return None
    root = root.absolute()
    with _lock:
        copy = _copies.get(root)
        if copy is None or copy.id != marked["copy"]:
            copy = _copies[root] = WorkingCopy(root, marked["url"], marked["copy"])
    return copy


def url_of(root: Path) -> str | None:
    """The URL of the store that a folder is the working copy of; None of a store that lies in the folder itself."""
    return (_marked(root) or {}).get("url")


def replace_table(root: Path, name: str, change: Callable[[bytes | None], bytes]) -> bytes:
    """Replace a small table of a store by what `change` makes of it; the caller holds its lock among these processes.

    Where the store lies in an object store, `change` is called again if another host was faster.
    """
    copy = working_copy_of(root)
    if copy is not None:
        return copy.update(name, change)
    path = root / name
    data = change(path.read_bytes() if path.exists() else None)
    write_atomically(path, data)
    return data


def _marked(root: Path) -> Mapping[str, str] | None:
    try:
        marked: Mapping[str, str] = json.loads((root / MARKER).read_bytes())
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # who may not read it is told by what is read next
        return None
    return marked


@dataclass(frozen=True, slots=True)
class _Damage:
    """What a folder that was fetched last failed with, and until when that stands."""

    error: CorruptionError
    wait_s: float
    until: float


class WorkingCopy:
    """One copy; shared by threads. Names are paths below the store, as `generations/…`."""

    def __init__(self, root: Path, url: str, identity: str) -> None:
        self.root = root
        self.url = url
        self.id = identity
        self._follow_at = float("-inf")
        self._seen: dict[str, str] = {}
        self._damages: dict[Path, _Damage] = {}
        self._lock = threading.RLock()

    @cached_property
    def objects(self) -> Objects:
        """Where the store lies; a process that only finds its service never reaches for it."""
        return objects_at(self.url)

    def follow(self, *, now: bool = False) -> None:
        """Bring tables up to what the store holds, if that was not done within two seconds.

        A store that cannot be reached leaves a copy as it is, with a warning, once there is one.
        """
        with self._lock:
            if not now and time.monotonic() < self._follow_at:
                return
            copied = (self.root / POINTER).exists()
            objects = objects_at(self.url, BRIEF_S) if copied else self.objects
            try:
                if not (self.root / IDENTITY).exists() or self._follow_at == float("-inf"):
                    self._follow_identity(objects)
                self._follow(POINTER, POINTER, objects)
                for listed in objects.list(_LIVE):
                    if self._seen.get(listed.key) != listed.tag:
                        self._follow(listed.key, listed.key.removeprefix(_LIVE), objects)
                        self._seen[listed.key] = listed.tag
                wait_s = FOLLOW_S
            except CorruptionError:
                raise
            except StoreError as error:
                if not copied:
                    raise
                wait_s = AWAY_S
                _log.warning("what was last known of %s stands for %g s: %s", self.url, wait_s, error)
            self._follow_at = time.monotonic() + wait_s

    def update(self, name: str, change: Callable[[bytes | None], bytes]) -> bytes:
        """Replace a table by what `change` makes of it; it is called again where another writer was faster."""
        key = name if name in {POINTER, IDENTITY} else _LIVE + name
        for _ in range(_ROUNDS):
            there = self.objects.get(key)
            before = None if there is None else there.data
            data = change(before)
            if data == before or self.objects.swap(key, data, None if there is None else there.tag) is not None:
                with self._lock:
                    write_atomically(self.root / name, data)
                return data
            time.sleep(random.uniform(0.0, 0.1))  # noqa: S311  nothing is kept secret by it
        raise StoreError(f"{self.url}: expected to replace {name}, found other writers at it all the time: run again")

    def look_up(self, name: str) -> None:
        """Bring one table up to what the store holds now; a list may come late, a name does not."""
        self._follow(_LIVE + name, name, self.objects)

    def publish(self, name: str, folder: Path, sent: Collection[str] = ()) -> bool:
        """Send a complete folder, its manifest last; False where another folder has that name already.

        Args:
            sent: Files that other hosts have sent.
        """
        values = read_manifest(folder)
        self.send_some(name, values, folder, [file for file in values["files"] if file not in sent])
        manifest = (folder / MANIFEST_FILE).read_bytes()
        if self.objects.create(f"{name}/{MANIFEST_FILE}", manifest):
            return True
        there = self.objects.get(f"{name}/{MANIFEST_FILE}")
        return there is not None and there.data == manifest

    def send_some(self, name: str, manifest: Mapping[str, Any], folder: Path, files: Iterable[str]) -> None:
        """Send some files of what is to be published with that manifest."""
        below = _below(name, manifest)
        self.each(lambda file: self.objects.put(f"{below}/{file}", folder / file), files)

    def rewrite(self, name: str, folder: Path) -> None:
        """Send a folder in the place of one with the same name, which is removed here and there (LES-14)."""
        values = read_manifest(folder)
        below = _below(name, values)
        self.each(lambda file: self.objects.put(f"{below}/{file}", folder / file), values["files"])
        manifest = (folder / MANIFEST_FILE).read_bytes()
        self.objects.put(f"{name}/{MANIFEST_FILE}", manifest)
        gone = [each.key for each in self.objects.list(f"{name}/") if not each.key.startswith((below, f"{name}/m"))]
        self.objects.delete(gone)
        self.update(_REWRITTEN, lambda data: canonical({**json.loads(data or b"{}"), name: _digest(manifest)}))

    def bring(self, name: str, *, within: str = "", wanted: Callable[[str], bool] = lambda _file: True) -> Path:
        """The folder of that name, fetched if it is not here; where the store has none, there is none.

        Args:
            within: Below which folder it lies here, where some `wanted` of its files are all that is fetched.

        Raises:
            CorruptionError: A file is damaged there, or was when it was fetched last, a short while ago.
        """
        folder = self.root / within / name
        if folder.is_dir():
            return folder
        damage = self._damages.get(folder)
        if damage is not None and time.monotonic() < damage.until:
            raise CorruptionError(str(damage.error))
        staging = folder.parent / f"{_FETCHING}{secrets.token_hex(8)}"
        try:
            if self._fetched(name, staging, wanted):
                staging.rename(folder)
            self._damages.pop(folder, None)
        except CorruptionError as error:
            if damage is None:
                _log.warning("fetched again after %g s, and then ever more rarely: %s", DAMAGED_S, error)
            wait_s = DAMAGED_S if damage is None else min(DAMAGED_MOST_S, 2.0 * damage.wait_s)
            self._damages[folder] = _Damage(error, wait_s, time.monotonic() + wait_s)
            raise
        except OSError:
            if not folder.is_dir():  # another process may have been first
                raise
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return folder

    def add(self, name: str, folder: Path, wanted: Callable[[str], bool]) -> None:
        """Have the manifest and some further files of what is published in a folder of this host."""
        if not (folder / MANIFEST_FILE).exists():
            there = self.objects.get(f"{name}/{MANIFEST_FILE}")
            if there is None:
                raise StoreError(f"{self.url}: expected {name}, found none: it was removed meanwhile; run again")
            write_atomically(folder / MANIFEST_FILE, there.data)
        values = read_manifest(folder)
        below, files = _below(name, values), values["files"]
        missing = [file for file in files if wanted(file) and not (folder / file).exists()]
        self.each(lambda file: self.fetch(f"{below}/{file}", folder / file, files[file]), missing)

    def manifests(self, kind: str, *others: str) -> list[Path]:
        """Folders that hold the manifests, and these alone, of all that is published below `generations`, say.

        Args:
            others: Names of some that are there, though a list that comes late may lack them.
        """
        folders = []
        for name in sorted({*self.names(kind), *others}):
            folder = self.root / kind / ".manifests" / name
            if not folder.is_dir() and (there := self.objects.get(f"{kind}/{name}/{MANIFEST_FILE}")) is not None:
                write_atomically(folder / MANIFEST_FILE, there.data)
            if folder.is_dir():
                folders.append(folder)
        return folders

    def names(self, kind: str) -> list[str]:
        """What is published below a folder; a list that comes late lacks the newest."""
        keys = (each.key.split("/") for each in self.objects.list(f"{kind}/"))
        return sorted(parts[1] for parts in keys if len(parts) == 3 and parts[2] == MANIFEST_FILE)

    def remove(self, name: str) -> None:
        """Remove a published folder from the store, its manifest first; the copy of it here stays."""
        self.objects.delete([f"{name}/{MANIFEST_FILE}"])
        self.objects.delete(each.key for each in self.objects.list(f"{name}/"))
        kind, _, last = name.rpartition("/")
        shutil.rmtree(self.root / kind / ".manifests" / last, ignore_errors=True)

    def sweep(self, kind: str) -> list[str]:
        """Remove what no manifest names and is older than the grace period; the names that this was of."""
        oldest = time.time() - GRACE_S
        swept = []
        parts: defaultdict[str, list[str]] = defaultdict(list)
        for each in self.objects.list(f"{kind}/"):
            name, _, rest = each.key.removeprefix(f"{kind}/").partition("/")
            if each.changed_at < oldest and rest != MANIFEST_FILE:
                parts[name].append(each.key)
        for name, keys in parts.items():
            # By its name: a list may come late, and lack the manifest of what was published since.
            there = self.objects.get(f"{kind}/{name}/{MANIFEST_FILE}")
            below = "" if there is None else _below(f"{kind}/{name}", json.loads(there.data))
            gone = [key for key in keys if not below or not key.startswith(f"{below}/")]
            if gone:
                self.objects.delete(gone)
                swept.append(f"{kind}/{name}")
        return swept

    def send(self, path: Path) -> None:
        """Send one whole file, under the name that it has here."""
        self.objects.put(path.relative_to(self.root).as_posix(), path)

    def forget(self, paths: Iterable[Path]) -> None:
        """Remove files, or all below folders, from the store."""
        for path in paths:
            name = path.relative_to(self.root).as_posix()
            self.objects.delete([name])
            self.objects.delete(each.key for each in self.objects.list(f"{name}/"))

    def receive(self, name: str) -> None:
        """Have a folder hold the files that the store has below that name, and no others."""
        there = {each.key for each in self.objects.list(f"{name}/")}
        here = {path.relative_to(self.root).as_posix() for path in (self.root / name).rglob("*.parquet")}
        self.each(lambda key: self.fetch(key, self.root / key), there - here)
        for gone in here - there:
            (self.root / gone).unlink(missing_ok=True)

    def _follow_identity(self, objects: Objects) -> None:
        there, path = objects.get(IDENTITY), self.root / IDENTITY
        here = path.read_bytes() if path.exists() else None
        if here is not None and (there is None or there.data != here):
            raise CorruptionError(
                f"{self.url}: expected the store that {self.root} is a working copy of, found "
                f"{'none' if there is None else 'another'}: correct the URL, or remove that folder"
            )
        if there is not None and here is None:
            write_atomically(path, there.data)

    def _follow(self, key: str, name: str, objects: Objects) -> None:
        there, path = objects.get(key), self.root / name
        if there is None or (path.exists() and path.read_bytes() == there.data):
            return
        if path.name == HEAD:
            self._unpack(json.loads(there.data), path.parent)
        elif name == _REWRITTEN:
            self._drop_rewritten(json.loads(there.data))
        write_atomically(path, there.data)

    def _unpack(self, head: Mapping[str, Any], folder: Path) -> None:
        """Have the files that a head names take the place of those here, unless they came from here."""
        if head["owner"] == self.id:
            return
        for name, (key, expected) in (head["files"] or {}).items():
            staged = folder / f".{name}.{secrets.token_hex(4)}"
            staged.parent.mkdir(parents=True, exist_ok=True)
            try:
                self.fetch(key, staged, expected)
                staged.replace(folder / name)
            finally:
                staged.unlink(missing_ok=True)

    def _drop_rewritten(self, rewritten: Mapping[str, str]) -> None:
        for name, digest in rewritten.items():
            manifest = self.root / name / MANIFEST_FILE
            if manifest.exists() and _digest(manifest.read_bytes()) != digest:
                shutil.rmtree(manifest.parent)

    def _fetched(self, name: str, staging: Path, wanted: Callable[[str], bool]) -> bool:
        there = self.objects.get(f"{name}/{MANIFEST_FILE}")
        if there is None:
            return False
        staging.mkdir(parents=True)
        (staging / MANIFEST_FILE).write_bytes(there.data)
        self.add(name, staging, wanted)
        sync_tree(staging)
        return True

    def fetch(self, key: str, path: Path, expected: str | None = None) -> None:
        """Have one object in a file, in one step, and compare its SHA-256 where one is given."""
        path.parent.mkdir(parents=True, exist_ok=True)
        staged = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            if not self.objects.fetch(key, staged):
                raise StoreError(f"{self.url}: expected {key}, found none: it was removed meanwhile; run again")
            if expected is not None and (actual := sha256_of(staged)) != expected:
                raise CorruptionError(f"{self.url}/{key}: expected sha256 {expected}, found {actual}; roll back")
            staged.replace(path)
        finally:
            staged.unlink(missing_ok=True)

    @staticmethod
    def each(do: Callable[[str], None], names: Iterable[str]) -> None:
        """Do something for every name, some side by side."""
        with ThreadPoolExecutor(_AT_ONCE, "objects") as threads:
            for _ in threads.map(do, sorted(names)):
                pass


_REWRITTEN = "rewritten.json"


def _below(name: str, manifest: Mapping[str, Any]) -> str:
    """Where the files of a manifest lie: runs that publish under one name do not write over each other's."""
    return f"{name}/{_digest(canonical(manifest['files']))[:16]}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
