"""What all stages of a search work with."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

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
