"""The dense channel: nearest contents to the query's vector, by cosine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

import numpy as np

from pipelines.embedding.late_interaction import max_similarities
from pipelines.retrieval.channels.rankings import NOTHING, Floats, Hits, Ints, ScoreRows
from pipelines.retrieval.channels.run import Among, Ranked, VectorsOf
from pipelines.retrieval.snapshot.ports import QueryEncoder, TokenEmbeddings, VectorIndex


class DenseChannel:
    """Searches the vectors of one encoder; queries share encoder and FAISS batches.

    Where the contents' token embeddings are kept, a query's own come from the forward pass that gives its vector.
    """

    def __init__(
        self, encoder: QueryEncoder, index: VectorIndex, batch: int, *, tokens: TokenEmbeddings | None = None
    ) -> None:
        self._encoder = encoder
        self._index = index
        self._batch = batch
        self._tokens = tokens

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        """The `depth` nearest contents of each text; any other content's cosine can be had as well."""
        found: list[Ranked] = []
        for start in range(0, len(texts), self._batch):
            batch = slice(start, start + self._batch)
            vectors, matches = self._encoded(texts[batch])
            near = self._nearest(vectors, among[batch], depth)
            found += (
                self._ranked(ranking, vector, match)
                for ranking, vector, match in zip(near, vectors, matches, strict=True)
            )
        return found

    def _ranked(self, ranking: Hits, vector: np.ndarray, match: ScoreRows | None) -> Ranked:
        stored = _ReadOnce(self._index)
        return Ranked(ranking, partial(_cosines, stored, vector), match, vector, partial(_cosines, stored), stored)

    def _nearest(self, vectors: np.ndarray, among: Among, depth: int) -> Iterator[Hits]:
        for rows, alike in groupby(range(len(vectors)), key=among.__getitem__):
            found = self._index.search(vectors[list(alike)], depth, rows)
            yield from (_hits(*of_text) for of_text in zip(*found, strict=True))

    def _encoded(self, texts: Sequence[str]) -> tuple[np.ndarray, Sequence[ScoreRows | None]]:
        stored = self._tokens
        if stored is None:
            return self._encoder.encode(texts), [None] * len(texts)
        vectors, tokens = self._encoder.encode_tokens(texts, lambda states: states @ stored.projection)
        return vectors, [_Matches(of_text, stored) for of_text in tokens]


def _cosines(stored: VectorsOf, vector: np.ndarray, rows: Ints) -> Floats:
    return np.asarray(stored(rows) @ vector, dtype=np.float64)


class _ReadOnce:
    """Stored vectors for one query: who asks again for some of those that were read last gets what was read."""

    def __init__(self, index: VectorIndex) -> None:
        self._index = index
        self._rows = NOTHING.rows  # ascending
        self._vectors = np.zeros((0, 0), dtype=np.float32)

    def __call__(self, rows: Ints) -> np.ndarray:
        if len(self._rows):
            at = self._rows.searchsorted(rows)
            at[at == len(self._rows)] = 0
            if (self._rows[at] == rows).all():
                return self._vectors[at]
        vectors = self._index.vectors(rows)
        if (rows[1:] > rows[:-1]).all():
            self._rows, self._vectors = rows, vectors
        return vectors


class _Matches:
    """How well contents match the tokens of one query, each compared once: what is looked at again is mostly shown."""

    def __init__(self, query: np.ndarray, stored: TokenEmbeddings) -> None:
        self._query = query
        self._stored = stored
        self._known: dict[int, float] = {}

    def __call__(self, rows: Ints) -> Floats:
        if not len(self._query):  # a text without tokens of its own matches everything alike
            return np.zeros(len(rows))
        asked = rows.tolist()
        new = np.array([row for row in asked if row not in self._known], dtype=np.int64)
        if len(new):
            found = max_similarities(self._query, *self._stored.gathered(new)).tolist()
            self._known.update(zip(new.tolist(), found, strict=True))
        return np.array([self._known[row] for row in asked], dtype=np.float64)


def _hits(rows: np.ndarray, cosines: np.ndarray) -> Hits:
    # Best first, and ties by row, is how the index gives them; what pads stands last.
    found = int(np.count_nonzero(rows >= 0))
    return Hits(rows[:found], cosines[:found].astype(np.float64))
