"""Further markups by headings, as Markdown is: HTML, AsciiDoc, Org (ING-6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pipelines.chunking.prose.html import html_outline
from pipelines.chunking.prose.lined import ASCIIDOC, ORG, lined_outline
from pipelines.chunking.prose.outline import Outline
from pipelines.chunking.prose.sections import chunk_outline
from pipelines.chunking.prose.text import chunk_text
from pipelines.chunking.units.splitting import ChunkSizes, SizedText, TokenCounter
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document

OUTLINES: Mapping[str, Callable[[bytes], Outline]] = {
    "html": html_outline,
    "asciidoc": partial(lined_outline, rules=ASCIIDOC),
    "org": partial(lined_outline, rules=ORG),
}
"""What reads each of them, by the language of a document."""


def chunk_markup(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Sections of a document; long ones in parts of whole blocks."""
    outline = OUTLINES.get(document.language or "")
    if outline is None:
        return chunk_text(document, sizes, count_tokens)
    text = SizedText(document.text, sizes, count_tokens)
    return chunk_outline(document, text, outline(text.source))
