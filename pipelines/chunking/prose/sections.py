"""Documents with headings: from blocks to sections, from sections to units (ING-6, ING-7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pipelines.chunking.prose.outline import ANCHOR, DEEPEST, PREAMBLE, Block, Heading, Outline
from pipelines.chunking.prose.runs import parts_of, runs_of
from pipelines.chunking.units.hierarchy import ParsedUnit, SourceFacts, assemble
from pipelines.chunking.units.sizes import ChunkSizes, TokenCounter
from pipelines.chunking.units.splitting import Meter
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document

_PATH_SEPARATOR = " > "


def chunk_outline(
    document: Document, source: bytes, outline: Outline, sizes: ChunkSizes, count_tokens: TokenCounter
) -> list[Chunk]:
    """Chunks of a document of which a reader made the outline.

    A section stays whole up to the target; a longer one is cut into its special blocks and long paragraphs, and runs
    of the blocks between them. Lists stay whole up to their own limit, every other block up to the maximum.
    """
    meter = Meter(source, count_tokens)
    sections = _with_depths(_with_preamble(_sections(outline.blocks), sizes, meter), sizes, meter)
    units: list[ParsedUnit] = []
    for section, unit in _units(sections, outline.front, len(source)):
        for run, blocks in runs_of(section.blocks, unit, sizes, meter):
            units += parts_of(run, blocks, source, sizes, meter)
    units = [_annotated(unit, outline) for unit in units]
    return assemble(
        document, source, units, facts=SourceFacts(links=outline.links), sizes=sizes, count_tokens=count_tokens
    )


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
            bare = bare and block.leads
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


def _with_preamble(sections: list[_Section], sizes: ChunkSizes, meter: Meter) -> list[_Section]:
    """Sections, of which the title's begins with what stands before it where the two fit the target together."""
    if len(sections) == 1 or sections[0].headings or sections[1].rank:
        return sections
    before, title = sections[:2]
    if not meter.fits(before.blocks[0].start, title.blocks[-1].end, sizes.target_tokens):
        return sections
    return [replace(title, blocks=[*before.blocks, *title.blocks]), *sections[2:]]


def _with_depths(sections: Sequence[_Section], sizes: ChunkSizes, meter: Meter) -> list[_Section]:
    """Sections on the deepest level with those below them, where they fit the target together."""
    joined: list[_Section] = []
    index = 0
    while index < len(sections):
        section, end = sections[index], index + 1
        if section.rank >= DEEPEST:
            while end < len(sections) and sections[end].rank > section.rank:
                end += 1
            below = [block for inner in sections[index:end] for block in inner.blocks]
            room = sizes.target_tokens - meter.of_context(_context(section.headings[: section.own]))
            if end - index > 1 and meter.fits(below[0].start, below[-1].end, room):
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


def _units(sections: Sequence[_Section], front: int, size: int) -> Iterator[tuple[_Section, ParsedUnit]]:
    """A unit per section, which together cover the document; front matter belongs to the document's title."""
    title = _title_of(sections)
    if front and sections[0].headings and title is None:
        sections = [_Section(), *sections]
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
    return _PATH_SEPARATOR.join(heading.title for heading in headings)


def _annotated(unit: ParsedUnit, outline: Outline) -> ParsedUnit:
    anchors = outline.anchors.within(unit.start, unit.end)
    notes = dict(outline.notes.within(unit.start, unit.end))
    if len(anchors) > 1:
        notes["anchors"] = " ".join(anchors)
    return replace(unit, anchor=anchors[0] if anchors else None, attributes={**unit.attributes, **notes})
