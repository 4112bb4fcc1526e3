"""Sources that lie elsewhere: a prefix of an object store, or a git repository. They are brought to a folder (SCL-2).

The folder is read as any other is: the same rules leave files out, and the same URIs come of it. Objects that did not
change are not fetched again. A worker on another host fetches the object of the item that it reads. A repository is
cloned without its history, where the job runs.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from weft.domain.errors import SourceError, StoreError
from weft.ingestion.sources.items import FileItem, SourceItem, StoredItem
from weft.runtime.storage.objects import ListedObject, Objects, objects_at
from weft.runtime.storage.origins import OBJECTS, origin_of
from weft.runtime.storage.working_copy import working_copy_of

_AT_ONCE = 8
_GIT_S = 3_600.0
_log = logging.getLogger(__name__)


def bring(place: Path) -> str | None:
    """Have a place hold what its source holds now; the URL of its objects, if it is made of objects.

    Raises:
        SourceError: It cannot be read.
    """
    url = origin_of(place)
    if url is None:
        return None
    if not url.startswith(OBJECTS):
        _clone(url, place)
        return None
    try:
        _bring_objects(url, place)
    except StoreError as error:
        raise SourceError(f"source {url}: {error}") from error
    return url


def bring_item(item: SourceItem) -> None:
    """Fetch the file of an item on a host that does not have it."""
    if isinstance(item, StoredItem):
        generation = Path(item.folder).parent
        if not generation.is_dir() and (copy := working_copy_of(generation.parents[1])) is not None:
            copy.bring(generation.relative_to(copy.root).as_posix())
        return
    if item.origin is None:
        return
    path = Path(item.root, *item.path) if isinstance(item, FileItem) else Path(item.path)
    _bring_file(item.origin, path)
    if isinstance(item, FileItem) and item.sidecar is not None:
        _bring_file(f"{item.origin.rpartition('/')[0]}/{item.sidecar}", path.with_name(item.sidecar))


def _bring_file(url: str, path: Path) -> bool:
    if path.exists():
        return True
    scheme, _, rest = url.partition("://")
    parts = rest.split("/")
    buckets = 2 if scheme == "az" else 1  # an account and a container
    path.parent.mkdir(parents=True, exist_ok=True)
    objects = objects_at(f"{scheme}://{'/'.join(parts[:buckets])}")
    key = "/".join(parts[buckets:])
    listed = (each for each in objects.list(f"{key.rpartition('/')[0]}/".lstrip("/")) if each.key == key)
    return any(_fetch(objects, each, path) for each in listed)


def _bring_objects(url: str, place: Path) -> None:
    listed = {each.key: each for each in objects_at(url).list("") if _is_name(each.key)}
    if not listed:
        place.unlink(missing_ok=True)
        if not _bring_file(url, place):
            raise SourceError(f"source {url}: expected objects below that prefix or at that key, found none")
        return
    place.mkdir(parents=True, exist_ok=True)
    for path in sorted(place.rglob("*"), reverse=True):
        if path.relative_to(place).as_posix() not in listed and not path.is_dir():
            path.unlink()
    changed = [each for each in listed.values() if not _is_same(place / each.key, each)]
    for each in changed:
        (place / each.key).parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(_AT_ONCE, "source") as threads:
        for _ in threads.map(lambda each: _fetch(objects_at(url), each, place / each.key), changed):
            pass


def _fetch(objects: Objects, listed: ListedObject, path: Path) -> bool:
    staged = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if not objects.fetch(listed.key, staged):
            return False
        os.utime(staged, (listed.changed_at, listed.changed_at))  # when a file was changed is a fact about it
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)
    return True


def _is_same(path: Path, listed: ListedObject) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_size == listed.size and abs(status.st_mtime - listed.changed_at) < 1e-3


def _is_name(key: str) -> bool:
    """Whether a key can be a file's path: an object may be called anything."""
    if all(part not in {"", ".", ".."} for part in key.split("/")) and "\0" not in key:
        return True
    if not key.endswith("/"):  # what consoles make to stand for a folder
        _log.warning("the object %r is not read: expected a key that can be a file's path", key)
    return False


def _clone(url: str, place: Path) -> None:
    address, _, branch = url.partition("#")
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    command = ["git", "clone", "--quiet", "--depth", "1", *(("--branch", branch) if branch else ())]
    command += ["--", address, str(place)]
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_S, check=False, env=environment, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(f"source {url}: expected git to clone it, found: {error}") from error
    if result.returncode:
        raise SourceError(
            f"source {url}: expected a git repository to clone, found: {result.stderr.strip()[-300:]}: look at the "
            "address and at what git may read without asking"
        )
