"""What this process does with memory, garbage and threads, and who runs it; the one importer of threadpoolctl."""

from __future__ import annotations

import ctypes
import gc
import getpass
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from weft.domain.ranking import ANONYMOUS

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # M_… of malloc.h
_LARGEST_FROM_HEAP = 32 * 1024**2  # bytes: what glibc lets M_MMAP_THRESHOLD be

FREED_BYTES = 128 * 1024**2
"""Freed memory that a process which searches keeps for its next search."""


def keep_freed_memory(size: int) -> bool:
    """Keep up to `size` bytes of freed memory for later allocations, in all threads; 0 changes nothing.

    glibc gives large blocks back as soon as they are freed, and every page of the next one comes as a page fault: a
    batch of searches takes a sixth of its processor time for that. False where another C library knows no such thing.
    """
    allocator = getattr(ctypes.CDLL(None), "mallopt", None)
    if not size or allocator is None:
        return False
    return bool(allocator(_TRIM_THRESHOLD, size) and allocator(_MMAP_THRESHOLD, min(size, _LARGEST_FROM_HEAP)))


def share_arenas(count: int) -> bool:
    """Have all threads that begin from now on allocate from so many pools, each of which keeps what is freed in it.

    Where one of Python's threads runs at a time, one each would hold much and save nothing. False as above.
    """
    allocator = getattr(ctypes.CDLL(None), "mallopt", None)
    return allocator is not None and bool(allocator(_ARENA_MAX, count))


def release_freed_memory() -> None:
    """Give the system back what this process has freed: after what is done once, such as opening a generation."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@contextmanager
def linear_algebra_threads(count: int) -> Iterator[None]:
    """Limit the threads of NumPy's and SciPy's products, in the whole process; 0 leaves them as they are.

    After each product the threads of OpenBLAS wait for the next one by spinning, for tens of milliseconds: where
    products are small and many, they take more time from others than they save.
    """
    if not count:
        yield
        return
    with threadpool_limits(limits=count, user_api="blas"):
        yield


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage within a block that makes only what stays: Python would look at all of it repeatedly."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class PeriodicCollection:
    """Collects cyclic garbage at intervals, from when it is made until `end`, for a loop that leaves next to none."""

    def __init__(self, *, every_s: float) -> None:
        self._every_s = every_s
        self._due: float | None = None
        self._was_on = gc.isenabled()
        gc.disable()

    def collect_when_due(self, now: float) -> bool:
        """Collect where it is time to; whether it was. `now` is in seconds of a clock that never goes back."""
        due = self._due is not None and now >= self._due
        if due:
            gc.collect()
        if due or self._due is None:
            self._due = now + self._every_s
        return due

    def end(self) -> None:
        """Leave it to Python again, where it was."""
        if self._was_on:
            gc.enable()
            self._was_on = False


def login() -> str:
    """The name that whoever runs this is logged in by; empty where a container's user has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def speaker_of(principal: str | None) -> str:
    """Who says something: whoever is named, or else is logged in."""
    return principal or login() or ANONYMOUS
