"""Markdown by headings: a section is a unit, under the path of its headings (ING-6)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from markdown_it.token import Token

from weft.chunking.prose.front import Front, description_in, front_of
from weft.chunking.prose.heads import TABLES, heads_of_lines, lines_of, listed_head, options_end, outermost
from weft.chunking.prose.html import TOKEN, HtmlHeads
from weft.chunking.prose.markdown_marks import directive_body, included_files, markdown_marks
from weft.chunking.prose.markdown_parser import directive_of, parsed
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
    fenced_equations,
    inside,
    with_explanations,
)
from weft.chunking.prose.rst import rst_outline
from weft.chunking.units.parsed import Head
from weft.chunking.units.splitting import decoded, encoded
from weft.domain.links import Link, LinkKind

# Heads of what Markdown's dialects hold in directives, admonitions, tabs and templates (ING-36, ING-40).

_FENCE = re.compile(rb"(?:[ \t>*+-]|\d{1,9}[.)])*+(?P<fence>`{3,}|~{3,}|:{3,})(?P<info>[^\n]*)")
_LISTED = re.compile(r"(?:list|flat|csv)-table")
# Which lines are numbered or coloured, as MkDocs, Docusaurus and VuePress write it behind the language.
_LINES = re.compile(
    rb"(?i)[ \t]*(?:(?<=[ \t{])(?:hl_lines|linenums|linenos|linenostart|lineno-start|emphasize-lines|line-numbers"
    rb"|showlinenumbers|startline|highlight)(?:[ \t]*=[ \t]*(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s}]+))?(?=[\s}]|\Z)"
    rb"|(?<=[\w ])\{[\d,. \t-]+\})"
)


def fence_head(source: bytes, start: int, end: int) -> Iterator[Head]:
    """The head of a fence: what opens code, what names the columns of a table."""
    match = _FENCE.match(source, start, end)
    first = source.find(b"\n", start, end) + 1
    if match is None or not first or first >= end:
        return
    if _LISTED.fullmatch(directive := directive_of(decoded(match["info"]))):
        yield from _listed(source, first, end)
    elif directive == "table":
        yield from heads_of_lines(source, first, end, TABLES)
    else:
        yield Head(first, end, decoded(_LINES.sub(b"", match["fence"] + match["info"]).strip()))


def line_options(source: bytes, start: int, end: int) -> Iterator[Span]:
    """What the line that opens code says of how its lines are shown."""
    match = _FENCE.match(source, start, end)
    if match is not None and not directive_of(decoded(match["info"])):
        yield from (option.span() for option in _LINES.finditer(source, match.start("info"), match.end("info")))


def _listed(source: bytes, start: int, end: int) -> Iterator[Head]:
    lines = lines_of(source, start, end)
    after = len(lines) - (1 if lines and _FENCE.match(lines[-1].text) else 0)
    region = listed_head(lines, 0, options_end(lines, 0, after), after)
    if region is not None and region.head and region.first < region.after:
        text = decoded(source[lines[region.head[0]].start : lines[region.head[-1]].end])
        head = re.sub(r"\A\s*:?header:\s*", "", text).strip("\n")
        yield Head(lines[region.first].start, lines[region.after - 1].end, head)


def rst_in(source: bytes, start: int, end: int) -> tuple[list[Head], dict[Span, bytes]]:
    """Heads and marks of reStructuredText within a span."""
    outline = rst_outline(source[start:end])
    heads = [Head(start + head.start, start + head.end, head.text) for head in outline.heads]
    return heads, {(start + first, start + last): instead for (first, last), instead in outline.marks.items()}


_LINE_END = re.compile(rb"\r\n?|\n")
# Lengths are bounded: each "<a" of a hostile page would read on to its end.
_ANCHOR = re.compile(
    r"<!--\s{0,9}ANCHOR:\s{0,9}([^\s>]{1,200}?)\s{0,9}-->|<a\s[^<>]{0,200}?\b(?:id|name)=[\"']([^\"']{1,200})[\"']",
    re.IGNORECASE,
)
_HTML_LINK = re.compile(r"<a\s[^<>]{0,200}?\bhref=[\"']([^\"'\s]{1,1000})[\"']", re.IGNORECASE)
_HEADING_ID = re.compile(r"\s*\{:?\s*#([^\s}]{1,200})[^}]{0,200}\}$")
_LABEL = re.compile(r"\(([\w.:-]{1,100})\)=\s{0,9}")
_HEADING_CLASS = re.compile(r"\s*\{:?\s*[.][\w -]{1,200}\}$")
_TAG = re.compile(r"<[^<>]*>")
_ROLE = re.compile(r"\{[A-Za-z][\w:.+-]{0,40}\}\Z")
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_REACH = 4096  # bytes: how far ahead a word of a paragraph is looked for, so that its links cost no square of it
_LONGEST_EQUATION = 20  # blocks: a `$$` without its other must not take in the rest of the page
_KINDS = {
    "paragraph_open": PARAGRAPH,
    "heading_open": HEADING,
    "bullet_list_open": LIST,
    "ordered_list_open": LIST,
    "list_item_open": "item",
    "blockquote_open": "quote",
    "container_open": "directive",
}


def markdown_outline(text: str, source: bytes) -> Outline:
    """Blocks of a Markdown text, its anchors, and its links to other places in it or beside it."""
    match = front_of(text)
    front = len(encoded(text[: match.after])) if match else 0
    hidden = _hidden_front(text, match, front)
    lines = [front, *(end.end() for end in _LINE_END.finditer(source, front)), len(source)]
    reader = _Reader(source, lines)
    blocks = reader.blocks(parsed(text[match.after :] if match else text))
    rst = [rst_in(source, *span) for span in reader.rst]
    options = [option for span in reader.code for option in line_options(source, *span)]
    marks = {**hidden, **reader.templates, **dict.fromkeys([*options, *reader.rules], b"")}
    marks |= {span: instead for _, inner in rst for span, instead in inner.items()}
    return Outline(
        blocks=_with_equations(blocks, source),
        anchors=reader.anchors,
        links=[*reader.links, *_includes(source, reader.code)],
        heads=outermost([*reader.heads, *reader.html.heads, *(head for heads, _ in rst for head in heads)]),
        marks=markdown_marks(source, [(0, front), *reader.code], marks, reader.html.fences),
    )


def _hidden_front(text: str, front: Front | None, end: int) -> dict[Span, bytes]:
    """The spans of front matter that are read as facts: all of it but a description."""
    described = description_in(text, front) if front else None
    if described is None:
        return {(0, end): b""}
    first, last = (len(encoded(text[:at])) for at in described)
    return {(0, first): b"", (last, end): b"\n\n"}


def _includes(source: bytes, literals: Sequence[tuple[int, int]]) -> Iterator[tuple[int, Link]]:
    """Links to the files that a text takes in; examples in its code take in none."""
    code = sorted(literals)
    opened = {start for start, _ in code}
    for at, path in included_files(source):
        if at in opened or not inside(code, at):
            yield at, Link(LinkKind.REFERENCES, path)


@dataclass(slots=True)
class _Open:
    """A token that opened a block, and the blocks inside it so far."""

    token: Token
    text: str = ""
    inner: list[Block] = field(default_factory=list)


class _Reader:
    """Reads the tokens of one document, once."""

    def __init__(self, source: bytes, lines: Sequence[int]) -> None:
        self.anchors: list[tuple[int, str]] = []
        self.links: list[tuple[int, Link]] = []
        self.heads: list[Head] = []
        self.code: list[Span] = []
        self.rst: list[Span] = []
        self.rules: list[Span] = []
        self.templates: dict[Span, bytes] = {}  # lines around code, and the fences that are shown for them
        self.html = HtmlHeads(source)
        self._source = source
        self._lines = lines
        self._slugs: Counter[str] = Counter()

    def blocks(self, tokens: Sequence[Token]) -> list[Block]:
        """Blocks at the top level, with those inside them."""
        top: list[Block] = []
        stack: list[_Open] = []
        for token in tokens:
            if token.nesting > 0:
                stack.append(_Open(token))
                continue
            if token.nesting < 0:
                block = self._closed(stack.pop())
            elif token.type == "inline":
                self._read_inline(token, stack[-1])
                continue
            else:
                block = self._leaf(token)
            if block is not None:
                (stack[-1].inner if stack else top).append(block)
        return top

    def _span(self, token: Token) -> tuple[int, int]:
        first, last = token.map or (0, 0)
        return self._lines[first], self._lines[min(last, len(self._lines) - 1)]

    def _leaf(self, token: Token) -> Block | None:
        if not token.map:
            return None
        start, end = self._span(token)
        if token.type == "html_block":
            self._read_html(token.content, start)
            for tag in TOKEN.finditer(self._source, start, end):
                if tag["name"]:
                    self.html.read(decoded(tag["name"]).lower(), *tag.span(), closes=bool(tag["end"]))
            return Block(start, end, ANCHOR if _is_anchor(token.content) else WHOLE)
        if token.type == "hr" and token.level == 0:
            self.rules.append((start, end))
        if token.type in {"fence", "code_block", "template"}:
            self.code.append((start, end))
        if token.type == "fence":
            self._fence(token.info, start, end)
        if token.type == "template":
            self._template(token, start, end)
        return Block(start, end, ANCHOR if token.type == "mark" else WHOLE)

    def _template(self, token: Token, start: int, end: int) -> None:
        opens, after = token.map or (0, 0)
        first, last = self._lines[opens + 1], self._lines[after - 1]
        fence = f"```{token.info}"
        self.templates |= {(start, first): f"{fence}\n".encode(), (last, end): b"```\n"}
        self.heads.append(Head(first, end, fence))

    def _fence(self, info: str, start: int, end: int) -> None:
        """Note the head of a fence, unless it is a directive whose body is text as any other."""
        if directive_of(info) == "eval-rst":
            self.rst.append(directive_body(self._source, start, end))
        else:
            self.heads += fence_head(self._source, start, end)

    def _tables(self, start: int, end: int) -> list[Head]:
        """Heads of tables that the parser takes for a paragraph."""
        ruled = self._source.find(b"--", start, end) >= 0
        return heads_of_lines(self._source, start, end, TABLES) if ruled else []

    def _head(self, token: Token, rows: int, text: str) -> None:
        """Note what stands in the first rows of a token."""
        first, last = token.map or (0, 0)
        if last > first + rows:
            self.heads.append(Head(self._lines[first + rows], self._span(token)[1], text))

    def _closed(self, opened: _Open) -> Block | None:
        token = opened.token
        if not token.map:
            return None
        start, end = self._span(token)
        kind = _KINDS.get(token.type, WHOLE)
        if kind == HEADING:
            heading = self._heading(token, opened.text, start)
            if token.markup in {"=", "-"} and token.level == 0 and token.map:
                self.rules.append((self._lines[token.map[1] - 1], end))
            return Block(start, end, HEADING, heading=heading if token.level == 0 else None)
        if kind == PARAGRAPH and (tables := self._tables(start, end)):
            self.heads += tables
            return Block(start, end, WHOLE)
        if kind == PARAGRAPH:
            alone = ANCHOR if _LABEL.fullmatch(opened.text) or _is_anchor(opened.text) else PARAGRAPH
            return Block(start, end, alone)
        if directive_of(token.info).endswith("table"):
            self.heads += fence_head(self._source, start, end)
        if token.type == "table_open":
            self._head(
                token, 2, decoded(self._source[start : self._lines[(token.map or [0])[0] + 1]]).strip("> \t\r\n")
            )
        return Block(start, end, kind, inner=() if kind == WHOLE else tuple(opened.inner))

    def _heading(self, token: Token, title: str, start: int) -> Heading:
        named = _HEADING_ID.search(title)
        plain = title[: named.start()].rstrip() if named else _HEADING_CLASS.sub("", title)
        self.anchors.append((start, named.group(1) if named else self._slug(plain)))
        return Heading(int(token.tag[1]), plain, named.group(1) if named else None)

    def _slug(self, title: str) -> str:
        """What a heading is called in links, where it has no identifier of its own: as on GitHub."""
        slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        self._slugs[slug] += 1
        times = self._slugs[slug]
        return slug if times == 1 else f"{slug}-{times - 1}"

    def _read_inline(self, token: Token, opened: _Open) -> None:
        start, end = self._span(token) if token.map else self._span(opened.token)
        children = token.children or []
        if opened.token.type == "heading_open":
            opened.text = _title(token, children)
        elif label := _LABEL.fullmatch(token.content):
            self.anchors.append((start, label[1]))
            opened.text = token.content
        elif "<" in token.content:
            opened.text = token.content
        at = start
        for child in children:
            if child.type == "link_open":
                self._link(str(child.attrGet("href") or ""), at)
            elif child.type == "html_inline":
                self._read_html(child.content, at)
            elif child.content:
                words = encoded(child.content)
                place = self._source.find(words, at, min(end, at + _REACH))
                at = place + len(words) if place >= 0 else at

    def _read_html(self, html: str, at: int) -> None:
        self.anchors += [(at, match.group(1) or match.group(2)) for match in _ANCHOR.finditer(html)]
        for match in _HTML_LINK.finditer(html):
            self._link(match.group(1), at)

    def _link(self, href: str, at: int) -> None:
        target = unquote(href)
        if target.strip("#") and not _ELSEWHERE.match(target):
            self.links.append((at, Link(LinkKind.REFERENCES, target)))


def _title(inline: Token, children: Sequence[Token]) -> str:
    if any(child.type in {"softbreak", "hardbreak"} for child in children):
        return " ".join(inline.content.split())
    texts = [child for child in children if child.type in {"text", "code_inline"}]
    followed = (child.type == "code_inline" for child in texts[1:])
    return "".join(
        _ROLE.sub("", child.content) if code else child.content
        for child, code in zip(texts, [*followed, False], strict=False)
    ).strip()


def _is_anchor(html: str) -> bool:
    """Whether a block of HTML shows nothing and names its place."""
    return len(html) < _REACH and _ANCHOR.search(html) is not None and not _TAG.sub("", html).strip()


def _with_equations(blocks: Sequence[Block], source: bytes) -> list[Block]:
    """The blocks, where those between `$$` and `$$` are one: the parser takes a blank line there for an end."""
    joined: list[Block] = []
    index = 0
    while index < len(blocks):
        end = index + 1
        if blocks[index].kind == PARAGRAPH and _is_half_equation(blocks[index], source):
            reach = range(end, min(len(blocks), end + _LONGEST_EQUATION))
            end = 1 + next((other for other in reach if _is_half_equation(blocks[other], source)), index)
        joined.append(blocks[index] if end == index + 1 else Block(blocks[index].start, blocks[end - 1].end))
        index = end
    equations = [span for block in _paragraphs(joined) for span in fenced_equations(source, block.start, block.end)]
    return with_explanations(joined, source, equations) if equations else joined


def _paragraphs(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        if block.kind == PARAGRAPH:
            yield block
        yield from _paragraphs(block.inner)


def _is_half_equation(block: Block, source: bytes) -> bool:
    """Whether a block has one `$$` without its other; signs in an equation may make it a list."""
    return block.kind != WHOLE and source.count(b"$$", block.start, block.end) % 2 == 1
