"""Milliseconds by stage, for the answer's own account of its time."""

from __future__ import annotations

import time
from types import TracebackType


class Stopwatch:
    """Times the stages of answers that are made together; each answer is told its share."""

    def __init__(self, channels_ms: float, answers: int) -> None:
        """Begin with the time that the channels took for each of so many answers."""
        self.timings_ms: dict[str, float] = {"channels": channels_ms}
        self._answers = answers

    def stage(self, name: str) -> _Stage:
        """Time what runs inside under this name, beside what ran under it before."""
        return _Stage(self, name)

    def add(self, name: str, seconds: float) -> None:
        """Count what a stage took."""
        self.timings_ms[name] = self.timings_ms.get(name, 0.0) + seconds * 1000.0 / self._answers


class _Stage:
    """A context: a generator would cost as much as what some stages do."""

    __slots__ = ("_name", "_started", "_watch")

    def __init__(self, watch: Stopwatch, name: str) -> None:
        self._watch = watch
        self._name = name

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._watch.add(self._name, time.perf_counter() - self._started)
