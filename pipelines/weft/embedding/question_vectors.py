"""Vectors of past questions and of lessons in one file: a searcher that starts encodes none again (LRN-19, LES-8)."""

from __future__ import annotations

import hashlib
import io
import logging
import threading
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from weft.domain.errors import StoreError
from weft.embedding.cache import STORED
from weft.runtime.storage.files import write_atomically

log = logging.getLogger(__name__)

Encode = Callable[[Sequence[str]], np.ndarray]

_KEY = np.dtype("V16")  # of a text: the first half of its SHA-256
_WRITTEN_FROM = 16  # new vectors, and a tenth of those in the file: a file is not written anew for each question
_MOST = 50_000  # vectors in a file, the newest: 40 MB of 384 numbers each


class QuestionVectors:
    """An encoder that writes down what it made of questions, rounded to 16 bits; shared by threads.

    Searchers of one store may write the file at the same time: each writes a whole one, and the last stays.
    """

    def __init__(self, encode: Encode, path: Path) -> None:
        self._encode = encode
        self.path = path
        self._lock = threading.Lock()
        self._vectors: dict[bytes, np.ndarray] | None = None
        self._unwritten = 0

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of questions, in their order: float32 (n, dimension), unit rows but for the rounding."""
        keys = [_key(text) for text in texts]
        with self._lock:
            vectors = self._held()
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
            if new:
                encoded = self._encode(list(new.values())).astype(STORED)
                vectors.update(zip(new, encoded, strict=True))
                self._unwritten += len(new)
                self._write_some(vectors)
            return np.array([vectors[key] for key in keys], dtype=np.float32)

    def stored(self, texts: Sequence[str]) -> list[str]:
        """Those of some texts whose vectors take no time, in their order."""
        with self._lock:
            vectors = self._held()
            return [text for text in texts if _key(text) in vectors]

    def _held(self) -> dict[bytes, np.ndarray]:
        if self._vectors is None:
            self._vectors = _read(self.path)
        return self._vectors

    def _write_some(self, vectors: dict[bytes, np.ndarray]) -> None:
        if self._unwritten < _WRITTEN_FROM or self._unwritten * 10 < len(vectors):
            return
        written = io.BytesIO()
        keys, rows = list(vectors)[-_MOST:], list(vectors.values())[-_MOST:]
        np.savez(written, keys=np.array(keys, dtype=_KEY), vectors=np.stack(rows))
        try:
            write_atomically(self.path, written.getvalue())
        except (StoreError, OSError) as error:
            # A store that cannot be written to is searched all the same.
            log.debug("%s: %s", self.path, error)
        self._unwritten = 0


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[: _KEY.itemsize]


def _read(path: Path) -> dict[bytes, np.ndarray]:
    """What the file holds; nothing where there is none, or it is damaged."""
    try:
        with np.load(io.BytesIO(path.read_bytes())) as held:
            keys, vectors = held["keys"], held["vectors"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return {}
    if keys.dtype != _KEY or vectors.dtype != STORED or vectors.ndim != 2 or len(keys) != len(vectors):
        return {}
    return {key.tobytes(): vector for key, vector in zip(keys, vectors, strict=True)}
