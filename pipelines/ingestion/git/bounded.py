"""Reading small files that anybody may have put there."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_bounded(path: Path, limit: int, *, flags: int = 0) -> bytes:
    """The first bytes of a regular file; none where it is no such file or cannot be read, which never waits.

    Args:
        flags: Further ones of `os.open`.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(limit) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except (OSError, ValueError):  # a zero byte in a name that a file gave
        return b""
