"""An encoder that keeps what it made of the latest queries: people ask the same again, and page through it (OPS-10)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from weft.embedding.ports import Item, TextEncoder

MOST_TOKENS = 8_192
"""Token states that are kept: some 12 MB of 384 numbers each, and 400 queries of twenty tokens."""


class RememberedQueries:
    """Behind `ports.TextEncoder`: texts that were asked lately are not computed again. Shared by threads.

    An encoder gives the same bits for a text always, so nobody can tell by an answer what was remembered.
    """

    def __init__(self, encoder: TextEncoder, *, most_tokens: int = MOST_TOKENS) -> None:
        self._encoder = encoder
        self._most = most_tokens
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[np.ndarray, np.ndarray]] = OrderedDict()
        self._tokens = 0
        self.recalled = 0
        self.computed = 0

    @property
    def name(self) -> str:
        """See `ports.TextEncoder`."""
        return self._encoder.name

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """See `ports.TextEncoder`; not remembered, for who needs no tokens asks for many texts, once."""
        return self._encoder.encode(texts)

    def encode_tokens(self, texts: Sequence[str], keep: Callable[[np.ndarray], Item]) -> tuple[np.ndarray, list[Item]]:
        """See `ports.TextEncoder`."""
        if not texts:
            return self._encoder.encode_tokens(texts, keep)
        with self._lock:
            encoded = {text: self._entries[text] for text in texts if text in self._entries}
            for text in encoded:
                self._entries.move_to_end(text)
            self.recalled += len(encoded)
        if new := [text for text in dict.fromkeys(texts) if text not in encoded]:
            vectors, states = self._encoder.encode_tokens(new, np.array)  # copied: no batch stays for one of its texts
            made = dict(zip(new, zip(vectors, states, strict=True), strict=True))
            self._keep(made)
            encoded |= made
        return np.stack([encoded[text][0] for text in texts]), [keep(encoded[text][1]) for text in texts]

    def _keep(self, made: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
        with self._lock:
            self.computed += len(made)
            for text, (vector, states) in made.items():
                if text not in self._entries:
                    self._entries[text] = np.array(vector), states
                    self._tokens += len(states)
            while self._tokens > self._most:
                _, (_, states) = self._entries.popitem(last=False)
                self._tokens -= len(states)
