"""Whether every host sees the sources that were listed on one: what a worker cannot find would be lost (SCL-1)."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from weft.catalog.store_id import SHARE
from weft.domain.errors import SourceError
from weft.ingestion.git.safe_files import UNREADABLE, VANISHED
from weft.ingestion.report import REJECTED
from weft.ingestion.sources.files import BAD_SIDECAR
from weft.ingestion.sources.items import SourceItem, StoredItem
from weft.ingestion.sources.sources import paths_of, root_of
from weft.ingestion.units import Unit
from weft.runtime.stages import Executor

SUSPECT = tuple(f"{REJECTED}{reason}" for reason in (UNREADABLE, VANISHED, BAD_SIDECAR))
"""Counts of what was rejected, of which another host may see more."""

_NOTHING = "nothing"
_LOOKED_UP = 64  # items before a run: milliseconds on a network file system, and another tree differs in some of them


def require_sources(items: Sequence[SourceItem], executor: Executor) -> None:
    """Check before a run that other hosts see its sources, and of what lies in them an even sample."""
    items = [item for item in items if not _is_brought(item)]
    sources = dict.fromkeys(root_of(item) for item in items)
    require_same_view([*sources, *_paths(sampled(items))], executor)


def _is_brought(item: SourceItem) -> bool:
    """Whether any host can fetch an item by itself."""
    return not isinstance(item, StoredItem) and item.origin is not None


def sampled(items: Sequence[SourceItem]) -> list[SourceItem]:
    """At most so many of the items as are looked up before a run, evenly spread over all of them."""
    count = min(len(items), _LOOKED_UP)
    return [items[index * len(items) // count] for index in range(count)]


def require_gone(unit: Unit, part: Path, executor: Executor) -> None:
    """Check that what a worker could not read of a unit cannot be read anywhere: only then it may be rejected."""
    items = [item for item in unit.items if not _is_brought(item)]
    require_same_view(list(_paths(items)), executor)
    paths = {place: path for item in items for place, path in paths_of(item).items()}
    for place in _vanished(part):
        if place in paths and (now := described(paths[place])) != _NOTHING:
            raise SourceError(
                f"{paths[place]}: expected the file that was listed, a worker found nothing there, and now there is "
                f"{now}: run again when nobody replaces it"
            )


def require_same_view(paths: Collection[Path], executor: Executor) -> None:
    """Check that all hosts see the same at some paths; what changes meanwhile is no difference."""
    here = _described(paths)
    for host, there in executor.on_other_hosts(partial(_described, paths)):
        for path, expected, seen in zip(paths, here, there, strict=True):
            if seen != expected == described(path):
                raise SourceError(
                    f"{path} on host {host}: expected {expected}, as on host {socket.gethostname()}, which listed the "
                    f"sources, found {seen}: {SHARE}; or read them on one host alone (--here)"
                )


def described(path: Path) -> str:
    """What this host sees at a path, following no link."""
    try:
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode):
            # A network file system may tell of a file what it remembers; of one that is opened it asks its server.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                return f"a file of {os.fstat(descriptor).st_size} bytes"
            finally:
                os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return _NOTHING
    except OSError as error:
        return f"what cannot be read ({error.strerror})"
    return "a folder" if stat.S_ISDIR(status.st_mode) else "what is neither a file nor a folder"


def _described(paths: Iterable[Path]) -> list[str]:
    return [described(path) for path in paths]


def _paths(items: Iterable[SourceItem]) -> dict[Path, None]:
    return dict.fromkeys(path for item in items for path in paths_of(item).values())


def _vanished(part: Path) -> list[str]:
    """Places of items that a worker found nothing at."""
    path = part / "rejected.parquet"
    rows = pq.read_table(path, columns=["uri", "reason"]).to_pylist() if path.exists() else []
    return [row["uri"] for row in rows if row["reason"] == VANISHED]
