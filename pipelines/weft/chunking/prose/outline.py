"""What a reader finds in a document with headings: its blocks, and names, links and facts by place (ING-6, ING-7).

No displayed equation is cut from the words that explain it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from weft.chunking.units.parsed import Head, NamePositions, SourceFacts
from weft.chunking.units.splitting import sentences
from weft.domain.links import Link

ANCHOR = "anchor"
HEADING = "heading"
LIST = "list"
PARAGRAPH = "paragraph"
PREAMBLE = "preamble"
WHOLE = "whole"  # a fence, a table, a directive: cut at lines alone
DEEPEST = 3  # the level of paragraphs and of what stands apart

Span = tuple[int, int]

_FENCES = ((b"$$", b"$$"), (b"\\[", b"\\]"))
_EXPLAINS = re.compile(
    rb"[\s,.;]{0,20}(?:where|with|here|in which|such that|so that|for|and|subject to)\b", re.IGNORECASE
)
_ENDS_SENTENCE = (b".", b"!", b"?")
_WIDEST_BLANK = 200  # bytes beside a mark that is alone on its line
_STOPS = b" \t\r\n,.;"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a document."""

    rank: int  # from 1 for the widest sections; 0 for the title of a document that says which its title is
    title: str
    anchor: str | None = None  # the identifier that the text gives it


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a document: what lies between two of them belongs to the first."""

    start: int
    end: int
    # what it is: `PARAGRAPH` and `LIST` have cuts inside, `HEADING` and `ANCHOR` stay with what follows
    kind: str = PARAGRAPH
    heading: Heading | None = None  # what a heading that opens a section says
    inner: tuple[Block, ...] = ()  # the items of a list, the blocks of a quote: where it is cut when it is too long
    uncut: tuple[Span, ...] = ()  # spans inside it that no cut between sentences falls into, disjoint and in order
    special: bool = False  # whether it is a unit of its own where its section is too long to stay whole
    name: str | None = None  # what tells it apart from others of its kind

    @property
    def keeps_with_next(self) -> bool:
        """Whether it stays with the block after it."""
        return self.kind in {HEADING, ANCHOR}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What a reader finds in a document."""

    blocks: Sequence[Block]  # at the top level, in order, disjoint
    anchors: Iterable[tuple[int, str]] = ()  # names by which places are referred to
    links: Iterable[tuple[int, Link]] = ()
    notes: Iterable[tuple[int, tuple[str, str]]] = ()  # facts about places, as name and value
    heads: Sequence[Head] = ()  # of its tables and fences, disjoint and in order
    # disjoint spans of markup that is no words, and what is shown instead: it is neither shown nor searched
    marks: Mapping[Span, bytes] = field(default_factory=dict)

    @property
    def facts(self) -> SourceFacts:
        """Links and marks in source order."""
        marks = sorted((*span, instead) for span, instead in self.marks.items())
        return SourceFacts(links=NamePositions.of(self.links), marks=marks)


def joined(spans: Iterable[Span], apart: int = 0) -> list[Span]:
    """Spans in order, those that meet as one; or only those that share so many bytes."""
    outer: list[Span] = []
    for start, end in sorted(spans):
        if outer and start <= outer[-1][1] - apart:
            outer[-1] = (outer[-1][0], max(outer[-1][1], end))
        else:
            outer.append((start, end))
    return outer


def inside(spans: Sequence[Span], position: int) -> bool:
    """Whether a position is in one of some spans, which are disjoint and in order."""
    before = bisect_right(spans, position, key=itemgetter(0)) - 1
    return before >= 0 and position < spans[before][1]


def merged(source: bytes, marks: Iterable[Span]) -> list[Span]:
    """Marks in order, those that meet as one, with the line of one that stands on it alone."""
    return [_with_line(source, *mark) for mark in joined(mark for mark in marks if mark[0] < mark[1])]


def _with_line(source: bytes, start: int, end: int) -> Span:
    first = source.rfind(b"\n", 0, start) + 1
    last = source.find(b"\n", end) + 1 or len(source)
    before, after = source[max(first, start - _WIDEST_BLANK) : start], source[end : min(last, end + _WIDEST_BLANK)]
    alone = not before.strip() and not after.strip() and start - first <= _WIDEST_BLANK >= last - end
    return (first, last) if alone and source[end - 1 : end] != b"\n" else (start, end)


def fenced_equations(source: bytes, start: int, end: int) -> list[Span]:
    r"""Spans of what stands between `$$` and `$$`, or `\[` and `\]`, in order."""
    return sorted(span for opening, closing in _FENCES for span in _between(source, start, end, opening, closing))


def with_explanations(blocks: Sequence[Block], source: bytes, equations: Sequence[Span]) -> list[Block]:
    """The blocks, where no paragraph is cut between an equation and what explains it."""
    joined: list[Block] = []
    apart = False  # whether the last of them ends in an equation
    for block in blocks:
        if block.kind != PARAGRAPH:
            joined.append(replace(block, inner=tuple(with_explanations(block.inner, source, equations))))
            apart = False
            continue
        alone = _is_equation(block, source, equations)
        before = joined[-1] if joined and joined[-1].kind == PARAGRAPH else None
        led = before is not None and not source[before.start : before.end].rstrip().endswith(_ENDS_SENTENCE)
        explains = apart and _EXPLAINS.match(source, block.start, block.end)
        if before is not None and ((alone and led) or explains):
            joined[-1] = replace(before, end=block.end)
        else:
            joined.append(block)
        apart = alone
    return [_uncut(block, source, equations) for block in joined]


def _is_equation(block: Block, source: bytes, equations: Sequence[Span]) -> bool:
    """Whether a paragraph is one equation, or several, and nothing else."""
    held = _within(equations, block.start, block.end)
    gaps = [block.start, *(place for span in held for place in span), block.end]
    return bool(held) and not any(
        source[left:right].strip(_STOPS) for left, right in zip(gaps[::2], gaps[1::2], strict=True)
    )


def _uncut(block: Block, source: bytes, equations: Sequence[Span]) -> Block:
    held = _within(equations, block.start, block.end)
    if block.kind != PARAGRAPH or not held:
        return block
    breaks = [block.start, *sentences(source, block.start, block.end), block.end]
    return replace(block, uncut=tuple(joined((_with_words(source, breaks, span) for span in held), apart=1)))


def _with_words(source: bytes, breaks: Sequence[int], span: Span) -> Span:
    first, last = span
    index = bisect_right(breaks, first) - 1
    before = source[breaks[0] : first].rstrip()
    if index and not source[breaks[index] : first].strip() and not before.endswith(_ENDS_SENTENCE):
        index -= 1  # a blank line before an equation does not end the sentence that leads to it
    words = _EXPLAINS.match(source, last, breaks[-1])
    return breaks[index], last if words is None else breaks[bisect_left(breaks, words.end())]


def _within(spans: Sequence[Span], start: int, end: int) -> Sequence[Span]:
    first, last = (bisect_left(spans, at, key=itemgetter(0)) for at in (start, end))
    return spans[first:last]


def _between(source: bytes, start: int, end: int, opening: bytes, closing: bytes) -> Iterator[Span]:
    first = source.find(opening, start, end)
    while first >= 0:
        last = source.find(closing, first + len(opening), end)
        if last < 0:
            return
        yield first, last + len(closing)
        first = source.find(opening, last + len(closing), end)
