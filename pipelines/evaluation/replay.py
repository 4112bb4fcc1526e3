"""Asking the same queries again and again of one snapshot, under other settings or beliefs (EVA-7, EVA-9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pipelines.domain.ranking import Answer, Query
from pipelines.retrieval.ports import QueryEncoder
from pipelines.retrieval.searcher import Searcher
from pipelines.retrieval.settings import RetrievalSettings
from pipelines.retrieval.snapshot import OneSnapshot, Snapshot


class RememberingEncoder:
    """An encoder that encodes each text once; whatever else it can do, it does as ever."""

    def __init__(self, encoder: QueryEncoder) -> None:
        self._encoder = encoder
        self._known: dict[str, np.ndarray] = {}
        self._tokens: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    @property
    def name(self) -> str:
        """The encoder's id."""
        return self._encoder.name

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts: float32 (n_texts, dimension), unit rows."""
        if new := [text for text in dict.fromkeys(texts) if text not in self._known]:
            self._known.update(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts])

    def encode_tokens(
        self, texts: Sequence[str], keep: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """The same vectors, and what `keep` makes of each text's token states, float32 (n_tokens, dimension)."""
        if new := [text for text in dict.fromkeys(texts) if text not in self._tokens]:
            vectors, states = self._encoder.encode_tokens(new, np.copy)
            self._tokens.update(zip(new, zip(vectors, states, strict=True), strict=True))
        known = [self._tokens[text] for text in texts]
        return np.stack([vector for vector, _ in known]), [keep(states) for _, states in known]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)


class Replay:
    """Answers fixed queries from one snapshot at one time: what differs between two replays is what was changed.

    Args:
        encoders: The default one first, each of which is a dense channel.
        now: When all of them are asked, seconds since the epoch.
        batch: Queries asked together.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        encoders: Sequence[QueryEncoder],
        settings: RetrievalSettings,
        *,
        now: float,
        batch: int,
    ) -> None:
        self.snapshot = snapshot
        self._encoders = encoders
        self._settings = settings
        self._now = now
        self._batch = batch

    def __call__(
        self,
        queries: Sequence[Query],
        *,
        settings: RetrievalSettings | None = None,
        snapshot: Snapshot | None = None,
        watch: Callable[[int], None] = lambda _: None,
    ) -> Iterator[Answer]:
        """The answer to each query, in their order.

        Args:
            settings: Instead of the usual ones.
            snapshot: Instead of the usual one.
            watch: Told how many queries were answered, now and then.
        """
        with self._searching(settings or self._settings, snapshot or self.snapshot) as searcher:
            for start in range(0, len(queries), self._batch):
                yield from searcher.search_many(queries[start : start + self._batch])
                watch(min(start + self._batch, len(queries)))

    @contextmanager
    def _searching(self, settings: RetrievalSettings, snapshot: Snapshot) -> Iterator[Searcher]:
        encoder, *further = self._encoders
        source = OneSnapshot(snapshot)
        with Searcher(source, encoder, settings, clock=lambda: self._now, further=further) as searcher:
            yield searcher
