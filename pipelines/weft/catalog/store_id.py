"""The id of a store: by it a process on any host proves that a path leads to the very store that is meant (SCL-1)."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from weft.catalog.staging import StagingArea
from weft.domain.errors import CorruptionError, StoreError
from weft.domain.ids import StoreId
from weft.runtime.storage.working_copy import IDENTITY, make_working_copy, replace_table, working_copy_of

STORE_FILE = IDENTITY
SHARE = "put it on a file system that all hosts share, or run on one host (cluster.address: local)"
"""What helps where hosts do not see the same."""

OnOtherHosts = Callable[[Callable[[], None]], object]
"""Runs a function once on every other host of the cluster, and raises what it raises there."""


@dataclass(frozen=True, slots=True)
class _StoreFile:
    id: StoreId


_STORE_FILE = TypeAdapter(_StoreFile)


@dataclass(frozen=True, slots=True)
class StoreGuard:
    """Called by every worker before it reads or writes a store."""

    root: Path  # of the store, absolute
    id: StoreId | None  # none of a store that had none when it was looked at: any will do, it may have got one since
    # A folder that the run has made in the store: a copy of the store has its id, and not this
    made: Path | None = None
    url: str | None = None  # of an object store, of which each host has a working copy at `root`

    def __call__(self) -> None:
        """Check that this host sees the store."""
        if self.url is not None:
            make_working_copy(self.root, self.url)
        actual = read_store_id(self.root)
        if not self.root.is_dir() or self.id not in {None, actual}:
            raise StoreError(
                f"{self.root} on host {socket.gethostname()}: expected the store {self.id or 'that is searched'}, "
                f"found {actual or 'none'}: {SHARE}"
            )
        if self.made is not None and self.url is None:
            _require_made(self.root, self.made)


def read_store_id(root: Path) -> StoreId | None:
    """The id of a store, None where it has none; CorruptionError where the file holds something else."""
    path = root / STORE_FILE
    if not path.exists() and (copy := working_copy_of(root)) is not None:
        copy.follow(now=True)
    try:
        return _STORE_FILE.validate_json(path.read_bytes()).id
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValidationError as error:
        raise CorruptionError(
            f"{path}: expected the id of a store, found something else; remove it while no job runs on the store: the "
            "next one that writes makes another"
        ) from error


def ensure_store_id(root: Path) -> StoreId:
    """The id of a store, made now where it has none; the caller holds the store's writer lock."""
    store = read_store_id(root)
    if store is None:
        store = StoreId(secrets.token_hex(16))
        # Git leaves the store out, and so does Ray where a working directory that holds it is uploaded with a job.
        (root / ".gitignore").write_text("*\n", encoding="utf-8")
        made = json.dumps({"id": store}).encode() + b"\n"
        store = _STORE_FILE.validate_json(replace_table(root, STORE_FILE, lambda theirs: theirs or made)).id
    return store


def require_shared(root: Path, on_other_hosts: OnOtherHosts) -> None:
    """Check that every host of the cluster sees one and the same folder, by a folder made in it for the occasion.

    Of an object store every host gets a working copy, and reads it.
    """
    if (copy := working_copy_of(root)) is not None:
        on_other_hosts(partial(_require_reached, root, copy.url))
        return
    area, missing = StagingArea(root), [folder for folder in (root, *root.parents) if not folder.exists()]
    area.clean_leftovers()
    made = area.stage()
    try:
        on_other_hosts(partial(_require_made, root, made))
    except BaseException:
        area.release(made)
        for folder in missing:
            with contextlib.suppress(OSError):  # somebody else has put something into it
                folder.rmdir()
        raise
    area.release(made)


def _require_reached(root: Path, url: str) -> None:
    make_working_copy(root, url)
    read_store_id(root)


def _require_made(root: Path, made: Path) -> None:
    if not made.is_dir():
        raise StoreError(
            f"{root} on host {socket.gethostname()}: expected the store that the run writes to, found no {made.name} "
            f"in it, which the run has just made: {SHARE}"
        )
