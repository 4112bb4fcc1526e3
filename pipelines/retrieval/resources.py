"""What all stages of a search work with, and what times them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from types import TracebackType

from pipelines.retrieval.channels.rankings import Ints
from pipelines.retrieval.channels.run import (
    Channels,
)
from pipelines.retrieval.settings import RetrievalSettings
from pipelines.retrieval.snapshot.facts import GenerationFacts
from pipelines.retrieval.snapshot.ports import PairScorer
from pipelines.retrieval.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Resources:
    """One snapshot, its opened channels and facts, the settings, and the threads that channels search in."""

    snapshot: Snapshot
    channels: Channels
    facts: GenerationFacts
    settings: RetrievalSettings
    threads: Executor
    pairs: PairScorer | None = None

    def texts_of(self, rows: Sequence[int] | Ints) -> list[str]:
        """Texts of contents by row."""
        return [content.text for content in self.snapshot.generation.chunks.contents(rows)]


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
