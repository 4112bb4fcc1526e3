"""The dense channel: nearest contents to the query's vector, by cosine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from pipelines.retrieval.channels.run import Ranked
from pipelines.retrieval.filters import Ranking
from pipelines.retrieval.ports import QueryEncoder, VectorIndex


class DenseChannel:
    """Searches the vectors of one encoder; queries share encoder and FAISS batches."""

    def __init__(self, encoder: QueryEncoder, index: VectorIndex, batch: int) -> None:
        self._encoder = encoder
        self._index = index
        self._batch = batch

    def search(self, texts: Sequence[str], depth: int) -> list[Ranked]:
        """The `depth` nearest contents of each text; any other content's cosine can be had as well."""
        return [
            ranked
            for start in range(0, len(texts), self._batch)
            for ranked in self._searched(texts[start : start + self._batch], depth)
        ]

    def _searched(self, texts: Sequence[str], depth: int) -> list[Ranked]:
        vectors = self._encoder.encode(texts)
        rows, cosines = self._index.search(vectors, depth)
        return [
            Ranked(_ranking(*found), partial(self._cosines, vector))
            for vector, *found in zip(vectors, rows, cosines, strict=True)
        ]

    def _cosines(self, vector: np.ndarray, rows: Sequence[int]) -> list[float]:
        cosines: list[float] = (self._index.vectors(rows) @ vector).tolist()
        return cosines


def _ranking(rows: np.ndarray, cosines: np.ndarray) -> Ranking:
    found = [(int(row), float(cosine)) for row, cosine in zip(rows, cosines, strict=True) if row >= 0]
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))
