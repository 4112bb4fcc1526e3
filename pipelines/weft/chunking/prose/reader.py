"""Which reader finds the outline of a text, and its chunks from that (ING-6, ING-31, ING-40)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial

from weft.chunking.prose.html import docbook_outline, html_outline
from weft.chunking.prose.lined import ASCIIDOC, MAN, ORG, POD, TEXINFO, lined_outline
from weft.chunking.prose.markdown import markdown_outline
from weft.chunking.prose.outline import Outline
from weft.chunking.prose.rst import rst_outline
from weft.chunking.prose.sections import chunk_outline
from weft.chunking.prose.text import chunk_text
from weft.chunking.units.splitting import ChunkSizes, SizedText, TokenCounter, encoded
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document

_MARKUPS: Mapping[str | None, Callable[[bytes], Outline]] = {
    "docbook": docbook_outline,
    "html": html_outline,
    "asciidoc": partial(lined_outline, rules=ASCIIDOC),
    "man": partial(lined_outline, rules=MAN),
    "org": partial(lined_outline, rules=ORG),
    "pod": partial(lined_outline, rules=POD),
    "texinfo": partial(lined_outline, rules=TEXINFO),
}


def outline_of(text: str, content_type: ContentType, language: str | None) -> Outline | None:
    """What a reader finds in a text; None where none knows its markup."""
    source = encoded(text)
    if content_type is ContentType.MARKDOWN:
        return markdown_outline(text, source)
    if content_type is ContentType.RST:
        return rst_outline(source)
    read = _MARKUPS.get(language) if content_type is ContentType.MARKUP else None
    return None if read is None else read(source)


def chunk_prose(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Sections of a document with headings; long ones in parts of whole blocks; none of a page that says nothing."""
    outline = outline_of(document.text, document.content_type, document.language)
    if outline is None:
        return chunk_text(document, sizes, count_tokens)
    if document.language == "html" and not outline.facts.shown(encoded(document.text), 0, sys.maxsize).strip():
        return []
    return chunk_outline(document, SizedText(document.text, sizes, count_tokens), outline)
