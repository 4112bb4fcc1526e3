"""The first stage: items to documents to chunks, where the live generation does not hold them already.

Summaries are extracted from documents, or written by a model behind an endpoint where one is set (ING-18).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from weft.chunking.chunker import title_of
from weft.chunking.prose.summary import summary_of, within
from weft.chunking.units.splitting import ActiveSizes, ChunkSizes, TokenCounter, decoded, encoded
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain, Rejection
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import load_token_counter
from weft.indexes import schemas
from weft.indexes.merge import repeated_uri
from weft.ingestion.parser.parser import Parser
from weft.ingestion.report import NO_SUMMARY, REJECTED
from weft.ingestion.settings import IngestSettings, SummarySettings
from weft.ingestion.sources.formats.registry import Convert
from weft.ingestion.sources.items import SourceItem, StoredItem
from weft.ingestion.sources.sources import read_item
from weft.ingestion.stages.conversions import Conversions
from weft.ingestion.stages.reuse import DocumentKeys, document_key
from weft.ingestion.units import Unit, UnitWorker
from weft.runtime.chat import ChatEndpoint, EndpointError
from weft.runtime.reuse import reused

WRITTEN = "summaries_written"
"""Count of summaries that the endpoint wrote."""

FAILED = "summaries_failed"
"""Count of requests that it did not answer as it should: those documents have extracts."""

SHOWN_CHARACTERS = 12_000
"""Of a document that the model is shown, from its beginning: about 3,000 tokens, which every model reads."""

MOST_FAILURES = 3
"""In a row; then a worker asks no more, and the rest of its documents have extracts."""


_INSTRUCTION = "Say in at most three sentences what the following document is about, for somebody who searches."


@dataclass(frozen=True, slots=True)
class ReadRules:
    """How items are read, and which documents are live already."""

    ingest: IngestSettings
    sizes: ActiveSizes
    embedding: EmbeddingSettings
    domain: Domain | None  # overrides the domain of every document
    made_with: str = ""  # what decides the rows of every document besides itself and its sizes; see `document_key`
    live: DocumentKeys = field(default_factory=DocumentKeys)  # documents of the live generation
    conversions: Path | None = None  # where files in formats are kept as they were read; None where they are not


@dataclass(frozen=True, slots=True)
class NewWork:
    """How much of some units is new or changed."""

    documents: int = 0
    characters: int = 0

    def __add__(self, other: NewWork) -> NewWork:
        return NewWork(self.documents + other.documents, self.characters + other.characters)


@dataclass(frozen=True, slots=True)
class _Readable:
    """A document with what decides its chunks; `unchanged` where the live generation has them."""

    document: Document
    sizes: ChunkSizes
    key: str
    unchanged: bool


class ReadAndChunk(UnitWorker):
    """Items to documents to chunks; whatever cannot be read or cut becomes a row of `rejected` (ING-3)."""

    def __init__(self, reading: ReadRules) -> None:
        self._reading = reading
        counter = reused(load_token_counter, reading.embedding)
        self._summariser = Summariser(reading.ingest.summary, counter)
        self._parser = reused(Parser, reading.ingest.parser, reading.embedding)

    def work(self, unit: Unit) -> Unit:
        """Add the tables `documents`, `texts`, `chunks`, `kept` and `rejected`."""
        readable, rejections = self._read(unit)
        documents: list[Document] = []
        keys: list[str] = []
        chunks: list[Chunk] = []
        for one in (one for one in readable if not one.unchanged):
            document, of_document, notes = bounded_cut(
                one.document, one.sizes, self._parser, self._reading.ingest.max_chunks_per_file
            )
            chunks += of_document
            rejections += notes
            if of_document:
                titled = replace(document, title=title_of(document, of_document))
                documents.append(self._summed_up(titled, of_document, rejections))
                keys.append(one.key)
            elif not notes:
                rejections.append(_blank(document))
        tables = {
            "documents": schemas.documents_to_table(documents, keys),
            "texts": schemas.texts_to_table(documents),
            "chunks": schemas.chunks_to_table(chunks),
        }
        written, self._summariser.counts = self._summariser.counts, Counter()
        counts = {"documents": len(documents), "chunks": len(chunks), **written}
        return _noted(unit.extended(tables, counts), readable, rejections)

    def warm(self) -> None:
        """Start the parser's child."""
        self._parser.start()

    def _summed_up(self, document: Document, chunks: list[Chunk], rejections: list[Rejection]) -> Document:
        try:
            return self._summariser.summarised(document, chunks)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  no text may stop a run; without a summary it is found all the same
            rejections.append(Rejection(document.uri, NO_SUMMARY, f"{type(error).__name__}: {error}"))
            return document

    def compared(self, unit: Unit) -> Unit | NewWork:
        """The unit, done, where the live generation holds all its documents; else what there is to do in it."""
        readable, rejections = self._read(unit)
        changed = [one.document for one in readable if not one.unchanged]
        if changed:
            return NewWork(len(changed), sum(len(document.text) for document in changed))
        return _noted(unit, readable, rejections)

    def _read(self, unit: Unit) -> tuple[list[_Readable], list[Rejection]]:
        """The documents of a unit, the first of each URI, and whatever is none."""
        readable: dict[str, _Readable] = {}
        rejections: list[Rejection] = []
        for item in unit.items:
            reading = self._reading
            for document in read_item(item, reading.ingest, domain=reading.domain, convert=self._convert):
                if isinstance(document, Rejection):
                    rejections.append(document)
                elif not document.text.strip() and not _is_titled(document):
                    rejections.append(_blank(document))
                elif document.uri in readable:
                    rejections.append(repeated_uri(document.uri))
                else:
                    readable[document.uri] = self._compared(document, item)
        return list(readable.values()), rejections

    @cached_property
    def _convert(self) -> Convert:
        cache = self._reading.conversions
        return self._parser.convert if cache is None else Conversions(cache, self._parser.convert)

    def _compared(self, document: Document, item: SourceItem) -> _Readable:
        sizes = self._reading.sizes.sizes_of(document)
        keys = [document_key(document, sizes, self._reading.made_with)]
        if isinstance(item, StoredItem):  # its summary and its title may not be declared but made of its text
            untitled = replace(document, title=None)
            read = (*(replace(one, summary=None) for one in (document, untitled)), untitled)
            keys += [document_key(one, sizes, self._reading.made_with) for one in read]
        live = next((key for key in keys if key in self._reading.live), None)
        return _Readable(document, sizes, live or keys[0], unchanged=live is not None)


def bounded_cut(
    document: Document, sizes: ChunkSizes, parser: Parser, most: int
) -> tuple[Document, list[Chunk], list[Rejection]]:
    """A document with at most `most` chunks, and notes: a longer one without its end (ING-33)."""
    chunks, note = parser.cut(document, sizes)
    notes = [] if note is None else [note]
    if len(chunks) <= most:
        return document, chunks, notes
    left, line = len(chunks) - most, chunks[most].start_line
    notes.append(
        Rejection(document.uri, TOO_MANY, f"{left:,} of {len(chunks):,} chunks left out, from line {line:,} on")
    )
    chunks = chunks[:most]  # in source order, so that the parent of each is among them
    ids = {chunk.chunk_id for chunk in chunks}
    chunks = [
        replace(
            chunk,
            next_id=chunk.next_id if chunk.next_id in ids else None,
            bundle=chunk.bundle if chunk.bundle in ids else None,
        )
        for chunk in chunks
    ]
    text = decoded(encoded(document.text)[: max(chunk.end_byte for chunk in chunks)])
    return replace(document, text=text), chunks, notes


TOO_MANY = "too_many_chunks"
"""Noted of a document whose end is left out."""


def _noted(unit: Unit, readable: list[_Readable], rejections: list[Rejection]) -> Unit:
    unchanged = [(one.document, one.key) for one in readable if one.unchanged]
    tables = {"kept": schemas.unchanged_to_table(unchanged), "rejected": schemas.rejections_to_table(rejections)}
    reasons = Counter(f"{REJECTED}{rejection.reason}" for rejection in rejections)
    return unit.extended(tables, {"unchanged": len(unchanged), **reasons})


def _is_titled(document: Document) -> bool:
    """Whether a record says something in its title alone, as many do in old collections."""
    return document.content_type is ContentType.RECORD and bool((document.title or "").strip())


def _blank(document: Document) -> Rejection:
    return Rejection(document.uri, "blank", "expected text, found none")


class Summariser:
    """Gives documents their summaries; one per worker, since it remembers how often the endpoint failed in a row."""

    def __init__(self, settings: SummarySettings, count_tokens: TokenCounter, timeout_s: float = 20.0) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._count = count_tokens
        self._failed_in_row = 0
        self.counts: Counter[str] = Counter()

    def summarised(self, document: Document, chunks: Sequence[Chunk]) -> Document:
        """The document with a summary of at most the configured length."""
        limit = self._settings.max_tokens
        if document.summary is not None:
            return replace(document, summary=within(document.summary, limit, self._count) or None)
        extract = summary_of(document, chunks, limit=limit, count_tokens=self._count)
        return replace(document, summary=extract if extract is None else self._written(document) or extract)

    def _written(self, document: Document) -> str | None:
        """What the endpoint says; None where there is none or it fails, and for records: there may be millions."""
        settings = self._settings
        if not settings.endpoint or document.content_type is ContentType.RECORD:
            return None
        if self._failed_in_row >= MOST_FAILURES:
            self.counts[FAILED] += 1
            return None
        model = ChatEndpoint(settings.endpoint, settings.model, settings.api_key, self._timeout_s)
        most = settings.max_tokens
        try:
            # Its own tokens may be shorter.
            text = model.complete(_INSTRUCTION, document.text[:SHOWN_CHARACTERS], max_tokens=2 * most)
            summary = within(text, most, self._count)
        except EndpointError:
            summary = ""
        self._failed_in_row = 0 if summary else self._failed_in_row + 1
        self.counts[WRITTEN if summary else FAILED] += 1
        return summary or None
