"""A disk of a few MiB that fills up, gets room again, and is mounted without writing; making one takes root."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

KIB = 1024


class SmallDisk:
    """A file system in memory at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self, left_kib: int = 0) -> None:
        """Leave so much room, to the page."""
        with contextlib.suppress(OSError), self._filler.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(64 * KIB))
        os.truncate(self._filler, self._filler.stat().st_size - left_kib * KIB)
        assert self.room_kib() == left_kib

    def free(self) -> None:
        """Give the room back."""
        self._filler.unlink(missing_ok=True)

    def room_kib(self) -> int:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize // KIB

    def remount(self, mode: str) -> None:
        """Mount it `ro` or `rw`."""
        subprocess.run(["mount", "-o", f"remount,{mode}", str(self.path)], check=True, capture_output=True)


@contextlib.contextmanager
def small_disk(path: Path, *, mib: int) -> Iterator[SmallDisk]:
    """One as long as the block lasts; the test is skipped where none can be mounted."""
    path.mkdir(parents=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(path)], check=False, capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"a disk of its own cannot be mounted here: {made.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
