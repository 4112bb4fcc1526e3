"""Markdown by headings: a section is a unit, under the path of its headings (ING-6)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise, zip_longest

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipelines.chunking.hierarchy import Facts, Unit, assemble, fitted
from pipelines.chunking.sizes import ChunkSizes, TokenCounter
from pipelines.chunking.splitting import Cuts, Meter, encoded, sentences
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document

_FRONT_MATTER = re.compile(r"\A(?:\ufeff)?---[ \t]*\r?\n(?:.*?\r?\n)??(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_LINE_END = re.compile(rb"\r\n?|\n")
_ANCHOR = re.compile(r"<!--\s*ANCHOR:\s*([^\s>]+?)\s*-->|<a\s[^>]*?\b(?:id|name)=[\"']([^\"']+)[\"']", re.IGNORECASE)
_HEADING_ID = re.compile(r"\s*\{#([^\s}]+)[^}]*\}\s*$")
_PATH_SEPARATOR = " > "
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a document.

    Attributes:
        rank: 1 to 6.
        start, end: Its lines' span in the source.
        title: Its plain text.
    """

    rank: int
    start: int
    end: int
    title: str
    anchor: str | None


@dataclass(frozen=True, slots=True)
class Block:
    """A block at the top level of a document.

    Attributes:
        items: Where the items of a list begin.
        prose: Whether it is a paragraph.
    """

    start: int
    end: int
    items: tuple[int, ...] = ()
    heading: Heading | None = None
    anchor: str | None = None
    prose: bool = False


def chunk_markdown(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Sections of a Markdown document; long ones in parts of whole blocks.

    Fences and tables stay whole up to the maximum, lists up to the target.
    """
    source = encoded(document.text)
    front, blocks = blocks_of(document.text, source)
    meter = Meter(source, count_tokens)
    units: list[Unit] = []
    for section, unit in _units(_sections(blocks), front, len(source)):
        cuts = partial(_cuts, section, unit, source, sizes, meter)
        units += fitted(unit, cuts, limit=sizes.target_tokens, source=source, sizes=sizes, meter=meter)
    return assemble(document, source, units, facts=Facts(), sizes=sizes, count_tokens=count_tokens)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def blocks_of(text: str, source: bytes) -> tuple[int, list[Block]]:
    """Length of the front matter in bytes, and the blocks after it."""
    match = _FRONT_MATTER.match(text)
    front = len(encoded(match.group())) if match else 0
    line_starts = [front, *(end.end() for end in _LINE_END.finditer(source, front)), len(source)]
    tokens = _parser().parse(text[match.end() :] if match else text)
    return front, [
        _block(tokens, index, line_starts)
        for index, token in enumerate(tokens)
        if token.level == 0 and token.nesting >= 0 and token.map
    ]


def _block(tokens: Sequence[Token], index: int, line_starts: Sequence[int]) -> Block:
    token = tokens[index]
    first, last = token.map or [0, 0]
    start, end = line_starts[first], line_starts[min(last, len(line_starts) - 1)]
    if token.type == "heading_open":
        return Block(start, end, heading=_heading(token, tokens[index + 1], start, end))
    if token.type == "html_block":
        return Block(start, end, anchor=_anchor(token.content))
    if token.type in {"bullet_list_open", "ordered_list_open"}:
        return Block(start, end, items=tuple(_item_starts(tokens, index, line_starts)))
    return Block(start, end, prose=token.type == "paragraph_open")


def _item_starts(tokens: Sequence[Token], index: int, line_starts: Sequence[int]) -> list[int]:
    starts = []
    for token in tokens[index + 1 :]:
        if token.level == 0:
            break
        if token.level == 1 and token.type == "list_item_open" and token.map:
            starts.append(line_starts[token.map[0]])
    return starts


def _heading(opening: Token, inline: Token, start: int, end: int) -> Heading:
    title = "".join(child.content for child in inline.children or () if child.type in {"text", "code_inline"})
    if any(child.type in {"softbreak", "hardbreak"} for child in inline.children or ()):
        title = " ".join(inline.content.split())
    named = _HEADING_ID.search(title)
    anchor = named.group(1) if named else _anchor(inline.content)
    return Heading(int(opening.tag[1]), start, end, _HEADING_ID.sub("", title).strip(), anchor)


def _anchor(html: str) -> str | None:
    match = _ANCHOR.search(html)
    return (match.group(1) or match.group(2)) if match else None


@dataclass(frozen=True, slots=True)
class _Section:
    """A run of blocks under one heading.

    Attributes:
        headings: From the outermost to its own; empty for what stands before the first.
        own: Index in `headings` of the first that stands in the section itself: more than one does where the ones
            above have no text of their own.
    """

    headings: tuple[Heading, ...] = ()
    own: int = 0
    blocks: tuple[Block, ...] = ()

    @property
    def bare(self) -> bool:
        """Whether it holds nothing but headings: alone it would answer nothing."""
        return bool(self.headings) and all(block.heading is not None for block in self.blocks)

    def followed_by(self, *blocks: Block) -> _Section:
        return replace(self, blocks=(*self.blocks, *blocks))


def _sections(blocks: Sequence[Block]) -> list[_Section]:
    sections: list[_Section] = []
    stack: tuple[Heading, ...] = ()
    ahead: tuple[Block, ...] = ()  # anchors right above a heading are that heading's
    for block, following in zip_longest(blocks, blocks[1:]):
        if block.heading is not None:
            rank = block.heading.rank
            stack = (*(outer for outer in stack if outer.rank < rank), block.heading)
            last = sections[-1] if sections else None
            if last is not None and last.bare and last.headings == stack[:-1] and not ahead:
                sections[-1] = replace(last.followed_by(block), headings=stack)
            else:
                sections.append(_Section(stack, len(stack) - 1, (*ahead, block)))
            ahead = ()
        elif block.anchor and following is not None and following.heading is not None:
            ahead = (block,)
        elif sections:
            sections[-1] = sections[-1].followed_by(block)
        else:
            sections.append(_Section(blocks=(block,)))
    return sections


def _has_title(sections: Sequence[_Section]) -> bool:
    """Whether the first section is headed by the only first-rank heading of its document."""
    firsts = {section.headings[0].start for section in sections if section.headings and section.headings[0].rank == 1}
    return bool(sections and sections[0].headings) and firsts == {sections[0].headings[0].start}


def _units(sections: Sequence[_Section], front: int, size: int) -> Iterator[tuple[_Section, Unit]]:
    """A unit per section, which together cover the document; front matter belongs to the document's title."""
    titled = _has_title(sections)
    if not sections or (front and sections[0].headings and not titled):
        sections = [_Section(), *sections]
    starts = [0, *(section.blocks[0].start for section in sections[1:]), size]
    for section, (start, end) in zip(sections, pairwise(starts), strict=True):
        titles = tuple(heading.title for heading in section.headings)
        whole = not titles or (titled and section is sections[0])
        anchors = (block.anchor or (block.heading.anchor if block.heading else None) for block in section.blocks)
        yield (
            section,
            Unit(
                start=start,
                end=end,
                path=_path(titles) if titles else "preamble",
                kind="section" if titles else "preamble",
                level=0 if whole else min(section.headings[section.own].rank, _DEEPEST),
                parents=(*(_path(titles[:depth]) for depth in range(section.own, 0, -1)), "preamble") if titles else (),
                context=_PATH_SEPARATOR.join(titles[: section.own]),
                part_context=_PATH_SEPARATOR.join(titles),
                part_kind="paragraphs",
                heading_path=titles,
                anchor=next(filter(None, anchors), None),
            ),
        )


def _path(titles: Sequence[str]) -> str:
    return "/".join(f"h:{title}" for title in titles)


def _cuts(section: _Section, unit: Unit, source: bytes, sizes: ChunkSizes, meter: Meter) -> Cuts:
    """Cuts before blocks, save those that follow a heading; also in lists and paragraphs that are too long alone."""
    inner: list[int] = []
    for before, block in zip((None, *section.blocks), section.blocks, strict=False):
        if before is not None and before.heading is None:
            inner.append(block.start)
        if block.items and not meter.fits(block.start, block.end, sizes.target_tokens):
            inner += block.items
        elif block.prose and not meter.fits(block.start, block.end, sizes.max_tokens):
            inner += sentences(source, block.start, block.end)
    return Cuts.between(unit.start, unit.end, inner)
