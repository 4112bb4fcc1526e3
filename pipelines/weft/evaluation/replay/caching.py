"""Encodings of queries, computed once however often the same queries are asked (EVA-7, EVA-9).

Indexes are asked anew each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from weft.embedding.ports import Item, TextEncoder

CACHED_ENTRIES = 10_000
"""Texts whose encodings a process remembers, the newest; 1.5 kB a token."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


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
