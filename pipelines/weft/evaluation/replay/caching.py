"""What is the same however often it is asked for, asked for once: encodings of queries, and what engines found (EVA-7).

A replay asks the same queries of one generation again and again, under other settings or beliefs. An encoder's vectors
depend only on the text, and hits of FAISS and Lucene only on the query, not on the rest of the batch. So a cached value
equals a recomputed one, to the bit. What fails is not remembered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, Generic, TypeVar

import numpy as np

from weft.domain.matching import Coverage
from weft.embedding.ports import Item, TextEncoder
from weft.indexes.rows import RowSet
from weft.retrieval.snapshot.ports import OpenGeneration, TextIndex, VectorIndex
from weft.retrieval.snapshot.snapshot import Snapshot

CACHED_ENTRIES = 10_000
"""Texts whose encodings and hits a process remembers, the newest.

A query takes 5 kB of hits at a depth of 100 and 1.5 kB a token: some .5 GB in all.
"""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_Row = tuple[np.ndarray, np.ndarray]
"""Rows and scores that an index found for one query."""


class LruCache(Generic[Key, Value]):
    """Values by what they follow from: at most so many, those asked for last; shared by threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[Key, Value] = {}  # those asked for last stand last
        self._lock = threading.Lock()

    def of(self, keys: Sequence[Key], ask: Callable[[Sequence[Key]], Iterable[Value]]) -> list[Value]:
        """The value of each key, in their order."""
        with self._lock:
            values = {key: self._values[key] for key in keys if key in self._values}
        if new := [key for key in dict.fromkeys(keys) if key not in values]:
            values |= zip(new, ask(new), strict=True)
        with self._lock:
            for key, value in values.items():
                self._values.pop(key, None)
                self._values[key] = value
            for oldest in list(self._values)[: max(0, len(self._values) - self._most)]:
                del self._values[oldest]
        return [values[key] for key in keys]

    def __len__(self) -> int:
        return len(self._values)


class CachingEncoder:
    """An encoder that encodes each text once, as long as it is remembered; whatever else it can do, it does as ever.

    A text takes its vector and, where tokens are compared, the state of each of its tokens: 1.5 kB each at 384
    dimensions.
    """

    def __init__(self, encoder: TextEncoder, most: int = CACHED_ENTRIES) -> None:
        self._encoder = encoder
        self._vectors = LruCache[str, np.ndarray](most)
        self._tokens = LruCache[str, tuple[np.ndarray, np.ndarray]](most)

    @property
    def name(self) -> str:
        """The encoder's id."""
        return self._encoder.name

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts: float32 (n_texts, dimension), unit rows."""
        return np.stack(self._vectors.of(texts, self._encoder.encode))

    def encode_tokens(self, texts: Sequence[str], keep: Callable[[np.ndarray], Item]) -> tuple[np.ndarray, list[Item]]:
        """The same vectors, and what `keep` makes of each text's token states, float32 (n_tokens, dimension)."""
        states_by_text = self._tokens.of(
            texts, lambda new: zip(*self._encoder.encode_tokens(new, np.copy), strict=True)
        )
        return np.stack([vector for vector, _ in states_by_text]), [keep(states) for _, states in states_by_text]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)


class CachingVectors:
    """A vector index that is asked once for the nearest contents to a vector, to one depth, among the same contents.

    That takes 12 bytes a hit, and the vector: 2.7 kB for a hundred hits of 384 dimensions.
    """

    def __init__(self, index: VectorIndex, most: int) -> None:
        self._index = index
        self._hits = LruCache[tuple[bytes, int, RowSet | None], _Row](most)

    @property
    def isolation(self) -> np.ndarray | None:
        """How much alone each content stands, as the index tells it."""
        return self._index.isolation

    def search(self, vectors: np.ndarray, k: int, among: RowSet | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows and cosines, as the index gives them."""
        place = {vector.tobytes(): at for at, vector in enumerate(vectors)}

        def ask(new: Sequence[tuple[bytes, int, RowSet | None]]) -> Iterable[_Row]:
            hits = self._index.search(vectors[[place[vector] for vector, _, _ in new]], k, among)
            return [(_frozen_copy(rows), _frozen_copy(cosines)) for rows, cosines in zip(*hits, strict=True)]

        hits = self._hits.of([(vector.tobytes(), k, among) for vector in vectors], ask)
        return np.stack([rows for rows, _ in hits]), np.stack([cosines for _, cosines in hits])

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Stored vectors, float32 (n_rows, dimension), unit rows."""
        return self._index.vectors(rows)


class CachingTexts:
    """A text index that is asked once for the best contents of a text, to one depth, among the same contents.

    That takes 16 bytes a hit, and the text: 1.8 kB for a hundred hits.
    """

    def __init__(self, index: TextIndex, most: int) -> None:
        self._index = index
        self._hits = LruCache[tuple[str, int, RowSet | None], _Row](most)

    def search_many(
        self, texts: Sequence[str], k: int, among: Sequence[RowSet | None]
    ) -> Sequence[tuple[np.ndarray, np.ndarray]]:
        """Rows and scores per text, as the index gives them."""

        def ask(new: Sequence[tuple[str, int, RowSet | None]]) -> Iterable[_Row]:
            queries, rows_of = [text for text, _, _ in new], [rows for _, _, rows in new]
            return [
                (_frozen_copy(rows), _frozen_copy(scores))
                for rows, scores in self._index.search_many(queries, k, rows_of)
            ]

        return self._hits.of(list(zip(texts, repeat(k), among, strict=False)), ask)

    def share_of(self, word: str) -> float:
        """Share of contents that hold a word, in [0, 1]."""
        return self._index.share_of(word)

    def coverage(self, query: str, texts: Sequence[str]) -> Coverage:
        """How much of a query texts say, as the index tells."""
        return self._index.coverage(query, texts)

    def holding(self, words: str, phrase: bool) -> np.ndarray | None:
        """Which contents hold words, as the index says."""
        return self._index.holding(words, phrase)


class CachingGeneration:
    """A generation whose indexes are asked for the same once; all else is the generation's own."""

    def __init__(self, generation: OpenGeneration, most: int) -> None:
        self._generation = generation
        self._most = most
        self._vectors: dict[str, CachingVectors] = {}
        self._texts: CachingTexts | None = None

    @property
    def lexical(self) -> TextIndex:
        """The text index."""
        if self._texts is None:
            self._texts = CachingTexts(self._generation.lexical, self._most)
        return self._texts

    def dense(self, encoder: str) -> VectorIndex:
        """The vectors of one encoder; StoreError where the generation has none."""
        if encoder not in self._vectors:
            self._vectors[encoder] = CachingVectors(self._generation.dense(encoder), self._most)
        return self._vectors[encoder]

    def caches(self, generation: object) -> bool:
        """Whether this remembers what is found in a generation."""
        return generation is self._generation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generation, name)


def remembered(snapshot: Snapshot, most: int = CACHED_ENTRIES) -> Snapshot:
    """The snapshot over a generation that remembers; one that does already is left as it is."""
    if isinstance(snapshot.generation, CachingGeneration):
        return snapshot
    generation: Any = CachingGeneration(snapshot.generation, most)
    return replace(snapshot, generation=generation)


def _frozen_copy(array: np.ndarray) -> np.ndarray:
    """A copy of its own, which holds no more than it shows, for many to read and none to write."""
    own = array.copy()
    own.flags.writeable = False
    return own
