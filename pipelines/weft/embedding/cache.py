"""Vectors by what they were made from: unchanged texts are never encoded twice (ING-20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from weft.domain.arrays import TermWeights
from weft.runtime.storage.packs import blobs_at
from weft.runtime.storage.sqlite import blob_key

STORED = np.dtype("<f2")
"""What vectors are rounded to before anything uses them, so that fresh and cached ones are the same bits."""
_WHOLE = np.dtype("<i4")


def vector_key(model: str, strategy: str, text: str) -> str:
    """Key of a vector: SHA-256 over the model's identity, the embedding strategy and the embedded text."""
    return blob_key(model, strategy, text)


class WeightsCache:
    """Term weights on disk, shared by every worker on the machine."""

    def __init__(self, path: Path) -> None:
        self._blobs = blobs_at(path)

    def get(self, keys: Sequence[str]) -> dict[str, TermWeights]:
        """The weights of those keys that have some."""
        blobs = self._blobs.get(keys).items()
        return {key: TermWeights(*np.frombuffer(blob, dtype=_WHOLE).reshape(2, -1)) for key, blob in blobs}

    def put(self, weights: Mapping[str, TermWeights]) -> None:
        """Keep weights; a key that has some keeps them."""
        self._blobs.put({key: np.stack(one).astype(_WHOLE).tobytes() for key, one in weights.items()})


class Embedded(NamedTuple):
    """What an encoder made of a text."""

    vector: np.ndarray  # float16 (dimension,)
    tokens: np.ndarray | None = None  # int8 (stored tokens, width), where they are kept
    weights: TermWeights | None = None  # where the encoder has a sparse head


class EmbeddedCache:
    """Vectors and, where they are kept, token embeddings and term weights, in one file; all of them name a text."""

    def __init__(self, path: Path, width: int | None, weighed_with: str = "") -> None:
        self._vectors = blobs_at(path)
        self._tokens = None if width is None else blobs_at(path)
        self._width = width
        self._weights = WeightsCache(path) if weighed_with else None
        self._weighed_with = weighed_with

    def get(self, keys: Sequence[str]) -> dict[str, Embedded]:
        """What is known of those keys."""
        embedded = {key: Embedded(np.frombuffer(blob, STORED)) for key, blob in self._vectors.get(keys).items()}
        if self._tokens is not None and self._width is not None:
            blobs = self._tokens.get([_token_key(key) for key in embedded])
            embedded = {
                key: one._replace(tokens=np.frombuffer(blob, dtype=np.int8).reshape(-1, self._width))
                for key, one in embedded.items()
                if (blob := blobs.get(_token_key(key))) is not None
            }
        if self._weights is not None:
            weights = self._weights.get([self._weights_key(key) for key in embedded])
            embedded = {
                key: one._replace(weights=of_text)
                for key, one in embedded.items()
                if (of_text := weights.get(self._weights_key(key))) is not None
            }
        return embedded

    def put(self, embedded: Mapping[str, Embedded]) -> None:
        """Keep what was made, vectors rounded to float16; a key that has some keeps it."""
        if self._tokens is not None:
            tokens = {_token_key(key): one.tokens.tobytes() for key, one in embedded.items() if one.tokens is not None}
            self._tokens.put(tokens)
        if self._weights is not None:
            self._weights.put(
                {self._weights_key(key): one.weights for key, one in embedded.items() if one.weights is not None}
            )
        self._vectors.put({key: np.asarray(one.vector, STORED).tobytes() for key, one in embedded.items()})

    def _weights_key(self, key: str) -> str:
        return blob_key(key, "weights", self._weighed_with)


def _token_key(key: str) -> str:
    return blob_key(key, "tokens")
