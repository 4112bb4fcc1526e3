"""Folders under construction: invisible to readers, and recognisable as leftovers once their process is gone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Collection
from pathlib import Path

_PREFIX = ".staging-"
_PRUNED = ".pruned-"
_LOCK_SUFFIX = ".lock"


class StagingArea:
    """Makes and removes staging folders beside the published ones, so that publishing is one rename."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[Path, int] = {}

    def stage(self) -> Path:
        """A new empty folder that belongs to this process."""
        self._folder.mkdir(parents=True, exist_ok=True)
        while True:
            staging = self._folder / f"{_PREFIX}{secrets.token_hex(8)}"
            # The lock comes first and lives as long as the process: whoever can take it knows that the owner is dead.
            descriptor = os.open(_lock_of(staging), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                self._held[staging] = descriptor
                staging.mkdir()
                return staging
            os.close(descriptor)  # taken for a leftover and removed between the two calls

    def release(self, staging: Path) -> None:
        """Give a staging folder up; what is still in it is removed."""
        shutil.rmtree(staging, ignore_errors=True)
        _lock_of(staging).unlink(missing_ok=True)
        if (descriptor := self._held.pop(staging, None)) is not None:
            os.close(descriptor)

    def retire(self, published: Path) -> None:
        """Remove a published folder: out of sight in one step, then for good."""
        hidden = published.with_name(f"{_PRUNED}{published.name}-{secrets.token_hex(4)}")
        published.rename(hidden)
        shutil.rmtree(hidden)

    def clean_leftovers(self, spared: Collection[Path] = ()) -> list[Path]:
        """Remove what killed runs left behind, and return these folders; those of running processes stay.

        Args:
            spared: Folders that stay, too.
        """
        pruned = [path for path in self._folder.glob(f"{_PRUNED}*") if path.is_dir()]
        for path in pruned:
            shutil.rmtree(path, ignore_errors=True)
        staged = {path.with_name(path.name.removesuffix(_LOCK_SUFFIX)) for path in self._folder.glob(f"{_PREFIX}*")}
        staged -= {*self._held, *spared}
        return sorted([*pruned, *(path for path in staged if self._removed(path))])

    def _removed(self, staging: Path) -> bool:
        descriptor = os.open(_lock_of(staging), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(staging, ignore_errors=True)
                _lock_of(staging).unlink(missing_ok=True)
                return True
            return False
        finally:
            os.close(descriptor)


def _lock_of(staging: Path) -> Path:
    return staging.with_name(f"{staging.name}{_LOCK_SUFFIX}")
