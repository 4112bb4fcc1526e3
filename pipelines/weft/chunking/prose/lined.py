"""Markups by headings beside Markdown: HTML, and those that are read by their lines (ING-6, ING-40)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from weft.chunking.prose.heads.lines import heads_of_lines
from weft.chunking.prose.html import docbook_outline, html_outline
from weft.chunking.prose.line_markups import ASCIIDOC, MAN, ORG, POD, LineRules, filled
from weft.chunking.prose.outline import (
    ANCHOR,
    HEADING,
    LIST,
    PARAGRAPH,
    WHOLE,
    Block,
    Heading,
    Outline,
    Span,
    inside,
    merged,
)
from weft.chunking.prose.sections import chunk_outline
from weft.chunking.prose.text import chunk_text
from weft.chunking.units.parsed import NamePositions
from weft.chunking.units.splitting import ChunkSizes, SizedText, TokenCounter, decoded
from weft.domain.chunks import Chunk
from weft.domain.documents import Document
from weft.domain.links import Link, LinkKind

_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)|//")
_UNDERLINE = re.compile(rb"([-=~^+])\1{2,}$")
_TITLE_SIGNS = 2  # by so many characters an underline may be longer or shorter than its title
_HIDDEN = "hidden"
_LEADING = "leading"
_ROW = "row"
_ITEM = "item"
_SHOWN = ("text", "plain", "named", "alt", "inner", "target", "near", "file")
"""What of a link or a picture is shown: the first of these that it has."""


class _Line(NamedTuple):
    start: int
    end: int
    text: bytes


def lined_outline(source: bytes, rules: LineRules) -> Outline:
    """Blocks of a source, with its links and anchors."""
    reader = _Reader(source, rules)
    blocks = reader.blocks()
    code = reader.code
    matches = [match for match in rules.inline.finditer(source) if not inside(code, match.start())]
    spans = merged(source, [*reader.marks, *(span for match in matches for span in _around(match))])
    instead = {
        span: text
        for span, text in _apart(reader.signs(source))
        if not inside(code, span[0]) and not inside(spans, span[0])
    }
    anchors = [(match.start(), decoded(match[match.lastindex or 0])) for match in rules.anchors.finditer(source)]
    return Outline(
        blocks=blocks,
        anchors=NamePositions.of([*anchors, *reader.headings]),
        links=NamePositions.of(filter(None, map(_link, matches))),
        notes=NamePositions.of(reader.notes),
        heads=heads_of_lines(source),
        marks=sorted([*spans, *instead]),
        instead={start: text for (start, _), text in instead.items()},
    )


def _apart(signs: Iterable[tuple[Span, bytes]]) -> Iterator[tuple[Span, bytes]]:
    """Signs in order, without those inside others."""
    done = 0
    for (start, end), replacement in sorted(signs):
        if start >= done:
            yield (start, end), replacement
            done = end


class _Reader:
    """Reads the lines of a source, once."""

    def __init__(self, source: bytes, rules: LineRules) -> None:
        self.code: list[Span] = []
        self.marks: list[Span] = []
        self.headings: list[tuple[int, str]] = []
        self.notes: list[tuple[int, tuple[str, str]]] = []
        self.signs = rules.signs(source)
        self._rules = rules
        self._lines: list[_Line] = []
        start = 0
        for line in source.split(b"\n"):
            end = min(start + len(line) + 1, len(source))
            self._lines.append(_Line(start, end, line.rstrip()))
            start = end

    def blocks(self) -> list[Block]:
        """Blocks of the whole source."""
        blocks: list[Block] = []
        at = 0
        while at < len(self._lines):
            if not self._lines[at].text:
                at += 1
                continue
            block, at = self._block(at)
            blocks.append(block)
        return blocks

    def _kind(self, at: int) -> str | None:
        match = self._rules.line.match(self._lines[at].text) if self._lines[at].text else None
        kinds = ("heading", "whole_title", "code", "comment", "hidden", "leading", "row", "item")
        return None if match is None else next(kind for kind in kinds if match.groupdict().get(kind) is not None)

    def _block(self, at: int) -> tuple[Block, int]:
        kind = self._kind(at)
        line = self._lines[at]
        if self._is_underlined(at):
            return self._underlined(at), at + 2
        if kind in {"heading", "whole_title"}:
            return self._heading(at), at + 1
        if kind in {"code", "comment"}:
            after = self._closing(at, needed=kind == "comment")
            self.code.append(self._span(at, after))
            if kind == "comment":
                self.marks.append(self._span(at, after))
            return Block(*self._span(at, after), WHOLE if kind == "code" else ANCHOR), after
        if kind in {_HIDDEN, _LEADING}:
            if kind == _HIDDEN:
                self.marks.append((line.start, line.end))
            return Block(line.start, line.end, ANCHOR), at + 1
        if kind == _ROW:
            after = self._while(at, lambda other: self._kind(other) == _ROW)
            return Block(*self._span(at, after), WHOLE), after
        return self._list(at) if kind == _ITEM else self._paragraph(at)

    def _is_underlined(self, at: int) -> bool:
        """Whether a line is a title with a line of signs below it, about as long."""
        text, under = (self._lines[place].text if place < len(self._lines) else b"" for place in (at, at + 1))
        return (
            under[:1] in (self._rules.underlines or b"\0")
            and _UNDERLINE.match(under) is not None
            and self._kind(at) is None
            and text[:1] not in {b" ", b"\t"}
            and re.search(rb"\w", text) is not None
            and abs(len(decoded(text)) - len(under)) <= _TITLE_SIGNS
        )

    def _underlined(self, at: int) -> Block:
        line, under = self._lines[at], self._lines[at + 1]
        self.marks.append((under.start, under.end))
        return self._titled(line.start, under.end, self._rules.underlines.index(under.text[:1]), line.text)

    def _titled(self, start: int, end: int, rank: int, text: bytes) -> Block:
        title = decoded(filled(text, self.signs)).strip()
        self.headings.append((start, "-".join(re.findall(r"\w+", title.lower()))))
        return Block(start, end, HEADING, heading=Heading(rank, title))

    def _heading(self, at: int) -> Block:
        line = self._lines[at]
        match = self._rules.line.match(line.text)
        if match is None:  # never: the line was told to be a heading
            return Block(line.start, line.end)
        groups = match.groupdict()
        shown = "title" if groups.get("title") else "whole_title"
        sign, first = groups.get("heading") or b"", match.start(shown)
        beside = [match.span(name) for name in ("state", "tags", "rest") if groups.get(name)]
        beside += [(0, first)] if sign in self._rules.ranks or shown == "whole_title" else []
        self.marks += [(line.start + start, line.start + end) for start, end in beside]
        if tags := groups.get("tags"):
            self.notes.append((line.start, ("tags", " ".join(decoded(tags).strip(" \t:").split(":")))))
        rank = self._rules.ranks.get(sign, len(sign) - self._rules.top + 1)
        return self._titled(line.start, line.end, max(rank, 0), groups[shown])

    def _closing(self, at: int, *, needed: bool) -> int:
        """The line after what closes what a line opens; where nothing does, the next if that is needed, or the last."""
        text = self._lines[at].text.strip().lower()
        closing = next((end for start, end in self._rules.closed.items() if text.startswith(start)), None)
        for after in range(at + 1, len(self._lines)):
            other = self._lines[after].text
            if text.startswith(b"```"):
                closes = other == text[:3]
            else:
                closes = other == text if closing is None else other.strip().lower().startswith(closing)
            if closes:
                return after + 1
            if needed and self._kind(after) == "heading":
                break
        return at + 1 if needed else len(self._lines)

    def _list(self, at: int) -> tuple[Block, int]:
        """Items, with what is indented below them, or follows them without a blank line."""
        first, items, start = at, [], at
        at += 1
        while at < len(self._lines):
            text = self._lines[at].text
            kind = self._kind(at)
            if kind == _ITEM:
                items.append(Block(*self._span(start, at), PARAGRAPH))
                start = at
            elif not text:
                following = self._while(at, lambda other: not self._lines[other].text)
                if following == len(self._lines) or not self._goes_on(following):
                    break
            elif kind is not None and text != b"+":
                break
            at += 1
        items.append(Block(*self._span(start, at), PARAGRAPH))
        return Block(*self._span(first, at), LIST, inner=tuple(items)), at

    def _goes_on(self, at: int) -> bool:
        """Whether a list goes on with a line after a blank one."""
        return self._kind(at) == _ITEM or (self._kind(at) is None and self._lines[at].text[:1] in b" \t")

    def _paragraph(self, at: int) -> tuple[Block, int]:
        goes_on = {None} if self._rules.interrupting else {None, _ITEM}
        after = self._while(at + 1, lambda other: bool(self._lines[other].text) and self._kind(other) in goes_on)
        return Block(*self._span(at, after), PARAGRAPH), after

    def _while(self, at: int, holds: Callable[[int], bool]) -> int:
        while at < len(self._lines) and holds(at):
            at += 1
        return at

    def _span(self, first: int, after: int) -> Span:
        return self._lines[first].start, self._lines[after - 1].end


def _link(match: re.Match[bytes]) -> tuple[int, Link] | None:
    groups = match.groupdict()
    name = next((key for key in ("target", "near", "file") if groups.get(key)), None)
    if name is None:
        return None
    target = decoded(groups[name]).removeprefix("file:").partition("::")[0].strip()
    if not target or _ELSEWHERE.match(target):
        return None
    return match.start(), Link(LinkKind.REFERENCES, f"#{target}" if name == "near" and "#" not in target else target)


def _around(match: re.Match[bytes]) -> Iterator[Span]:
    """What of a link is not shown: all but its text, or where it leads if it has none."""
    groups = match.groupdict()
    shown = next((key for key in _SHOWN if groups.get(key)), None)
    if shown is None and (groups.get("picture") or groups.get("place")):
        yield match.span()
    elif shown is not None:
        yield match.start(), match.start(shown)
        yield match.end(shown), match.end()


OUTLINES: Mapping[str, Callable[[bytes], Outline]] = {
    "docbook": docbook_outline,
    "html": html_outline,
    "asciidoc": partial(lined_outline, rules=ASCIIDOC),
    "man": partial(lined_outline, rules=MAN),
    "org": partial(lined_outline, rules=ORG),
    "pod": partial(lined_outline, rules=POD),
}
"""What reads each of them, by the language of a document."""


def chunk_markup(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Sections of a document; long ones in parts of whole blocks."""
    outline = OUTLINES.get(document.language or "")
    if outline is None:
        return chunk_text(document, sizes, count_tokens)
    text = SizedText(document.text, sizes, count_tokens)
    return chunk_outline(document, text, outline(text.source))
