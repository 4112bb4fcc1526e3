"""Text without structure: windows by its layout, whole records, plain windows where all else fails (ING-10)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from operator import itemgetter

from weft.chunking.prose.heads import csv_columns, csv_records, heads_of_lines
from weft.chunking.prose.layout import layout_windows
from weft.chunking.units.hierarchy import assemble, leading
from weft.chunking.units.parsed import ParsedUnit
from weft.chunking.units.splitting import (
    ChunkSizes,
    SizedText,
    TokenCounter,
    character_start,
    decoded,
    encoded,
    sentences,
)
from weft.domain.chunks import Chunk
from weft.domain.documents import Document

_WINDOW_LEVEL = 3
_BYTES_PER_TOKEN = 3  # to begin with; each plain window then expects what the one before had
_SEPARATORS = {"csv": ",;\t|", "tsv": "\t"}
_MOST_BYTES_PER_TOKEN = 8  # bounds a window of words that the encoder does not know, which are one token each


def chunk_text(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Windows of whole paragraphs, lines or sentences, as the text is laid out."""
    text = SizedText(document.text, sizes, count_tokens)
    spans = [(0, len(text.source))]
    separators = _SEPARATORS.get(document.language or "")
    records = csv_records(text.source, separators) if separators else None
    heads = heads_of_lines(text.source) if document.language is None else csv_columns(records or (), text.source)
    above = {head: leading(head.text, sizes.target_tokens // 2, text) for head in heads}
    if not text.fits(*spans[0], sizes.target_tokens):
        reserved = max(map(text.of_context, above.values()), default=0)
        begins = None if records is None else [record.start for record in records]
        spans = layout_windows(text, reserved, prose=document.language is None, begins=begins)
    units = []
    for unit in _window_units(spans):
        before = bisect_right(heads, unit.start, key=itemgetter(0)) - 1
        inside = before >= 0 and unit.start < heads[before].end
        units.append(replace(unit, context=above[heads[before]]) if inside else unit)
    return assemble(document, text, units)


def chunk_record(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    r"""One chunk `title\ntext`, whole up to `sizes.max_tokens`; above that windows, each under the title.

    Judgements of a collection name whole records, so a cut record could not be credited. What of a whole one lies
    beyond `sizes.read_tokens` is in windows besides, its children (ING-36). Records without a text are common in old
    collections, and their titles are judged.
    """
    title = document.title or ""
    alone = not document.text.strip()
    text = SizedText(title if alone else document.text, sizes, count_tokens)
    whole = ParsedUnit(start=0, end=len(text.source), path="record", kind="record", level=0)
    if alone:
        size = len(encoded(document.text))
        return [replace(chunk, end_byte=size, end_line=1) for chunk in assemble(document, text, [whole])]
    reserved = text.of_context(title)
    is_whole = text.fits(0, whole.end, sizes.max_tokens - reserved)
    read = (sizes.read_tokens or sizes.max_tokens) - reserved if is_whole else 0
    units = [replace(whole, context=title)] if is_whole else []
    if 2 * reserved > sizes.target_tokens:
        title, reserved = "", 0
    if not text.fits(0, whole.end, read):
        start = _unread(text, read)
        rest = SizedText(decoded(text.source[start:]), sizes, count_tokens)
        spans = [(start + first, start + last) for first, last in layout_windows(rest, reserved)]
        units += [replace(window, level=_WINDOW_LEVEL, parents=(whole.path,)) for window in _window_units(spans, title)]
    return assemble(document, text, units)


def _unread(text: SizedText, read: int) -> int:
    """Where a sentence begins that is not read to its end, or one before it, from which on there is the minimum."""
    end = len(text.source)
    begins = [0, *sentences(text.source, 0, end)]
    most = min(read, text.tokens(0, end) - text.sizes.min_tokens)
    return begins[max(0, bisect_right(begins, most, key=lambda begin: text.tokens(0, begin)) - 1)]


def _window_units(spans: list[tuple[int, int]], context: str = "") -> list[ParsedUnit]:
    """Units for windows: the only one is the whole document, on level 0."""
    size = max(1, spans[-1][1]) if spans else 1
    return [
        ParsedUnit(
            start=start,
            end=end,
            path=f"window:{number}",
            kind="window",
            level=0 if len(spans) == 1 else _WINDOW_LEVEL,
            context=context,
            share=(end - start) / size,
        )
        for number, (start, end) in enumerate(spans, start=1)
    ]


def chunk_plainly(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Windows of whole lines, of at most `target` tokens; longer lines are cut at blanks, or else anywhere (ING-3)."""
    counted = cache(count_tokens)  # a window need not be counted again when it becomes a chunk
    text = SizedText(document.text, replace(sizes, context_after=0), counted)
    return assemble(document, text, _window_units(list(_plain_spans(text))))


def byte_length(text: str) -> int:
    """Length in bytes: at least the number of tokens, since a token stands for one byte or more."""
    return len(encoded(text))


def _plain_spans(text: SizedText) -> Iterator[tuple[int, int]]:
    source, room = text.source, text.sizes.target_tokens
    start, density = 0, float(_BYTES_PER_TOKEN)
    while start < len(source):
        end = _plain_end(source, start, int(room * density))
        while (tokens := text.tokens(start, end)) > room and end - start > room:
            end = _plain_end(source, start, max(room, min((end - start) // 2, room * (end - start) // tokens)))
        density = max(1.0, min(float(_MOST_BYTES_PER_TOKEN), (end - start) / max(1, tokens)))
        yield start, end
        start = end


def _plain_end(source: bytes, start: int, length: int) -> int:
    """Where a window of about `length` bytes may end: behind a line or a blank in its second half, or anywhere."""
    end = start + length
    if end >= len(source):
        return len(source)
    for mark in (b"\n", b" "):
        at = source.rfind(mark, start + length // 2, end)
        if at > start:
            return at + 1
    return character_start(source, end, start)
