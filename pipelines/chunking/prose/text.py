"""Text without structure: windows of sentences or lines, whole records, plain windows where all else fails (ING-10)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from operator import itemgetter

from pipelines.chunking.units.hierarchy import assemble, leading
from pipelines.chunking.units.parsed import Head, ParsedUnit
from pipelines.chunking.units.splitting import (
    ChunkSizes,
    Cuts,
    Cutter,
    SizedText,
    TokenCounter,
    character_start,
    decoded,
    encoded,
    lines,
    sentences,
    strides,
    windows,
)
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document

_WINDOW_LEVEL = 3
_TABLES = frozenset({"csv", "tsv"})
_RULE = re.compile(rb"\|[-+:=| \t]{3,}")
_INKED_LINE = re.compile(rb"\s*[^\n]+\n?")
_ASCIIDOC_TABLE = b"|==="
_ASCIIDOC_CODE = frozenset({b"----", b"...."})
_ORG_CODE = (b"#+begin_src", b"#+begin_example")
_FENCES = (b"```", b"~~~")
_LONGEST_HEAD = 65_536  # bytes of a header row that are looked at
_BYTES_PER_TOKEN = 3  # to begin with; each plain window then expects what the one before had
_MOST_BYTES_PER_TOKEN = 8  # bounds a window of words that the encoder does not know, which are one token each


def chunk_text(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Windows of whole sentences; of whole lines where the document is in a formal language.

    A document within the target stays whole, on level 0. Every window that begins inside a table begins with its header
    row, and one inside a block of code with what opens that (ING-36, ING-40).
    """
    text = SizedText(document.text, sizes, count_tokens)
    spans = [(0, len(text.source))]
    find = heads_of_lines if document.language is None else _columns if document.language in _TABLES else None
    heads = [] if find is None else find(text.source)
    above = {head: leading(head.text, sizes.target_tokens // 2, text) for head in heads}
    if not text.fits(*spans[0], sizes.target_tokens):
        reserved = max(map(text.of_context, above.values()), default=0)
        spans = _window_spans(text, (lines,) if document.language else (sentences, lines), reserved)
    units = []
    for unit in _window_units(spans):
        before = bisect_right(heads, unit.start, key=itemgetter(0)) - 1
        inside = before >= 0 and unit.start < heads[before].end
        units.append(replace(unit, context=above[heads[before]]) if inside else unit)
    return assemble(document, text, units)


def _columns(source: bytes) -> list[Head]:
    """The first line of a table whose rows are lines: it names the columns."""
    first = _INKED_LINE.match(source, 0, _LONGEST_HEAD)
    return [] if first is None else [Head(first.end(), len(source), decoded(first[0].strip()))]


def heads_of_lines(source: bytes) -> list[Head]:
    """Heads of tables and blocks of code, as Org, AsciiDoc and plain text have them, in order."""
    heads: list[Head] = []
    opened: tuple[int, bytes, bytes] | None = None
    before, at = b"", 0
    for line in source.splitlines(keepends=True):
        text, start, at = line.strip(), at, at + len(line)
        if opened is None:
            opened = _opened(text, before, at)
        elif text.lower().startswith(opened[2]) if opened[2] else not text.startswith(b"|"):
            heads.append(Head(opened[0], start, decoded(opened[1])))
            opened = None
        elif not opened[1] and text.startswith(b"|"):
            opened = at, text, opened[2]
        before = text
    return heads if opened is None or opened[2] else [*heads, Head(opened[0], at, decoded(opened[1]))]


def _opened(text: bytes, before: bytes, after: int) -> tuple[int, bytes, bytes] | None:
    """Where the rest of what a line opens begins, its head, which may still be to come, and what closes it.

    A table of lines with bars ends where no further one follows.
    """
    if text == _ASCIIDOC_TABLE:
        return after, b"", text
    if before.startswith(b"|") and _RULE.fullmatch(text):
        return after, before, b""
    if text.lower().startswith(_ORG_CODE):
        return after, text, b"#+end_"
    if text.startswith(_FENCES) and text.strip(b"`~"):
        return after, text, text[:3]
    return (after, before, text) if text in _ASCIIDOC_CODE and before.startswith(b"[source") else None


def chunk_record(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    r"""One chunk `title\ntext`, whole up to `sizes.max_tokens`; above that windows, each under the title.

    Judgements of a collection name whole records, so a cut record could not be credited. Records without a text are
    common in old collections, and their titles are judged.
    """
    title = document.title or ""
    alone = not document.text.strip()
    text = SizedText(title if alone else document.text, sizes, count_tokens)
    whole = ParsedUnit(start=0, end=len(text.source), path="record", kind="record", level=0)
    if alone:
        size = len(encoded(document.text))
        return [replace(chunk, end_byte=size, end_line=1) for chunk in assemble(document, text, [whole])]
    reserved = text.of_context(title)
    if text.fits(0, whole.end, sizes.max_tokens - reserved):
        return assemble(document, text, [replace(whole, context=title)])
    if 2 * reserved > sizes.target_tokens:
        title, reserved = "", 0
    return assemble(document, text, _window_units(_window_spans(text, (sentences, lines), reserved), title))


def _window_spans(text: SizedText, cutters: tuple[Cutter, ...], reserved: int = 0) -> list[tuple[int, int]]:
    """Overlapping windows over a whole source, cut by the first cutter that makes pieces small enough.

    A piece is small enough when it fits beside what is still below the minimum: then no window has to stay below it.
    """
    sizes, size = text.sizes, len(text.source)
    room = max(1, sizes.target_tokens - reserved - min(sizes.min_tokens, sizes.target_tokens // 2))
    first, *finer = cutters
    cuts = Cuts.between(0, size, first(text.source, 0, size), soft=True)
    for cutter in (*finer, strides(max(4, room))):
        cuts = cuts.refined(text, cutter, room)
    return windows(text, cuts, reserved=reserved)


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
    """Windows of whole lines, of at most `target` tokens; longer lines are cut at blanks, or else anywhere (ING-3).

    Every byte is counted a bounded number of times, so time and memory grow with the size alone, whatever the text.
    """
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
