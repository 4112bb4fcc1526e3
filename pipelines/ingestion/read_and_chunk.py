"""The first stage: items to documents to chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pipelines.chunking.sizes import ChunkSizes, SizesInForce
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import ContentType, Document, Domain, Rejection
from pipelines.embedding.settings import EmbeddingSettings
from pipelines.embedding.tokens import load_token_counter
from pipelines.indexes import schemas
from pipelines.ingestion.parser import Parser
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
        self._limit = load_token_counter(embedding).limit
        self._parser = Parser(ingest.parser, embedding)

    def work(self, unit: Unit) -> Unit:
        """Add the tables `documents`, `chunks` and `rejected`."""
        found = [found for item in unit.items for found in read_item(item, self._ingest, domain=self._domain)]
        distinct, rejections = _distinct(found)
        documents: list[Document] = []
        chunks: list[Chunk] = []
        cuts = self._parser.cut([(document, self._sizes_of(document)) for document in distinct])
        for document, (of_document, note) in zip(distinct, cuts, strict=True):
            chunks += of_document
            rejections += [] if note is None else [note]
            if of_document:
                documents.append(document)
            elif note is None:
                rejections.append(Rejection(document.uri, "blank", "expected text, found none"))
        tables = {
            "documents": schemas.documents_to_table(documents),
            "chunks": schemas.chunks_to_table(chunks),
            "rejected": schemas.rejections_to_table(rejections),
        }
        reasons = Counter(f"{REJECTED}{rejection.reason}" for rejection in rejections)
        return unit.having(tables, {"documents": len(documents), "chunks": len(chunks), **reasons})

    def _sizes_of(self, document: Document) -> ChunkSizes:
        sizes = self._sizes.sizes_of(document)
        # A record stays whole, though the end of a long one is not embedded: its author cut it.
        return sizes if document.content_type is ContentType.RECORD else sizes.capped(self._limit)


def _distinct(found: Iterable[Document | Rejection]) -> tuple[list[Document], list[Rejection]]:
    """Documents, of each URI the first, and what was rejected."""
    documents: dict[str, Document] = {}
    rejections: list[Rejection] = []
    for one in found:
        if isinstance(one, Rejection):
            rejections.append(one)
        elif one.uri in documents:
            rejections.append(repeated_uri(one.uri))
        else:
            documents[one.uri] = one
    return list(documents.values()), rejections
