"""The third stage: a vector for each text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from pipelines.embedding.cache import STORED, VectorCache, vector_key
from pipelines.embedding.settings import EmbeddingSettings
from pipelines.indexes import schemas
from pipelines.ingestion.units import Unit
from pipelines.ingestion.worker import Lazy, UnitWorker, completed, texts_of

ENCODER = "pipelines.embedding.encoder:load_encoder"


class Encodes(Protocol):
    """What embedding needs of an encoder."""

    name: str

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """One unit vector per text."""
        ...


class Embed(UnitWorker):
    """A vector for each distinct text; texts seen before come from the cache (ING-19, ING-20).

    Args:
        name: The encoder's name in the generation.
        model: What identifies the model and its arithmetic, part of every cache key.
    """

    def __init__(self, settings: EmbeddingSettings, name: str, model: str, cache: Path, maker: str = ENCODER) -> None:
        self._settings = settings
        self._name = name
        self._model = model
        self._cache = VectorCache(cache)
        self._encoder: Lazy[Encodes] = Lazy(maker, settings)

    def work(self, unit: Unit) -> Unit:
        """Add the table `vectors`."""
        texts = texts_of(unit)
        keys = {content: vector_key(self._model, self._settings.strategy, text) for content, text in texts.items()}
        known, fresh = completed(self._cache, keys, texts, self._encoded)
        counts = {"embedded": fresh, "embedding_cache_hits": len(texts) - fresh}
        if not texts:
            return unit.having({}, counts)
        vectors = np.stack([known[keys[content]] for content in texts])
        return unit.having({"vectors": schemas.vectors_to_table(list(texts), self._name, vectors)}, counts)

    def _encoded(self, texts: Sequence[str]) -> list[np.ndarray]:
        # Rounded before anyone uses them: a cached vector and a fresh one are the same bits.
        return list(self._encoder.get().encode(texts).astype(STORED))
