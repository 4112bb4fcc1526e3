"""Milliseconds by stage, for the answer's own account of its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Times the stages of answers that are made together; each answer is told its share."""

    def __init__(self, channels_ms: float, answers: int) -> None:
        """Begin with the time that the channels took for each of so many answers."""
        self.timings_ms: dict[str, float] = {"channels": channels_ms}
        self._answers = answers

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what runs inside under this name, beside what ran under it before."""
        started = time.perf_counter()
        try:
            yield
        finally:
            took_ms = (time.perf_counter() - started) * 1000.0 / self._answers
            self.timings_ms[name] = self.timings_ms.get(name, 0.0) + took_ms
