"""The dense channel: nearest contents to the query's vector, by cosine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipelines.retrieval.filters import Ranking
from pipelines.retrieval.ports import QueryEncoder, VectorIndex


class DenseChannel:
    """Searches the vectors of one encoder; queries share encoder and FAISS batches."""

    def __init__(self, encoder: QueryEncoder, index: VectorIndex, batch: int) -> None:
        self._encoder = encoder
        self._index = index
        self._batch = batch

    def search(self, texts: Sequence[str], depth: int) -> list[Ranking]:
        """The `depth` nearest contents of each text."""
        return [
            ranking
            for start in range(0, len(texts), self._batch)
            for ranking in self._searched(texts[start : start + self._batch], depth)
        ]

    def _searched(self, texts: Sequence[str], depth: int) -> list[Ranking]:
        rows, cosines = self._index.search(self._encoder.encode(texts), depth)
        return [_ranking(*found) for found in zip(rows, cosines, strict=True)]


def _ranking(rows: np.ndarray, cosines: np.ndarray) -> Ranking:
    found = [(int(row), float(cosine)) for row, cosine in zip(rows, cosines, strict=True) if row >= 0]
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))
