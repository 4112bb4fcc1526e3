"""What a chunk shows of its source: the bytes of its span, without the marks that its reader found in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from weft.chunking.prose.outline import Outline
from weft.chunking.prose.reader import outline_of
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document


def shown(document: Document, chunk: Chunk) -> str:
    """The text of a chunk's span without marks and the blanks around it; with them where it has nothing else."""
    source = document.text.encode("utf-8", "surrogatepass")
    own = source[chunk.start_byte : chunk.end_byte]
    start, end = chunk.start_byte + len(own) - len(own.lstrip()), chunk.start_byte + len(own.rstrip())
    kept = bytearray()
    at = start
    instead = instead_of(document.text, document.content_type, document.language)
    for first, last in marks_of(document.text, document.content_type, document.language):
        if first < end and last > start:
            kept += source[at : max(first, at)] + (instead.get(first, b"") if first >= start else b"")
            at = max(at, last)
    kept += source[at:end]
    return (kept.strip() or source[start:end]).decode("utf-8", "surrogatepass")


def reads_from(document: Document, chunk: Chunk) -> int:
    """Offset of the first byte of a chunk's span that is shown; of its first ink where nothing is."""
    source = document.text.encode("utf-8", "surrogatepass")
    marks = marks_of(document.text, document.content_type, document.language)
    marked = {at for first, last in marks for at in range(max(first, chunk.start_byte), min(last, chunk.end_byte))}
    inked = [at for at in range(chunk.start_byte, chunk.end_byte) if not source[at : at + 1].isspace()]
    return next((at for at in inked if at not in marked), inked[0])


def marks_of(text: str, content_type: ContentType, language: str | None = None) -> Sequence[tuple[int, int]]:
    """Spans of the marks in a text."""
    outline = _outline_of(text, content_type, language)
    return () if outline is None else sorted(outline.marks)


def instead_of(text: str, content_type: ContentType, language: str | None) -> Mapping[int, bytes]:
    """What is shown in place of a mark."""
    outline = _outline_of(text, content_type, language)
    return {} if outline is None else {start: text for (start, _), text in outline.marks.items()}


@lru_cache(maxsize=8)
def _outline_of(text: str, content_type: ContentType, language: str | None) -> Outline | None:
    if content_type is ContentType.PAPER and language != "latex":
        content_type = ContentType.MARKDOWN
    return outline_of(text, content_type, language)
