"""HTML by headings, with tables, lists and code whole, and without its tags (ING-6, ING-40).

Tags are read one by one, each once, whatever is left open: trees of elements that are nested by the thousand take the
square of their size.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from urllib.parse import unquote

from weft.chunking.prose.heads import outermost
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
from weft.chunking.units.parsed import Head, SourceFacts
from weft.chunking.units.splitting import decoded, encoded
from weft.domain.links import Link, LinkKind

_INLINE_NAMES = (
    "a abbr acronym b bdi bdo big button cite code data del dfn em font i img input ins kbd label mark picture q s "
    "samp small source span strike strong sub sup time tt u var wbr"
)
INLINE = frozenset(_INLINE_NAMES.split())
"""Elements that stand in a line of text."""

_TAG = re.compile(r"<[!/]?([A-Za-z][\w:-]{0,60})?[^<>]*>")
_CLASS = re.compile(r"\bclass\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_NAMED = re.compile(r"\b(?:data-)?lang(?:uage)?\s*=\s*[\"']?([\w+#-]+)", re.IGNORECASE)
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-(?:source-)?|brush:\s*)([\w+#]+)|^(?:hljs|highlight)\s+(?!highlight)([\w+#]+)(?!\S)"
)
_NO_LANGUAGE = frozenset({"default", "none", "text", "plaintext", "en"})
_WRAPPERS = frozenset({"div", "figure", "section"})
_MOST_ROWS = 4  # of a header


@dataclass(slots=True)
class _Table:
    """A table that is open."""

    header: list[str] = field(default_factory=list)
    row: int | None = None  # where its row begins, while one is open
    rest: int = 0  # where what stands below its header begins
    complete: bool = False  # whether a row came that is none of the header
    in_head: bool = False


class HtmlHeads:
    """Reads tags in the order of a source."""

    def __init__(self, source: bytes) -> None:
        self.fences: list[tuple[int, str]] = []
        self._all: list[Head] = []
        self._source = source
        self._tables: list[_Table] = []
        self._wrapped: str | None = None
        self._code: int | None = None
        self._language: str | None = None

    @property
    def heads(self) -> list[Head]:
        """Heads in order."""
        return outermost(self._all)

    def read(self, name: str, start: int, end: int, *, closes: bool) -> None:
        """Read a tag of that span."""
        if self._code is not None:
            self._in_code(name, start, end, closes=closes)
        elif name == "pre" and not closes:
            self._code, self._language = start, language_of(decoded(self._source[start:end]), own=True) or self._wrapped
        elif name in _WRAPPERS:
            named = None if closes else language_of(decoded(self._source[start:end]), own=False)
            self._wrapped = None if closes else named or self._wrapped
        elif name == "table" and not closes:
            self._tables.append(_Table())
        elif self._tables:
            self._in_table(self._tables[-1], name, start, end, closes=closes)

    def _in_code(self, name: str, start: int, end: int, *, closes: bool) -> None:
        if name == "pre" and closes and self._code is not None:
            first = self._source.find(b"\n", self._code, start) + 1
            fence = f"```{self._language or ''}"
            self.fences += [(self._code, fence), (start, "```")]
            self._all += [Head(first, end, fence)] if first else []
            self._code = self._wrapped = None
        elif not closes and self._language is None:
            self._language = language_of(decoded(self._source[start:end]), own=True)

    def _in_table(self, table: _Table, name: str, start: int, end: int, *, closes: bool) -> None:
        if name in {"tr", "thead", "tbody", "tfoot", "table"}:
            at = end if name == "tr" and closes else start
            self._end_row(table, at)
            if name == "tr" and not closes:
                table.row = start
            table.in_head = (name == "thead" and not closes) or (name == "tr" and table.in_head)
        if name == "table":
            self._tables.pop()
            if table.header and table.rest < end:
                self._all.append(Head(table.rest, end, "\n".join(table.header)))

    def _end_row(self, table: _Table, at: int) -> None:
        if table.row is None:
            return
        row = decoded(self._source[table.row : at])
        table.row = None
        names = "<th" in row.lower() and (not table.header or "<td" not in row.lower())
        if table.complete or not (table.in_head or names) or len(table.header) == _MOST_ROWS:
            table.complete = True
        elif shown := shown_text(row):
            table.header.append(shown)
            table.rest = at


def shown_text(markup: str) -> str:
    """What some HTML says, in one line.

    Examples:
        >>> shown_text("<tr><th>A<b>B</b></th><th>C &amp; D</th></tr>")
        'AB C & D'
    """
    words = _TAG.sub(lambda tag: "" if (tag[1] or "").lower() in INLINE else " ", markup)
    return " ".join(html.unescape(words).split())


def language_of(tag: str, *, own: bool) -> str | None:
    """The language of code that a tag names.

    Examples:
        >>> language_of('<div class="highlight highlight-source-python">', own=False)
        'python'
    """
    named = _NAMED.search(tag) if own else None
    if named is not None and named[1].lower() not in _NO_LANGUAGE:
        return named[1]
    classes = _CLASS.search(tag)
    stated = next(filter(None, classes.groups()), "") if classes else ""
    names = (one or other for one, other in _LANGUAGE.findall(stated))
    return next((name for name in names if name not in _NO_LANGUAGE), None)


# Lengths are bounded: each sign of a hostile page would read on to its end.
TOKEN = re.compile(
    rb"(?P<comment><!--)|(?P<verbatim><!\[CDATA\[)|<!DOCTYPE\b[^<>\[]{0,1000}+\[[^\]]{0,4000}+\]\s{0,100}+>"
    rb"|<[!?](?P<declaration>[^<>]{0,1000}+)>"
    rb"|<(?P<end>/?)(?P<name>[A-Za-z][\w:-]{0,60}+)(?P<rest>(?:[^<>\"']++|\"[^\"]{0,4000}+\"|'[^']{0,4000}+'){0,200}+)>"
    rb"|(?P<entity>&(?:\#\d{1,7}|\#[xX][\da-fA-F]{1,6}|[A-Za-z]\w{1,30});)"
)
_ATTRIBUTE = re.compile(
    r"(?<!\S)(id|name|href|class|alt|xml:id|url|linkend|xlink:href)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_HIDDEN_NAMES = "button dialog footer iframe nav noscript object script select style svg template title"
_HIDDEN = frozenset(_HIDDEN_NAMES.split())
_NO_TEXT = re.compile(rb"\brole\s*=\s*[\"']?(?:navigation|banner|contentinfo|search|(?:alert)?dialog)\b", re.IGNORECASE)
_BESIDE = re.compile(rb"\brole\s*=\s*[\"']?complementary\b", re.IGNORECASE)
_NEVER_HIDDEN = "html body area br col embed hr img input link meta source wbr"  # a page, and what holds nothing
_SHOWN = frozenset(_NEVER_HIDDEN.split())
_MAY_HIDE = re.compile(rb"hidden|display", re.IGNORECASE)
_ANY_ATTRIBUTE = re.compile(rb"([^\s=\"'/]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")
_NO_DISPLAY = re.compile(rb"\bdisplay\s*:\s*none\b")
_MAIN = re.compile(rb"<main\b[^<>]{0,500}>(?P<text>.*)</main\s*>", re.DOTALL | re.IGNORECASE)
_IS_MAIN = rb"[^<>]{0,500}\brole\s*=\s*[\"']?main\b"
_PLACE = re.compile(
    rb"(?P<comment><!--)|<(?P<name>(?:article|aside|dialog|footer|h1|header|nav|noscript|script|style|template)\b"
    rb"|[a-z]\w{0,60}(?=" + _IS_MAIN + rb"))(?P<main>" + _IS_MAIN + rb")?[^<>]*>",
    re.IGNORECASE,
)
_TITLED = re.compile(rb"<h[1-6]\b", re.IGNORECASE)
_ALT = re.compile(r"\balt\s*=\s*([\"'])([^\"'<>]*?[^\s\"'<>][^\"'<>]*)\1", re.IGNORECASE)
_RAW = frozenset({b"script", b"style", b"title", b"iframe", b"noscript"})  # what stands in them is no element
_BULLET = "li"
_HEADINGS = {f"h{rank}": rank for rank in range(1, 7)}
_LISTS = frozenset({"ul", "ol", "dl"})
_ITEMS = {"ul": "li", "ol": "li", "dl": "dt"}
_CELLS = frozenset({"td", "th"})
_WHOLE = frozenset({"table", "pre"})


Names = Callable[[str, bool], str]
"""An element of HTML for one that a tag opens or closes."""

_SECTION_NAMES = (
    "article appendix book chapter part preface refentry refsect1 refsect2 refsect3 refsection sect1 sect2 sect3 sect4 "
    "sect5 section glossary bibliography"
)
_SECTIONS = frozenset(_SECTION_NAMES.split())
_LIKE_HTML = {
    "pre": "programlisting screen literallayout synopsis cmdsynopsis funcsynopsis",
    "ul": "itemizedlist orderedlist simplelist procedure calloutlist substeps",
    "li": "listitem member step callout",
    "dl": "variablelist glosslist",
    "dt": "varlistentry glossentry",
    "table": "table informaltable",
    "tr": "row",
    "td": "entry",
    "thead": "thead",
    "p": "para simpara formalpara note tip warning caution important term refpurpose abstract info bookinfo "
    "articleinfo refnamediv refsynopsisdiv example figure qandaset sidebar blockquote",
    "a": "link xref ulink",
    "script": "indexterm remark",
}
_LIKE: Mapping[str, str] = {name: like for like, names in _LIKE_HTML.items() for name in names.split()}


class _OfDocbook:
    """Elements of DocBook: a title is a heading as deep as its section, or a paragraph in anything else."""

    def __init__(self) -> None:
        self._within: list[str] = []
        self._title = ""

    def __call__(self, name: str, closes: bool) -> str:
        name = name.rpartition(":")[2]
        if name in {"title", "refentrytitle"}:
            if not closes:
                depth = sum(each in _SECTIONS for each in self._within)
                heads = not self._within or self._within[-1] in _SECTIONS or self._within[-1].endswith(("info", "meta"))
                self._title = f"h{min(max(depth, 1), 6)}" if heads else "p"
            return self._title or "p"
        if name in _SECTIONS or _LIKE.get(name) in {"p", "table"} or name.endswith(("info", "meta")):
            if not closes:
                self._within.append(name)
            elif name in self._within:
                del self._within[len(self._within) - 1 - self._within[::-1].index(name) :]
            return _LIKE.get(name, "section")
        return _LIKE.get(name, "span")


def html_outline(source: bytes, names: Callable[[], Names] | None = None) -> Outline:
    """Blocks of a page at whatever depth they stand, its anchors, and its links to other pages or places in it.

    `names` tells elements of another language by those of HTML that they are like.
    """
    reader = _Reader(source, names() if names else None)
    reader.read()
    spans = list(_split(merged(source, [(start, end) for start, end, _ in reader.tags]), reader.blocks))
    apart = {**separators(source, spans, reader.tags), **opened_fences(source, spans, reader.headed.fences)}
    marks = {**{span: apart.get(span[0], b"") for span in spans}, **reader.replaced}
    outline = Outline(
        blocks=reader.blocks, anchors=reader.anchors, links=reader.links, heads=reader.headed.heads, marks=marks
    )
    facts = outline.facts
    return replace(outline, blocks=[_titled(block, facts, source) for block in reader.blocks])


def _titled(block: Block, facts: SourceFacts, source: bytes) -> Block:
    """A block; if it is a heading, under the title that is shown of it, and none where nothing is."""
    if block.heading is None:
        return block
    title = " ".join(decoded(facts.shown(source, block.start, block.end)).split())
    return replace(block, heading=replace(block.heading, title=title) if title else None)


def character(entity: bytes) -> bytes:
    """What is written by name or number; a blank that keeps words together is a blank."""
    return encoded(html.unescape(decoded(entity)).replace("\xa0", " "))


class _Reader:
    """Reads the tokens of one page."""

    def __init__(self, source: bytes, names: Names | None) -> None:
        self.blocks: list[Block] = []
        self.anchors: list[tuple[int, str]] = []
        self.links: list[tuple[int, Link]] = []
        self.headed = HtmlHeads(source)
        self.tags: list[tuple[int, int, str]] = []
        self.replaced: dict[Span, bytes] = {}  # characters by name, and words that stand for pictures
        self._source = source
        self._names = names or (lambda name, _closes: name)
        self._absent: set[bytes] = set()  # what closes something, and comes no more
        self._main = [] if names else self._main_text()
        self._whole = not (names or self._main)
        self._titled = 0  # where the last header ends that holds a heading
        self._start: int | None = None  # where the next block begins, at its outermost tag
        self._inked = False  # whether that has text already
        self._open: str | None = None  # what is read to its end: a heading, a list, a table, code
        self._depth = 0  # of elements of that name
        self._cell = ""  # what a heading stands in, of a table
        self._items: list[int] = []

    def read(self) -> None:
        """Read the main text, or all; what stands around it is shown to nobody."""
        end = 0
        for first, last in self._main or [(0, len(self._source))]:
            self.tags.append((end, first, ""))
            self._read(first, last)
            end = last
        self.tags.append((end, len(self._source), ""))

    def _main_text(self) -> list[Span]:
        """Where the main text stands, if the page says so: in articles, where no title stands outside of them."""
        if main := _MAIN.search(self._source):
            return [main.span("text")]
        mains: list[Span] = []
        articles: list[Span] = []
        at, titled = 0, False
        while place := _PLACE.search(self._source, at):
            at = self._skipped(place)
            name = (place["name"] or b"").lower()
            titled = titled or name == b"h1"
            if at > place.end() and (place["main"] or name == b"article"):
                (mains if place["main"] else articles).append((place.start(), at))
        return mains if len(mains) == 1 else [] if titled else articles

    def _read(self, first: int, last: int) -> None:
        source, at = self._source, first
        while token := TOKEN.search(source, at, last):
            self._text(at, token.start())
            at = token.end()
            name = decoded(token["name"] or b"").lower()
            name = name and self._names(name, bool(token["end"]))
            if (hidden := self._hidden(token, name)) is not None:
                at = hidden
                self.tags.append((token.start(), at, name))
            elif token["verbatim"]:
                end = source.find(b"]]>", at, last)
                end = end if end >= 0 else last
                self._text(at, end)
                self.tags += [(*token.span(), ""), (end, min(end + 3, last), "")]
                at = min(end + 3, last)
            elif token["entity"]:
                self._text(*token.span())
                self.replaced[token.span()] = character(token.group())
            elif name == "img" and (alt := _ALT.search(decoded(token["rest"]))):
                self._text(*token.span())
                self.replaced[token.span()] = encoded(html.unescape(alt[2]).strip())
            else:
                self.tags.append((*token.span(), "p" if token["end"] and name == _BULLET else name))
                if name:
                    self._tag(token, name)
        self._text(at, last)
        self._close(last)

    def _hidden(self, token: re.Match[bytes], name: str) -> int | None:
        """Where something ends that is not read; None for what is. Around a main text, headers with headings are."""
        if token["comment"]:
            return self._skipped(token)
        rest = token["rest"] or b""
        beside = self._whole and (name in {"aside", "header"} or (b"role" in rest and bool(_BESIDE.search(rest))))
        if token["end"] or not (_is_hidden(name, rest) or (beside and token.start() >= self._titled)):
            return None
        end = self._skipped(token)
        if name == "header" and _TITLED.search(self._source, token.end(), end):
            self._titled = end
            return None
        if name == "a":
            self._attributes(token, "")
        return end

    def _skipped(self, token: re.Match[bytes]) -> int:
        """Where something ends that is not read; its opening tag alone where nothing ends it."""
        name = b"-->" if token["comment"] else token["name"].lower()
        if name in self._absent:
            return token.end()
        if token["comment"]:
            ends = self._source.find(name, token.end())
            if ends >= 0:
                return ends + len(name)
        depth = 1
        for tag in re.compile(rb"<(/?)" + re.escape(name) + rb"\b[^<>]*>?", re.IGNORECASE).finditer(
            self._source, token.end()
        ):
            depth += -1 if tag[1] else name not in _RAW
            if not depth:
                return tag.end()
        self._absent.add(name)
        return token.end()

    def _text(self, start: int, end: int) -> None:
        if self._inked or not (text := self._source[start:end].strip()):
            return
        self._inked = bool(text)
        if self._start is None:
            self._start = self._source.index(text, start)

    def _tag(self, token: re.Match[bytes], name: str) -> None:
        closes = bool(token["end"])
        self.headed.read(name, *token.span(), closes=closes)
        if not closes:
            self._attributes(token, name)
        if self._open is not None:
            self._inside(token, name, closes=closes)
        elif name not in INLINE and name != "br":
            if closes:
                self._close(token.end())
            else:
                self._opened(token, name)
        elif self._start is None and not closes:
            self._start = token.start()

    def _opened(self, token: re.Match[bytes], name: str) -> None:
        if self._inked:
            self._close(token.start())
        if self._start is None:
            self._start = token.start()
        if name in _HEADINGS or name in _LISTS or name in _WHOLE:
            self._open, self._depth, self._inked, self._cell = name, 1, True, ""
            self._items = []
        elif name == "hr":
            self._close(token.end())

    def _inside(self, token: re.Match[bytes], name: str, *, closes: bool) -> None:
        """Read a tag inside a heading, a list, a table or code."""
        if name in _CELLS:
            self._cell = "td" if closes else name
        if self._open in _HEADINGS and name in _HEADINGS and not closes:
            self._close(token.start())
            self._opened(token, name)
        elif (self._open in _LISTS or self._cell == "td") and name in _HEADINGS and not closes:
            self._close(token.start())  # whole sections in a list, or in a table that lays out a page
            self._opened(token, name)
        elif name == self._open:
            self._depth += -1 if closes else 1
            if self._depth == 0:
                self._close(token.end())
        elif self._depth == 1 and name == _ITEMS.get(self._open or "") and not closes:
            self._items.append(token.start())

    def _close(self, end: int) -> None:
        """The block that is open ends here, where it says something."""
        start, opened, inked = self._start, self._open, self._inked
        self._start, self._open, self._inked = None, None, False
        if start is None:
            return
        if opened in _HEADINGS:
            anchor = self.anchors[-1][1] if self.anchors and self.anchors[-1][0] >= start else None
            self.blocks.append(Block(start, end, HEADING, heading=Heading(_HEADINGS[opened], "", anchor)))
        elif opened in _LISTS:
            edges = [start, *self._items[1:], end]
            items = tuple(Block(first, last, PARAGRAPH) for first, last in pairwise(edges))
            self.blocks.append(Block(start, end, LIST, inner=items))
        elif opened in _WHOLE:
            self.blocks.append(Block(start, end, WHOLE))
        else:
            self.blocks.append(Block(start, end, PARAGRAPH if inked else ANCHOR))

    def _attributes(self, token: re.Match[bytes], name: str) -> None:
        if b"=" not in token["rest"]:
            return
        for match in _ATTRIBUTE.finditer(decoded(token["rest"])):
            key, value = match[1].lower(), html.unescape(match[2] or match[3] or match[4] or "").strip()
            if key in {"id", "xml:id"} or (key == "name" and name == "a"):
                self.anchors.append((token.start(), value))
            elif key in {"href", "url", "linkend", "xlink:href"} and name == "a":
                target = f"#{value}" if key == "linkend" else unquote(value)
                if target.strip("#") and not _ELSEWHERE.match(target):
                    self.links.append((token.start(), Link(LinkKind.REFERENCES, target)))


def _is_hidden(name: str, rest: bytes) -> bool:
    """Whether nobody reads what an element holds; a sign beside a heading that links to it is of that kind."""
    if rest.endswith(b"/") or name in _SHOWN:
        return False
    sign = (name == "a" and b"headerlink" in rest) or (name == "span" and b"mw-editsection" in rest)
    return sign or name in _HIDDEN or (b"role" in rest and bool(_NO_TEXT.search(rest))) or _is_switched_off(rest)


def _is_switched_off(rest: bytes) -> bool:
    """Whether attributes say that nobody sees an element; a tab that is not in front can be seen."""
    if not _MAY_HIDE.search(rest):
        return False
    stated = {each[1].lower(): (each[2] or each[3] or each[4] or b"").lower() for each in _ANY_ATTRIBUTE.finditer(rest)}
    off = stated.get(b"hidden", b"until-found") != b"until-found" or stated.get(b"aria-hidden") == b"true"
    return stated.get(b"role") != b"tabpanel" and (off or _NO_DISPLAY.search(stated.get(b"style", b"")) is not None)


def _split(spans: Sequence[Span], blocks: Sequence[Block]) -> Iterator[Span]:
    """Spans of tags, cut where a block begins: each part belongs to what stands there."""
    starts = [block.start for block in blocks]
    for start, end in spans:
        inside = starts[bisect_right(starts, start) : bisect_left(starts, end)]
        yield from pairwise([start, *inside, end])


def opened_fences(source: bytes, spans: Sequence[Span], fences: Sequence[tuple[int, str]]) -> Mapping[int, bytes]:
    """What stands above and below code instead of its tags, so that it is told in which language it is."""
    starts = [start for start, _ in spans]
    opened: dict[int, bytes] = {}
    for at, fence in fences:
        start, end = spans[bisect_right(starts, at) - 1]
        before = b"" if source[start - 1 : start] == b"\n" else b"\n"
        opened[start] = before + fence.encode() + (b"" if source[end : end + 1] == b"\n" else b"\n")
    return opened


def separators(
    source: bytes, spans: Sequence[Span], tags: Sequence[tuple[int, int, str]], *, tight: bool = False
) -> Mapping[int, bytes]:
    """What keeps words and lines apart where tags stood, by where these begin."""
    separators: dict[int, bytes] = {}
    following = deque(tags)
    for start, end in spans:
        apart = b""
        while following and following[0][0] < end:
            name = following.popleft()[2]
            if name in _CELLS:
                apart = apart or b" "
            elif name == _BULLET:
                apart = b"\n- "
            elif name and name not in INLINE and apart != b"\n- ":
                apart = b"\n"
        if apart == b"\n- ":
            separators[start] = apart[1:] if source[max(start - 1, 0) : start] in {b"\n", b""} else apart
            continue
        beside = source[max(start - 1, 0) : start] + source[end : end + 1]
        blanks = b"\r\n" if apart == b"\n" and not tight else b" \t\r\n"
        blank = any(sign in blanks for sign in beside)
        if apart and not blank:
            separators[start] = apart
    return separators


docbook_outline = partial(html_outline, names=_OfDocbook)
"""The same of DocBook."""
