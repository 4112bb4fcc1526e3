"""Time as a value that is passed in: pure code takes `now`, only the shell asks this module."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since the epoch."""

SECONDS_PER_DAY = 86_400


def system_clock() -> float:
    """Seconds since the epoch, by this machine's clock."""
    return time.time()


def day_of(seconds: float) -> int:
    """Days since the epoch, the bucket that evidence is kept in."""
    return int(seconds // SECONDS_PER_DAY)


def stamp(seconds: float) -> str:
    """A time in seconds since the epoch, for people."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(seconds))
