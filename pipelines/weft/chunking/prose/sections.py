"""Documents with headings: from blocks to sections, from sections to units (ING-6, ING-7, ING-12)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from weft.chunking.prose.outline import ANCHOR, DEEPEST, LIST, PARAGRAPH, PREAMBLE, WHOLE, Block, Heading, Outline
from weft.chunking.units.hierarchy import PATH_SEPARATOR, assemble, fitted
from weft.chunking.units.parsed import Head, NamePositions, ParsedUnit, SourceFacts
from weft.chunking.units.splitting import Cuts, SizedText, decoded, sentences
from weft.domain.chunks import LINK_LIST, Chunk
from weft.domain.documents import Document

_LINK = re.compile(
    r"!?\[(?P<text>(?:[^][]|\[[^][]*\])*)\](?:\([^()\s]*(?:\s[^()]*)?\)|\[[^][]*\])"  # of Markdown
    r"|\[\[(?P<wiki>[^][]+)\]\]|<<(?P<cross>[^<>]+)>>|`(?P<rest>[^`<>]+)<[^<>]+>`_|:\w+:`(?P<role>[^`]+)`"
)
_HEADING = re.compile(r"(?m)^\s*(?:#+|=+)\s.*$")
_LETTERS = re.compile(r"[^\W_]+")


def is_link_list(text: str) -> bool:
    """Whether most of what a text says, below its headings, are links: in Markdown, AsciiDoc, reST or a wiki.

    Examples:
        >>> is_link_list("- [Codes](#codes) - [E_ONE](#e_one)"), is_link_list("[a](#a)")
        (True, False)
        >>> is_link_list("- [uv](#uv): installs packages - [ty](#ty): checks the types of them")
        False
    """
    if not any(mark in text for mark in ("](", "][", "[[", "<<", "`")):
        return False
    prose = _HEADING.sub("", text)
    links = [_letters("".join(filter(None, match.groups()))) for match in _LINK.finditer(prose)]
    return len(links) > 1 and sum(links) > _letters(_LINK.sub(" ", prose))


def _letters(text: str) -> int:
    return sum(map(len, _LETTERS.findall(text)))


_WIDEST_END = 200  # bytes at the end of a paragraph that are looked at


def chunk_outline(document: Document, text: SizedText, outline: Outline) -> list[Chunk]:
    """Chunks of a document of which a reader made the outline.

    A section stays whole up to the target; a longer one is cut into its special blocks and long paragraphs, and runs
    of the blocks between them. Lists stay whole up to their own limit, every other block up to the maximum.
    """
    facts = outline.facts
    anchors, notes = NamePositions.of(outline.anchors), NamePositions.of(outline.notes)
    text = _ShownText(document.text, text, facts)
    sections = _with_depths(_with_preamble(_sections(outline.blocks), text), text)
    units = [
        _annotated(part, anchors, notes, text.source)
        for section, unit in _units(sections, len(text.source))
        for run, blocks in _runs(section.blocks, unit, text)
        for part in _parts(run, blocks, text, outline.heads)
    ]
    return assemble(document, text, units, facts)


class _ShownText(SizedText):
    """A text of which readers do not see the marks: a page is as long as what it says."""

    def __init__(self, whole: str, text: SizedText, facts: SourceFacts) -> None:
        super().__init__(whole, text.sizes, text.count)
        self._facts = facts

    def shown(self, start: int, end: int) -> bytes:
        return self._facts.shown(self.source, start, end)

    def length(self, start: int, end: int) -> int:
        return len(self.shown(start, end))


@dataclass(frozen=True, slots=True)
class _Section:
    """A run of blocks under one heading."""

    headings: tuple[Heading, ...] = ()  # from the outermost to its own; empty for what stands before the first
    # index in `headings` of the first that stands in the section itself: more than one does where the ones above
    # have no text of their own
    own: int = 0
    blocks: Sequence[Block] = ()

    @property
    def rank(self) -> int:
        """The rank of the first heading that stands in it; 0 for what stands before the first heading."""
        return self.headings[self.own].rank if self.headings else 0


def _sections(blocks: Sequence[Block]) -> list[_Section]:
    """A section per heading; one with no text of its own, which alone would answer nothing, joins the next below."""
    openings: list[tuple[tuple[Heading, ...], int, int]] = []  # headings, own, index of the first block
    stack: tuple[Heading, ...] = ()
    bare = False
    for index, block in enumerate(blocks):
        heading = block.heading
        if heading is None:
            bare = bare and block.keeps_with_next
            continue
        stack = (*(outer for outer in stack if outer.rank < heading.rank), heading)
        if bare and openings[-1][0] == stack[:-1]:
            openings[-1] = (stack, *openings[-1][1:])
        else:
            openings.append((stack, len(stack) - 1, _with_anchors_ahead(blocks, index)))
        bare = True
    if not openings or openings[0][2]:
        openings.insert(0, ((), 0, 0))
    ends = [*(first for _, _, first in openings[1:]), len(blocks)]
    return [
        _Section(headings, own, blocks[first:end]) for (headings, own, first), end in zip(openings, ends, strict=True)
    ]


def _with_anchors_ahead(blocks: Sequence[Block], heading: int) -> int:
    """Anchors right above a heading are that heading's."""
    first = heading
    while first and blocks[first - 1].kind == ANCHOR:
        first -= 1
    return first


def _with_preamble(sections: list[_Section], text: SizedText) -> list[_Section]:
    """Sections, of which the title's begins with what stands before it where the two fit the target together."""
    if len(sections) == 1 or sections[0].headings or sections[1].rank:
        return sections
    before, title = sections[:2]
    if not text.fits(before.blocks[0].start, title.blocks[-1].end, text.sizes.target_tokens):
        return sections
    return [replace(title, blocks=[*before.blocks, *title.blocks]), *sections[2:]]


def _with_depths(sections: Sequence[_Section], text: SizedText) -> list[_Section]:
    """Sections on the deepest level with those below them, where they fit the target together."""
    joined: list[_Section] = []
    index = 0
    while index < len(sections):
        section, end = sections[index], index + 1
        if section.rank >= DEEPEST:
            while end < len(sections) and sections[end].rank > section.rank:
                end += 1
            below = [block for inner in sections[index:end] for block in inner.blocks]
            room = text.sizes.target_tokens - text.of_context(_context(section.headings[: section.own]))
            if end - index > 1 and text.fits(below[0].start, below[-1].end, room):
                joined.append(replace(section, blocks=below))
                index = end
                continue
        joined.append(section)
        index += 1
    return joined


def _title_of(sections: Sequence[_Section]) -> _Section | None:
    """The section that stands for the document: headed by a title, or first and by the only heading of rank 1."""
    for section in sections[:2]:
        if section.headings and section.rank == 0:
            return section
    first = sections[0]
    others = (section for section in sections[1:] if section.rank == 1)
    return first if first.headings and first.rank == 1 and next(others, None) is None else None


def _units(sections: Sequence[_Section], size: int) -> Iterator[tuple[_Section, ParsedUnit]]:
    """A unit per section, which together cover the document; front matter belongs to the first."""
    title = _title_of(sections)
    starts = [0, *(section.blocks[0].start for section in sections[1:]), size]
    for section, (start, end) in zip(sections, pairwise(starts), strict=True):
        headings = section.headings
        whole = section is title or (not headings and title is None)
        above = (*(_path(headings[:depth]) for depth in range(section.own, 0, -1)), PREAMBLE)
        yield (
            section,
            ParsedUnit(
                start=start,
                end=end,
                path=_path(headings) if headings else PREAMBLE,
                kind="section" if headings else PREAMBLE,
                level=0 if whole else min(section.rank or DEEPEST, DEEPEST),
                parents=above if headings and section is not title else (),
                context=_context(headings[: section.own]),
                part_context=_context(headings),
                part_kind="paragraphs",
                heading_path=tuple(heading.title for heading in headings),
            ),
        )


def _path(headings: Sequence[Heading]) -> str:
    return "/".join(f"h:{heading.title}" for heading in headings)


def _context(headings: Sequence[Heading]) -> str:
    return PATH_SEPARATOR.join(heading.title for heading in headings)


def _annotated(
    unit: ParsedUnit, anchors: NamePositions[str], notes: NamePositions[tuple[str, str]], source: bytes
) -> ParsedUnit:
    named = anchors.within(unit.start, unit.end)
    attributes = {**unit.attributes, **dict(notes.within(unit.start, unit.end))}
    if len(named) > 1:
        attributes["anchors"] = " ".join(named)
    if is_link_list(decoded(source[unit.start : unit.end])):
        attributes[LINK_LIST] = "yes"
    return replace(unit, anchor=named[0] if named else None, attributes=attributes)


def _runs(blocks: Sequence[Block], unit: ParsedUnit, text: SizedText) -> Iterator[tuple[ParsedUnit, Sequence[Block]]]:
    """A section's unit; where it is too long, one for each special block and for each run of blocks between them."""
    runs = _apart(blocks, unit, text)
    starts = [unit.start, *(run[0].start for run in runs[1:]), unit.end]
    times: Counter[str] = Counter()
    for number, (run, (start, end)) in enumerate(zip(runs, pairwise(starts), strict=True)):
        share = (end - start) / max(1, unit.end - unit.start)
        if number == 0:
            yield replace(unit, start=start, end=end, share=share), run
            continue
        apart = next((block for block in run if _is_apart(block, text)), None)
        kind = unit.part_kind if apart is None else apart.kind
        times[kind] += 1
        name = apart.name if apart is not None and apart.name else times[kind]
        yield (
            replace(
                unit,
                start=start,
                end=end,
                share=share if apart is None else 1.0,
                path=f"{unit.path}/{kind}:{name}",
                kind=kind,
                level=DEEPEST,
                parents=(unit.path, *unit.parents),
                context=unit.part_context,
            ),
            run,
        )


def _apart(blocks: Sequence[Block], unit: ParsedUnit, text: SizedText) -> list[list[Block]]:
    """Runs of blocks; what is below the minimum stays with the special block beside it."""
    room = text.sizes.target_tokens - text.of_context(unit.context)
    whole = text.fits(unit.start, unit.end, room) and not any(_is_long(block, text) for block in blocks)
    runs: list[list[Block]] = []
    between: list[Block] = []
    for block in blocks:
        if whole or not _is_apart(block, text):
            between.append(block)
            continue
        leading = _taken_from_end(between)
        if between and not _is_short(between, text):
            runs.append(between)
            between = []
        runs.append([*between, *leading, block])
        between = []
    if between and runs and _is_short(between, text):
        runs[-1] += between
    elif between or not runs:
        runs.append(between)
    return runs


def _taken_from_end(blocks: list[Block]) -> list[Block]:
    """The blocks at the end that stay with what follows, taken off."""
    count = sum(1 for _ in takewhile(lambda block: block.keeps_with_next, reversed(blocks)))
    taken = blocks[len(blocks) - count :]
    del blocks[len(blocks) - count :]
    return taken


def _is_short(blocks: Sequence[Block], text: SizedText) -> bool:
    return text.fits(blocks[0].start, blocks[-1].end, text.sizes.min_tokens - 1)


def _is_apart(block: Block, text: SizedText) -> bool:
    return (block.special and not _is_short([block], text)) or _is_long(block, text)


def _is_long(block: Block, text: SizedText) -> bool:
    limit = text.sizes.paragraph_tokens
    return block.kind == PARAGRAPH and limit is not None and not text.fits(block.start, block.end, limit)


def _parts(run: ParsedUnit, blocks: Sequence[Block], text: SizedText, heads: Sequence[Head]) -> Iterator[ParsedUnit]:
    """A run's unit whole where it fits the target, else its parts, with their share of the section."""

    def cuts() -> Cuts:
        return Cuts.between(run.start, run.end, _between(blocks, text))

    def sentence_cuts() -> Cuts:
        prose = (
            position
            for block in blocks
            if block.kind == PARAGRAPH and not block.inner
            for position in _sentences(block, text)
        )
        return Cuts.between(run.start, run.end, [*_between(blocks, text), *prose])

    limit = text.sizes.target_tokens
    for part in fitted(text, run, cuts, limit=limit, sentence_cuts=sentence_cuts, heads=heads):
        first = bisect_right(blocks, part.start, key=lambda block: block.end)
        last = bisect_left(blocks, part.end, key=lambda block: block.start)
        inside = [block for block in blocks[first:last] if not block.keeps_with_next]
        special = part.kind == run.part_kind and len(inside) == 1 and inside[0].special
        share = part.share if part is run else part.share * run.share
        yield replace(part, kind=inside[0].kind if special else part.kind, share=share)


def _between(blocks: Sequence[Block], text: SizedText) -> Iterator[int]:
    """Cuts before blocks, and inside those that are too long alone."""
    before: Block | None = None
    for block in blocks:
        if before is not None and not before.keeps_with_next and not _announces(before, block, text):
            yield block.start
        before = block
        limit = text.sizes.max_tokens
        if block.kind == LIST:
            limit = text.sizes.target_tokens if text.sizes.list_tokens is None else text.sizes.list_tokens
        if text.fits(block.start, block.end, limit):
            continue
        if block.inner:
            yield from _between(block.inner, text)
        elif block.kind != WHOLE:
            yield from _sentences(block, text)


def _announces(block: Block, following: Block, text: SizedText) -> bool:
    """Whether a paragraph ends in a colon, and fits beside what it is about: nobody begins to read after that."""
    last = text.source[max(block.start, block.end - _WIDEST_END) : block.end].rstrip()
    return (
        block.kind == PARAGRAPH
        and last.endswith((b":", b"\xef\xbc\x9a"))
        and following.heading is None
        and text.fits(block.start, following.end, 3 * text.sizes.target_tokens // 4)
    )


def _sentences(block: Block, text: SizedText) -> Iterator[int]:
    spans = block.uncut
    for position in sentences(text.source, block.start, block.end):
        before = bisect_left(spans, position, key=lambda span: span[0])
        if before == 0 or spans[before - 1][1] <= position:
            yield position
