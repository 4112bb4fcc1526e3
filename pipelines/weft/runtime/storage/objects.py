"""Whole objects by key: the one port to where a store is kept, and the adapter of a folder (SCL-3)."""

from __future__ import annotations

import hashlib
import os
import pkgutil
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

from weft.domain.errors import ConfigurationError
from weft.runtime.extras import extras_named, require
from weft.runtime.storage.files import files_below, write_atomically
from weft.runtime.storage.locks import Patience, locked

RETRY_S = 60.0
"""That a request is repeated by itself where a server is busy: who has nothing else waits for it."""

SCHEMES = ("s3", "gs", "az", "file", "memory")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://.")
_LOCK = ".objects.lock"
_PATIENCE = Patience(stopped_s=5.0, seconds=30.0)  # for one small write of another process


class StoredObject(NamedTuple):
    """An object as it was read."""

    data: bytes
    tag: str  # changes with the content


class ListedObject(NamedTuple):
    """An object as a list shows it; a list may come late."""

    key: str
    tag: str
    size: int  # bytes
    changed_at: float  # seconds since the epoch, by the clock of who keeps it


class Objects(Protocol):
    """Where objects are kept. Keys are relative paths with slashes.

    All raise StoreError where the place refuses or cannot be reached; each may be called again.
    """

    def get(self, key: str) -> StoredObject | None:
        """An object; None where there is none."""

    def fetch(self, key: str, path: Path) -> bool:
        """Write an object into a file; whether there is one. Without one the file may be left empty."""

    def put(self, key: str, data: bytes | Path) -> None:
        """Write an object over whatever is there."""

    def create(self, key: str, data: bytes) -> bool:
        """Write an object where there is none; whether it was this call that did."""

    def swap(self, key: str, data: bytes, tag: str | None) -> str | None:
        """Write an object over the one that has this tag, or over none; its own tag, None where another came first."""

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; one that is not there is no failure."""

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Objects whose key begins with a prefix that ends at a slash, or with none, in order of their keys."""


def is_url(text: str) -> bool:
    """Whether a text names a place by a URL, and not a path.

    Examples:
        >>> is_url("s3://bucket/prefix"), is_url("./folder"), is_url("C:/folder")
        (True, False, False)
    """
    return _URL.match(text) is not None


def require_scheme(url: str) -> None:
    """Check that a URL names a place that can be reached from here, without reaching for it.

    Raises:
        ConfigurationError: No such place is known.
        MissingExtraError: obstore is not installed.
    """
    scheme = match[1] if (match := _URL.match(url)) else ""
    if scheme not in SCHEMES:
        kinds = ", ".join(f"{each}://" for each in SCHEMES[:-1])
        raise ConfigurationError(f"expected a folder or a URL that begins with one of {kinds}, found {url}")
    if scheme != "file":
        require("obstore")


@lru_cache(maxsize=64)
def objects_at(url: str, patience_s: float = RETRY_S) -> Objects:
    """What a URL names, the same object for the same URL; errors as in `require_scheme`.

    Args:
        patience_s: That a request is repeated where a server is busy or cannot be reached.
    """
    require_scheme(url)
    if url.startswith("file:"):
        return FolderObjects(Path(url.removeprefix("file://")))
    if url.startswith("memory:") and patience_s != RETRY_S:  # it is there once
        return objects_at(url)
    with extras_named():  # by its name: only who uses an object store needs obstore
        remote: Callable[[str, float], Objects] = pkgutil.resolve_name("weft.runtime.storage.remote:RemoteObjects")
        return remote(url, patience_s)


class FolderObjects:
    """Objects as files below a folder that all processes see."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def get(self, key: str) -> StoredObject | None:
        """See `Objects`."""
        try:
            data = (self._root / key).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return StoredObject(data, _tag_of(data))

    def fetch(self, key: str, path: Path) -> bool:
        """See `Objects`."""
        try:
            shutil.copyfile(self._root / key, path)
        except FileNotFoundError:
            if not path.parent.is_dir():
                raise
            return False
        return True

    def put(self, key: str, data: bytes | Path) -> None:
        """See `Objects`."""
        if isinstance(data, bytes):
            write_atomically(self._root / key, data)
            return
        target = self._root / key
        staged = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        staged.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(data, staged)
            with staged.open("rb") as file:
                os.fsync(file.fileno())
            staged.replace(target)
        finally:
            staged.unlink(missing_ok=True)

    def create(self, key: str, data: bytes) -> bool:
        """See `Objects`."""
        return self.swap(key, data, None) is not None

    def swap(self, key: str, data: bytes, tag: str | None) -> str | None:
        """See `Objects`."""
        with locked(self._root / _LOCK, _PATIENCE):
            there = self.get(key)
            if (None if there is None else there.tag) != tag:
                return None
            write_atomically(self._root / key, data)
        return _tag_of(data)

    def delete(self, keys: Iterable[str]) -> None:
        """See `Objects`."""
        for key in keys:
            (self._root / key).unlink(missing_ok=True)

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """See `Objects`."""
        listed = []
        for path in files_below(self._root / prefix):
            if path.name.startswith("."):  # being written, or the lock
                continue
            status = path.stat()
            tag = f"{status.st_mtime_ns}-{status.st_ino}-{status.st_size}"
            listed.append(ListedObject(path.relative_to(self._root).as_posix(), tag, status.st_size, status.st_mtime))
        return iter(sorted(listed))


def _tag_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
