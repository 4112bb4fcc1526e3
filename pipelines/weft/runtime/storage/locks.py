"""Locks of files, held for a block; and, where one cannot be had, by whom it is held.

A lock dies with its process, and only with it: one that was stopped keeps what it holds. Whoever waits for it would
wait for ever, so waiting ends with an error that names the process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from weft.domain.errors import StoreError

_LOCKS, _PROCESSES = Path("/proc/locks"), Path("/proc")
_ASK_EVERY_S = 0.02
_NAME_BYTES = 512  # more than a process id and the longest name of a host take


class LockHolder(NamedTuple):
    """A process that holds a lock of a file."""

    pid: int
    is_stopped: bool  # whether it does nothing until somebody lets it go on

    def __str__(self) -> str:
        if self.is_stopped:
            return f"process {self.pid}, which is stopped: end it (kill -KILL {self.pid}), or let it go on (-CONT)"
        return f"process {self.pid}: wait for it, or end it"


class Patience(NamedTuple):
    """How long to wait for a lock, in seconds."""

    stopped_s: float  # for one that a stopped process holds
    seconds: float  # for any other


def holders_of(path: Path) -> list[LockHolder]:
    """Processes that hold a lock of a file, by pid; none where the system does not tell, as only Linux does.

    The file is not opened: closing it would let go of what this process itself holds of it.
    """
    try:
        status, locks = path.stat(), _LOCKS.read_text(encoding="ascii")
    except OSError:
        return []
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    pids = set()
    for line in locks.splitlines():
        # "3: POSIX ADVISORY WRITE 4711 fe:00:131 120 120"; who waits stands behind an arrow.
        parts = line.split()
        if parts[1] != "->" and parts[3] == "WRITE" and parts[5] == place:
            pids.add(int(parts[4]))
    return [LockHolder(pid, _is_stopped(pid)) for pid in sorted(pids) if pid > 0]


def users_of(folder: Path) -> list[LockHolder]:
    """Other processes that work in a folder or have a file below it open; none where the system does not tell."""
    below = str(folder.resolve())
    others = (process for process in _PROCESSES.glob("[0-9]*") if process.name != str(os.getpid()))
    pids = [
        int(process.name)
        for process in others
        if any(place == below or place.startswith(f"{below}/") for place in _open_places(process))
    ]
    return [LockHolder(pid, _is_stopped(pid)) for pid in sorted(pids)]


def _open_places(process: Path) -> Iterator[str]:
    """Where a process works, and the files that it has open or mapped."""
    with contextlib.suppress(OSError):
        for link in (process / "cwd", *(process / "fd").iterdir()):
            with contextlib.suppress(OSError):
                yield str(link.readlink())
        for line in (process / "maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            yield line.partition("/")[1] + line.partition("/")[2]


def await_lock(take: Callable[[float], bool], path: Path, patience: Patience) -> None:
    """Take a lock as soon as it can be had."""
    # Asking who holds it reads all locks of the system: only after the shorter patience is it worth that. Whom a
    # signal stopped lets go of nothing, so that waiting on would be in vain.
    if take(min(patience)):
        return
    held_by = holders_of(path)
    if not any(holder.is_stopped for holder in held_by):
        if take(max(0.0, patience.seconds - patience.stopped_s)):
            return
        held_by = holders_of(path)
    by = " and ".join(map(str, held_by)) or "a process that cannot be seen from here"
    raise StoreError(f"{path}: expected its lock within {patience.seconds:g} s, found it held by {by}")


@contextlib.contextmanager
def locked(path: Path, patience: Patience) -> Iterator[None]:
    """Hold a file's lock, which nobody else can hold meanwhile; the file is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        await_lock(lambda seconds: _taken(descriptor, seconds), path, patience)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def exclusive_lock(path: Path, doing: str) -> Iterator[None]:
    """Hold a file's lock for what one process at a time may do; the file names that process, and is gone afterwards."""
    missing = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _opened_alone(path, doing)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        # Removed while it is held: whoever waits then sees that what it locked has no name any more, and begins anew.
        path.unlink(missing_ok=True)
        os.close(descriptor)
        for folder in missing:
            with contextlib.suppress(OSError):  # it holds something by now
                folder.rmdir()


def _opened_alone(path: Path, doing: str) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _taken(descriptor, 0.0):
            by = os.pread(descriptor, _NAME_BYTES, 0).decode("utf-8", "replace").strip()
            os.close(descriptor)
            raise StoreError(
                f"expected to be alone in {doing}, found {by or 'another process'} at it: wait for it, or end it"
            )
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)  # whoever held it before has removed it: the next one is made anew


def _taken(descriptor: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_ASK_EVERY_S)
        else:
            return True


def _is_stopped(pid: int) -> bool:
    try:
        status = (_PROCESSES / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    # The name stands in parentheses, and may hold any; the state follows the last one.
    return status.rpartition(")")[2].split()[0] in {"T", "t"}
