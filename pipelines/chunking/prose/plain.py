"""Plain line windows, for documents that their own chunker cannot cut: one pass, whatever the text (ING-3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pipelines.chunking.prose.text import window_units
from pipelines.chunking.units.hierarchy import SourceFacts, assemble
from pipelines.chunking.units.sizes import ChunkSizes, TokenCounter
from pipelines.chunking.units.splitting import Meter, character_start, encoded
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document

_BYTES_PER_TOKEN = 3  # to begin with; each window then expects what the one before had
_MOST_BYTES_PER_TOKEN = 8  # bounds a window of words that the encoder does not know, which are one token each


def chunk_plainly(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Windows of whole lines, of at most `target` tokens; longer lines are cut at blanks, or else anywhere.

    Every byte is counted a bounded number of times, so time and memory grow with the size alone.
    """
    source = encoded(document.text)
    sizes = replace(sizes, context_after=0)
    count = _remembering(count_tokens)
    spans = list(_spans(source, sizes.target_tokens, Meter(source, count)))
    units = window_units(spans, len(source))
    return assemble(document, source, units, facts=SourceFacts(), sizes=sizes, count_tokens=count)


def byte_length(text: str) -> int:
    """Length in bytes: at least the number of tokens, since a token stands for one byte or more."""
    return len(encoded(text))


def _spans(source: bytes, room: int, meter: Meter) -> Iterator[tuple[int, int]]:
    start, density = 0, float(_BYTES_PER_TOKEN)
    while start < len(source):
        end = _cut(source, start, int(room * density))
        while (tokens := meter.tokens(start, end)) > room and end - start > room:
            end = _cut(source, start, max(room, min((end - start) // 2, room * (end - start) // tokens)))
        density = max(1.0, min(float(_MOST_BYTES_PER_TOKEN), (end - start) / max(1, tokens)))
        yield start, end
        start = end


def _cut(source: bytes, start: int, length: int) -> int:
    """Where a window of about `length` bytes may end: behind a line or a blank in its second half, or anywhere."""
    end = start + length
    if end >= len(source):
        return len(source)
    for mark in (b"\n", b" "):
        found = source.rfind(mark, start + length // 2, end)
        if found > start:
            return found + 1
    return character_start(source, end, start)


def _remembering(count_tokens: TokenCounter) -> Callable[[str], int]:
    """The same counter, which need not count a window again when it becomes a chunk."""
    known: dict[str, int] = {}

    def count(text: str) -> int:
        if text not in known:
            known[text] = count_tokens(text)
        return known[text]

    return count
