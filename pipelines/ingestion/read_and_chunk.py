"""The first stage: items to documents to chunks."""

from __future__ import annotations

from collections import Counter

from pipelines.chunking.chunker import chunk_or_fallback
from pipelines.chunking.sizes import SizesInForce, TokenCounter
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import ContentType, Document, Domain, Rejection
from pipelines.embedding.settings import EmbeddingSettings
from pipelines.embedding.tokens import load_token_counter
from pipelines.indexes import schemas
from pipelines.ingestion.parts import repeated_uri
from pipelines.ingestion.report import REJECTED
from pipelines.ingestion.settings import IngestSettings
from pipelines.ingestion.sources import read_item
from pipelines.ingestion.units import Unit
from pipelines.ingestion.worker import UnitWorker


class ReadAndChunk(UnitWorker):
    """Items to documents to chunks; whatever cannot be read or cut becomes a row of `rejected` (ING-3)."""

    def __init__(
        self, ingest: IngestSettings, sizes: SizesInForce, embedding: EmbeddingSettings, domain: Domain | None
    ) -> None:
        self._ingest = ingest
        self._sizes = sizes
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
        sizes = self._sizes.sizes_of(document)
        # A record stays whole, though the end of a long one is not embedded: its author cut it.
        if document.content_type is not ContentType.RECORD:
            sizes = sizes.capped(self._limit)
        chunks, note = chunk_or_fallback(document, sizes, self._count)
        if not chunks:
            return [], Rejection(document.uri, "blank", "expected text, found none")
        return chunks, note
