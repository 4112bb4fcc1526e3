"""How much freed memory a process keeps; the one module that talks to the C library's allocator."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_… of malloc.h
_LARGEST_FROM_HEAP = 32 * 1024**2  # bytes: what glibc lets M_MMAP_THRESHOLD be

FREED_BYTES = 128 * 1024**2
"""That a process which searches keeps for its next search."""


def keep_freed_memory(size: int) -> bool:
    """Keep up to so much freed memory for what is allocated next, from now on, in all threads; 0 changes nothing.

    By itself glibc gives large blocks back to the system as soon as they are freed, and every page of the next one
    comes as a page fault: a batch of searches takes a sixth of its processor time for that.

    Args:
        size: Bytes.

    Returns:
        Whether the C library took it: others than glibc know no such thing.
    """
    allocator = getattr(ctypes.CDLL(None), "mallopt", None)
    if not size or allocator is None:
        return False
    return bool(allocator(_TRIM_THRESHOLD, size) and allocator(_MMAP_THRESHOLD, min(size, _LARGEST_FROM_HEAP)))
