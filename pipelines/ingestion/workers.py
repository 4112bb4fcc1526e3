"""The stages as plain classes over work units: read and chunk, find entities, embed. None of them knows Ray."""

from __future__ import annotations

import pkgutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from pipelines.chunking.chunker import chunk_or_fallback
from pipelines.chunking.settings import ChunkingSettings
from pipelines.chunking.sizes import TokenCounter
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import ContentType, Document, Domain, Rejection
from pipelines.domain.entities import Mention
from pipelines.domain.ids import ContentHash
from pipelines.embedding.cache import STORED, VectorCache, vector_key
from pipelines.embedding.settings import EmbeddingSettings
from pipelines.embedding.tokens import load_token_counter
from pipelines.extraction.settings import ExtractionSettings
from pipelines.indexes import schemas
from pipelines.ingestion.mention_cache import MentionCache, mention_key
from pipelines.ingestion.parts import repeated_uri
from pipelines.ingestion.report import REJECTED
from pipelines.ingestion.settings import IngestSettings
from pipelines.ingestion.sources import read_item
from pipelines.ingestion.units import Unit, pack, unpack

ENCODER = "pipelines.embedding.encoder:load_encoder"
EXTRACTOR = "pipelines.extraction.entities:EntityExtractor"

Value = TypeVar("Value")


class Lazy(Generic[Value]):
    """A model that is imported and loaded at its first use: a run that finds everything cached never loads it.

    Args:
        maker: What makes it, as "module:name", so that naming it imports nothing.
        settings: What it is made from.
    """

    def __init__(self, maker: str, settings: object) -> None:
        self._maker = maker
        self._settings = settings
        self._loaded: list[Value] = []

    def get(self) -> Value:
        """The model."""
        if not self._loaded:
            self._loaded.append(pkgutil.resolve_name(self._maker)(self._settings))
        return self._loaded[0]


class Encodes(Protocol):
    """What embedding needs of an encoder."""

    name: str

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """One unit vector per text."""
        ...


class Extracts(Protocol):
    """What entity extraction needs of an extractor."""

    def extract(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions of each text."""
        ...


class UnitWorker(ABC):
    """A stage that works on one unit at a time."""

    def run(self, batch: pa.Table) -> pa.Table:
        """Work on a packed unit, as Ray hands it over."""
        return pack(self.work(unpack(batch)))

    @abstractmethod
    def work(self, unit: Unit) -> Unit:
        """The unit with what this stage adds to it; the same unit always gives the same."""


class ReadAndChunk(UnitWorker):
    """Items to documents to chunks; whatever cannot be read or cut becomes a row of `rejected` (ING-3)."""

    def __init__(
        self, ingest: IngestSettings, chunking: ChunkingSettings, embedding: EmbeddingSettings, domain: Domain | None
    ) -> None:
        self._ingest = ingest
        self._chunking = chunking
        self._domain = domain
        counter = load_token_counter(embedding)
        self._count: TokenCounter = counter
        self._limit = counter.limit

    def work(self, unit: Unit) -> Unit:
        """Add the tables `documents`, `chunks` and `rejected`."""
        documents: list[Document] = []
        chunks: list[Chunk] = []
        rejections: list[Rejection] = []
        seen: set[str] = set()
        for item in unit.items:
            for found in read_item(item, self._ingest, domain=self._domain):
                of_document, note = self._cut(found, seen)
                chunks += of_document
                rejections += [] if note is None else [note]
                documents += [found] if of_document and isinstance(found, Document) else []
        tables = {
            "documents": schemas.documents_to_table(documents),
            "chunks": schemas.chunks_to_table(chunks),
            "rejected": schemas.rejections_to_table(rejections),
        }
        reasons = Counter(f"{REJECTED}{rejection.reason}" for rejection in rejections)
        return unit.having(tables, {"documents": len(documents), "chunks": len(chunks), **reasons})

    def _cut(self, found: Document | Rejection, seen: set[str]) -> tuple[list[Chunk], Rejection | None]:
        if isinstance(found, Rejection):
            return [], found
        if found.uri in seen:
            return [], repeated_uri(found.uri)
        seen.add(found.uri)
        return self._chunks_of(found)

    def _chunks_of(self, document: Document) -> tuple[list[Chunk], Rejection | None]:
        sizes = self._chunking.sizes_of(document)
        # A record stays whole, though the end of a long one is not embedded: its author cut it.
        if document.content_type is not ContentType.RECORD:
            sizes = sizes.capped(self._limit)
        chunks, note = chunk_or_fallback(document, sizes, self._count)
        if not chunks:
            return [], Rejection(document.uri, "blank", "expected text, found none")
        return chunks, note


class FindEntities(UnitWorker):
    """Mentions of named things in each distinct text; texts seen before come from the cache (ING-16, ING-20)."""

    def __init__(self, settings: ExtractionSettings, cache: Path, maker: str = EXTRACTOR) -> None:
        self._settings = settings
        self._cache = MentionCache(cache)
        self._extractor: Lazy[Extracts] = Lazy(maker, settings)

    def work(self, unit: Unit) -> Unit:
        """Add the table `mentions`."""
        texts = _texts(unit)
        keys = {content: mention_key(self._settings, text) for content, text in texts.items()}
        known, fresh = _completed(self._cache, keys, texts, lambda wanted: self._extractor.get().extract(wanted))
        rows = [(content, mention) for content in texts for mention in known[keys[content]]]
        counts = {"mentions": len(rows), "extracted": fresh, "entity_cache_hits": len(texts) - fresh}
        return unit.having({"mentions": schemas.mentions_to_table(rows)}, counts)


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
        texts = _texts(unit)
        keys = {content: vector_key(self._model, self._settings.strategy, text) for content, text in texts.items()}
        known, fresh = _completed(self._cache, keys, texts, self._encoded)
        counts = {"embedded": fresh, "embedding_cache_hits": len(texts) - fresh}
        if not texts:
            return unit.having({}, counts)
        vectors = np.stack([known[keys[content]] for content in texts])
        return unit.having({"vectors": schemas.vectors_to_table(list(texts), self._name, vectors)}, counts)

    def _encoded(self, texts: Sequence[str]) -> list[np.ndarray]:
        # Rounded before anyone uses them: a cached vector and a fresh one are the same bits.
        return list(self._encoder.get().encode(texts).astype(STORED))


class Cache(Protocol[Value]):
    """Values kept by key."""

    def get(self, keys: Sequence[str]) -> dict[str, Value]:
        """The values of those keys that have one."""
        ...

    def put(self, values: Mapping[str, Value], /) -> None:
        """Keep values."""
        ...


def _completed(
    cache: Cache[Value],
    keys: Mapping[ContentHash, str],
    texts: Mapping[ContentHash, str],
    compute: Callable[[Sequence[str]], Sequence[Value]],
) -> tuple[dict[str, Value], int]:
    """What the cache has for `keys`, completed by computing and keeping the rest; and how many were computed."""
    known = cache.get(list(keys.values()))
    missing = [content for content, key in keys.items() if key not in known]
    if missing:
        found = compute([texts[content] for content in missing])
        fresh = {keys[content]: value for content, value in zip(missing, found, strict=True)}
        cache.put(fresh)
        known |= fresh
    return known, len(missing)


def _texts(unit: Unit) -> dict[ContentHash, str]:
    """Each distinct text of a unit by its hash, in order of first appearance."""
    chunks = unit.tables["chunks"]
    texts: dict[ContentHash, str] = {}
    for row in chunks.select(["content_hash", "text"]).to_pylist():
        texts.setdefault(ContentHash(row["content_hash"]), row["text"])
    return texts
