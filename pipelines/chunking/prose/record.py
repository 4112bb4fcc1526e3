"""Records: items of a corpus that its author already cut into retrieval units."""

from __future__ import annotations

from dataclasses import replace

from pipelines.chunking.prose.text import window_spans, window_units
from pipelines.chunking.units.hierarchy import ParsedUnit, SourceFacts, assemble
from pipelines.chunking.units.sizes import ChunkSizes, TokenCounter
from pipelines.chunking.units.splitting import Meter, encoded, lines, sentences
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document


def chunk_record(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    r"""One chunk `title\ntext`, whole up to `sizes.max_tokens`; above that windows, each under the title.

    Judgements of a collection name whole records, so a cut record could not be credited.
    """
    title = document.title or ""
    if not document.text.strip():
        return _title_alone(document, title, sizes, count_tokens)
    source = encoded(document.text)
    meter = Meter(source, count_tokens)
    reserved = meter.of_context(title)
    if meter.fits(0, len(source), sizes.max_tokens - reserved):
        whole = ParsedUnit(start=0, end=len(source), path="record", kind="record", level=0, context=title)
        return assemble(document, source, [whole], facts=SourceFacts(), sizes=sizes, count_tokens=count_tokens)
    if 2 * reserved > sizes.target_tokens:
        title, reserved = "", 0
    spans = window_spans(source, sizes, meter, cutters=(sentences, lines), reserved=reserved)
    units = window_units(spans, len(source), context=title)
    return assemble(document, source, units, facts=SourceFacts(), sizes=sizes, count_tokens=count_tokens)


def _title_alone(document: Document, title: str, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Records without a text are common in old collections, and their titles are judged."""
    source = encoded(title)
    whole = ParsedUnit(start=0, end=len(source), path="record", kind="record", level=0)
    chunks = assemble(document, source, [whole], facts=SourceFacts(), sizes=sizes, count_tokens=count_tokens)
    return [replace(chunk, end_byte=len(encoded(document.text)), end_line=1) for chunk in chunks]
