"""Markups by headings beside Markdown: HTML, and those that tell by lines, AsciiDoc and Org (ING-6, ING-40)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from weft.chunking.prose.heads.lines import heads_of_lines
from weft.chunking.prose.html import html_outline
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
_ALWAYS = dict(
    zip(
        b"sp nbsp empty lt gt amp plus vbar asterisk backtick tilde startsb endsb".split(),
        (b" ", b" ", b"", b"<", b">", b"&", b"+", b"|", b"*", b"`", b"~", b"[", b"]"),
        strict=True,
    )
)
"""What AsciiDoc has a name for."""

_CONTINUED = re.compile(rb"[ \t]+\\\r?\n[ \t]*")
_MOST_NAMED = 2_000  # bytes that a name may stand for, whatever others that names
_UNDERLINE = re.compile(rb"([-=~^+])\1{2,}$")
_TITLE_SIGNS = 2  # by so many characters an underline may be longer or shorter than its title
_HIDDEN = "hidden"
_LEADING = "leading"
_ROW = "row"
_ITEM = "item"
_SHOWN = ("text", "plain", "named", "alt", "inner", "target", "near", "file")
"""What of a link or a picture is shown: the first of these that it has."""


@dataclass(frozen=True, slots=True)
class LineRules:
    """How a markup is read, by patterns of lines without their ends."""

    # its groups are `heading` with `title`, `whole_title` of the document, `code` that opens what stays as it is,
    # `comment` that opens what nobody reads, `hidden` lines, `leading` lines that belong to what follows, `row`
    # of a table, and `item` of a list. A line of none of them is text
    line: re.Pattern[bytes]
    closed: Mapping[bytes, bytes]  # what closes what a line opened, from the line
    # links; what is shown of one are the groups `text` and `plain`, where it leads `target` and `near`
    inline: re.Pattern[bytes]
    anchors: re.Pattern[bytes]  # names of places, in the only group that matched
    top: int  # signs before a heading of the widest sections
    # names that stand for texts: where one is given, and where it stands
    given: re.Pattern[bytes] | None = None
    named: re.Pattern[bytes] | None = None
    underlines: bytes = b""  # what a title of the first to the last rank may be underlined with


ASCIIDOC = LineRules(
    line=re.compile(
        rb"(?P<heading>={1,6}|\#{1,6})[ \t]+(?P<title>\S.*?)(?:[ \t]+(?P=heading))?$"
        rb"|(?P<code>-{4,}|\.{4,}|\+{4,}|[|,:!]={3,}|`{3}.*)$|(?P<comment>/{4,})$"
        rb"|(?P<hidden>//(?!/).*|:!?[A-Za-z0-9_][\w-]*!?:(?:[ \t].*)?|={4,}|\*{4,}|_{4,}|--"
        rb"|'{3,}|(?:ifn?def|ifeval|endif)::.*|\[(?:\[[^\]]+\]|\#[^\]]+|%[^\]]*|cols[^\]]*|options[^\]]*)\])$"
        rb"|(?P<leading>\[[^\]]*\]|\.[^\s.].*)$"
        rb"|(?P<item>[ \t]*(?:\*{1,5}|\.{1,5}|-|\d{1,9}\.)[ \t]+\S|\S[^\n]{0,200}?::(?:[ \t]|$))"
    ),
    closed={},
    inline=re.compile(
        rb"(?:xref|link|mailto):(?P<target>[^\s\[\]]{1,500})\[(?P<text>[^\]\n]{0,500})\]"
        rb"|<<(?P<near>[^<>,\n]{1,300})(?:,[ \t]*(?P<plain>[^<>\n]{0,300}))?>>"
        rb"|(?P<address>https?://[^\s\[\]]{1,500})\[(?P<named>[^\]\n]{1,500})\]"
        rb"|include::(?P<file>[^\s\[\]]{1,500})\[[^\]\n]{0,200}\]"
        rb"|(?P<picture>image|video|audio)::?[^\s\[\]]{1,500}\[\"?(?P<alt>[^\],\"\n]{0,300})[^\]\n]{0,300}\]"
        rb"|\b(?:kbd|btn|footnote|pass|stem|latexmath|asciimath):[a-z,]{0,20}\[(?P<inner>[^\]\n]{1,500})\]"
    ),
    anchors=re.compile(rb"^\[\[([^\],\n]{1,200})[^\]\n]*\]\]|^\[#([^\],.%\n]{1,200})[^\]\n]*\]", re.MULTILINE),
    top=2,
    given=re.compile(rb"^:(?P<name>\w[\w-]*):[ \t]+(?P<text>\S[^\n]*?(?:[ \t]\\\r?\n[^\n]*?)*)[ \t\r]*$", re.MULTILINE),
    named=re.compile(rb"(?<!\\)\{(?P<name>\w[\w-]{0,60})\}"),
    underlines=b"=-~^+",
)

ORG = LineRules(
    line=re.compile(
        rb"(?P<heading>\*+)[ \t]+(?P<state>(?:(?:TODO|DONE|NEXT|WAITING|CANCELLED)[ \t]+)?(?:\[\#\w\][ \t]+)?)"
        rb"(?P<title>\S.*?)(?P<tags>(?:[ \t]+:[\w@#%:]+:)?)[ \t]*$"
        rb"|(?i:\#\+title):[ \t]*(?P<whole_title>\S.*)$"
        rb"|(?P<code>[ \t]*(?i:\#\+begin_(?!comment|quote|center|verse)\w+).*)$"
        rb"|(?P<comment>[ \t]*(?i:\#\+begin_comment|:properties:).*)$"
        rb"|(?P<leading>[ \t]*(?i:\#\+caption:).*)$"
        rb"|(?P<hidden>[ \t]*(?:(?i:\#\+(?:begin|end)_(?:quote|center|verse))|\#(?:[ \t].*)?|\#\+[\w-]+:.*"
        rb"|(?:SCHEDULED|DEADLINE|CLOSED):.*))$"
        rb"|(?P<row>[ \t]*\|.*)$"
        rb"|(?P<item>[ \t]*(?:[-+]|\d{1,9}[.)])[ \t]+\S|[ \t]+\*[ \t]+\S)"
    ),
    closed={b"#+begin_": b"#+end_", b":properties:": b":end:"},
    inline=re.compile(
        rb"\[\[(?P<target>[^\[\]\n]{1,500})\](?:\[(?P<text>[^\[\]\n]{1,500})\])?\]|(?P<place><<[^<>\n]{1,200}>>)"
    ),
    anchors=re.compile(
        rb"^[ \t]*:(?:CUSTOM_ID|ID):[ \t]*(\S{1,200})|<<([^<>\n]{1,200})>>", re.MULTILINE | re.IGNORECASE
    ),
    top=1,
)


class _Line(NamedTuple):
    start: int
    end: int
    text: bytes


def lined_outline(source: bytes, rules: LineRules) -> Outline:
    """Blocks of a source, with its links and anchors."""
    reader = _Reader(source, rules)
    blocks = reader.blocks()
    code = reader.code
    matches = [match for match in rules.inline.finditer(source) if not _inside(code, match.start())]
    spans = merged(source, [*reader.marks, *(span for match in matches for span in _around(match))])
    instead = {
        span: text
        for span, text in reader.names.found(0, source)
        if not _inside(code, span[0]) and not _inside(spans, span[0])
    }
    anchors = [(match.start(), decoded(match[match.lastindex or 0])) for match in rules.anchors.finditer(source)]
    return Outline(
        blocks=blocks,
        anchors=NamePositions.of([*anchors, *reader.headings]),
        links=NamePositions.of(filter(None, map(_link, matches))),
        heads=heads_of_lines(source),
        marks=sorted([*spans, *instead]),
        instead={start: text for (start, _), text in instead.items()},
    )


class _Names:
    """Names that stand for texts, which may hold other names."""

    def __init__(self, source: bytes, rules: LineRules) -> None:
        self._pattern = rules.named
        self._given: dict[bytes, bytes] = dict(_ALWAYS)
        for match in rules.given.finditer(source) if rules.given else ():
            text = self.filled(_CONTINUED.sub(b" ", match["text"]))
            self._given[match["name"].lower()] = text[:_MOST_NAMED]

    def found(self, start: int, text: bytes) -> Iterator[tuple[Span, bytes]]:
        """Where names stand in a text, and for what."""
        for match in self._pattern.finditer(text, start) if self._pattern else ():
            if (told := self._given.get(match["name"].lower())) is not None:
                yield match.span(), told

    def filled(self, text: bytes) -> bytes:
        """A text with the texts of its names."""
        parts, at = [], 0
        for (start, end), told in self.found(0, text):
            parts += [text[at:start], told]
            at = end
        return b"".join([*parts, text[at:]])


class _Reader:
    """Reads the lines of a source, once."""

    def __init__(self, source: bytes, rules: LineRules) -> None:
        self.code: list[Span] = []
        self.marks: list[Span] = []
        self.headings: list[tuple[int, str]] = []
        self.names = _Names(source, rules)
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
            after = self._closing(at)
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
        title = decoded(self.names.filled(text)).strip()
        self.headings.append((start, "-".join(re.findall(r"\w+", title.lower()))))
        return Block(start, end, HEADING, heading=Heading(rank, title))

    def _heading(self, at: int) -> Block:
        line = self._lines[at]
        match = self._rules.line.match(line.text)
        groups = {} if match is None else match.groupdict()
        title = groups.get("title") or groups.get("whole_title") or b""
        if match is not None and groups.get("whole_title"):
            self.marks.append((line.start, line.start + match.start("whole_title")))
        elif match is not None and groups.get("state") is not None:
            self.marks += [
                (line.start + first, line.start + last) for first, last in map(match.span, ("state", "tags"))
            ]
        rank = len(groups["heading"]) - self._rules.top + 1 if groups.get("heading") else 0
        return self._titled(line.start, line.end, max(rank, 0), title)

    def _closing(self, at: int) -> int:
        """The line after what closes what a line opens; after the last one where nothing does."""
        text = self._lines[at].text.strip().lower()
        closing = next((end for start, end in self._rules.closed.items() if text.startswith(start)), None)
        after = at + 1
        while after < len(self._lines):
            other = self._lines[after].text
            after += 1
            if (
                other == text[:3]
                if text.startswith(b"```")
                else other == text
                if closing is None
                else (other.strip().lower().startswith(closing))
            ):
                break
        return after

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
        after = self._while(
            at + 1,
            lambda other: (
                bool(self._lines[other].text) and self._kind(other) in {None, _ITEM} and not self._is_underlined(other)
            ),
        )
        return Block(*self._span(at, after), PARAGRAPH), after

    def _while(self, at: int, holds: Callable[[int], bool]) -> int:
        while at < len(self._lines) and holds(at):
            at += 1
        return at

    def _span(self, first: int, after: int) -> Span:
        return self._lines[first].start, self._lines[after - 1].end


def _inside(spans: Sequence[Span], position: int) -> bool:
    before = bisect_right(spans, position, key=lambda span: span[0]) - 1
    return before >= 0 and position < spans[before][1]


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
