"""Milliseconds by stage, for the answer's own account of its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Times the stages of one answer."""

    def __init__(self, channels_ms: float) -> None:
        self.timings_ms: dict[str, float] = {"channels": channels_ms}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what runs inside under this name."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.timings_ms[name] = (time.perf_counter() - started) * 1000.0
