"""The third stage: a vector for each text, and its token embeddings where they are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from pipelines.domain.ids import ContentHash
from pipelines.embedding.cache import STORED, Embedded, EmbeddedCache, vector_key
from pipelines.embedding.encoders.precision import instructions_of
from pipelines.embedding.late_interaction import compressed
from pipelines.embedding.levels import embedded_text, window
from pipelines.embedding.projection import stored_projection
from pipelines.embedding.settings import EmbeddingSettings
from pipelines.embedding.tokens import TokenCounter, load_token_counter
from pipelines.indexes import schemas
from pipelines.ingestion.report import ENCODED_WITH
from pipelines.ingestion.stages.worker import Lazy, UnitWorker, completed, texts_of
from pipelines.ingestion.units import Unit

ENCODER = "pipelines.embedding.encoders.encoder:load_encoder"


class Encodes(Protocol):
    """What embedding needs of an encoder."""

    name: str

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """One unit vector per text."""
        ...

    def encode_tokens(self, texts: Sequence[str], keep: Callable[[np.ndarray], Any]) -> tuple[np.ndarray, list[Any]]:
        """The same, and what is kept of each text's token states; needed only where these are kept."""
        ...


class Embed(UnitWorker):
    """A vector for each distinct text; texts seen before come from the cache (ING-19, ING-20).

    Args:
        name: The encoder's name in the generation.
        model: What decides the bits that it makes of a text, part of every cache key.
    """

    def __init__(
        self,
        settings: EmbeddingSettings,
        name: str,
        model: str,
        cache: Path,
        maker: str = ENCODER,
    ) -> None:
        self._settings = settings
        self._name = name
        self._model = model
        self._encoder: Lazy[Encodes] = Lazy(maker, settings)
        self._counter: list[TokenCounter] = []
        self._projection = cache.parent / "projections" / f"{model}.npy"
        self._projecting: list[np.ndarray] = []
        self._cache = EmbeddedCache(cache, settings.tokens.dimension if settings.tokens.enabled else None)

    def work(self, unit: Unit) -> Unit:
        """Add the table `vectors`, and `tokens` where these are kept.

        Where another encoder came before, the names of its tables are followed by this one's.
        """
        texts = self._texts(unit)
        keys = {content: vector_key(self._model, self._settings.strategy, text) for content, text in texts.items()}
        known, fresh = completed(self._cache, keys, texts, self._encoded)
        counts = {
            "embedded": unit.counts.get("embedded", 0) + fresh,
            "embedding_cache_hits": unit.counts.get("embedding_cache_hits", 0) + len(texts) - fresh,
        }
        if fresh:
            counts[f"{ENCODED_WITH}{instructions_of(self._settings.device)}"] = fresh
        made = self._tables(list(texts), [known[keys[content]] for content in texts]) if texts else {}
        suffix = f"-{self._name}" if "vectors" in unit.tables else ""
        return unit.having({f"{name}{suffix}": table for name, table in made.items()}, counts)

    def _tables(self, contents: Sequence[ContentHash], found: Sequence[Embedded]) -> dict[str, pa.Table]:
        vectors = np.stack([one.vector for one in found])
        tables = {"vectors": schemas.vectors_to_table(contents, self._name, vectors, self._model)}
        if self._settings.tokens.enabled:
            tokens = [one.tokens for one in found if one.tokens is not None]
            table = schemas.tokens_to_table(contents, self._name, tokens, str(self._projection))
            tables["tokens"] = table
        return tables

    def _encoded(self, texts: Sequence[str]) -> list[Embedded]:
        encoder = self._encoder.get()
        # Rounded before anyone uses them: a cached vector and a fresh one are the same bits.
        if not self._settings.tokens.enabled:
            return [Embedded(vector, None) for vector in encoder.encode(texts).astype(STORED)]
        projection = self._projected(encoder)
        pooling = self._settings.tokens.pooling
        vectors, tokens = encoder.encode_tokens(texts, lambda states: compressed(states, projection, pooling))
        return [Embedded(*one) for one in zip(vectors.astype(STORED), tokens, strict=True)]

    def _projected(self, encoder: Encodes) -> np.ndarray:
        if not self._projecting:
            words = self._count().words()
            self._projecting.append(stored_projection(self._projection, encoder, words, self._settings.tokens))
        return self._projecting[0]

    def _texts(self, unit: Unit) -> dict[ContentHash, str]:
        """What is embedded for each distinct content."""
        if self._settings.strategy == "text":
            return texts_of(unit)
        chunks = schemas.table_to_chunks(unit.tables["chunks"])
        titles = dict(zip(*(unit.tables["documents"][name].to_pylist() for name in ("uri", "title")), strict=True))
        by_id = {chunk.chunk_id: chunk for chunk in chunks}
        count = self._count()
        texts: dict[ContentHash, str] = {}
        for chunk in chunks:
            if chunk.content_hash not in texts:
                parent = None if chunk.parent_id is None else by_id.get(chunk.parent_id)
                whole = embedded_text(chunk, parent, titles.get(chunk.uri))
                tokens = window(chunk.level, self._settings.level_tokens, count.limit)
                texts[chunk.content_hash] = count.cut(whole, tokens)
        return texts

    def _count(self) -> TokenCounter:
        if not self._counter:
            self._counter.append(load_token_counter(self._settings))
        return self._counter[0]
