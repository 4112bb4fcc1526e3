"""Windows over text that no grammar reads: where its layout says that something begins (ING-10).

A window ends in its last half, at the best place there is: before a paragraph, at the least indent; before a line that
begins something; before a sentence; anywhere. So a question stays with its answer, which is indented below it, and a
method of an unknown language with the comment above it. What is repeated from the window before begins at a place as
good as the one that is cut at.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from weft.chunking.units.splitting import Cuts, SizedText, lines, sentences, strides

_PARAGRAPH, _LINE, _SENTENCE, _ANYWHERE = range(4)
_TAB = 8  # columns
_FILLED = 0.4  # share of lines that begin in lower case, from which on a paragraph is filled: sentences run over lines
_BEGINS = re.compile(rb"[-*+\xe2][ \t\x80]|\(?(?:\d{1,4}|[A-Za-z])[.)][ \t]|[^\s:]{1,40}::?(?:[ \t]|$)")
_CLOSES = re.compile(rb"[\]})]|</|end\b|(?:esac|fi|done)\b")
_LONG = 2  # of a budget in tokens so many bytes each: a longer line may be cut at its sentences


class _Place(NamedTuple):
    """How good a place is for a window to begin: the less the better."""

    rank: int
    indent: int = 0


class _Text(NamedTuple):
    """A line that is not blank."""

    start: int
    text: bytes
    indent: int


def layout_windows(
    text: SizedText, reserved: int = 0, *, prose: bool = True, begins: Sequence[int] | None = None
) -> list[tuple[int, int]]:
    """Spans of at most `target` tokens less what is reserved, in order, which together cover everything.

    They begin at places of `begins`, where that is given, unless what stands between two of them is too long.

    A last span that adds less than the minimum joins the one before where both fit the maximum; one below the minimum
    shares the end of the one before.
    """
    sizes, size = text.sizes, len(text.source)
    budget = sizes.target_tokens - reserved
    room = max(1, budget - min(sizes.min_tokens, sizes.target_tokens // 2))
    places = _places(text.source, long=_LONG * max(1, budget), prose=prose)
    places = places if begins is None else dict.fromkeys(begins, _Place(_LINE))
    cuts = Cuts.between(0, size, places)
    for cutter in (sentences, lines, strides(max(4, room))):
        cuts = cuts.refined(text, cutter, room)
    edges = cuts.positions
    ranks = [places.get(edge, _Place(_ANYWHERE)) for edge in edges]
    totals = [0, *accumulate(text.tokens(*span) for span in pairwise(edges))]
    spans: list[tuple[int, int]] = []
    first = 0
    while True:
        last = _end(totals, ranks, first, budget)
        spans.append((first, last))
        if last == len(edges) - 1:
            break
        first = _repeated(totals, ranks, (first, last), min(sizes.overlap_tokens, budget // 2))
    if len(spans) > 1:
        spans[-2:] = _mended(totals, spans[-2:], sizes.min_tokens, sizes.max_tokens - reserved)
    return [(edges[first], edges[last]) for first, last in spans]


def _end(totals: Sequence[int], ranks: Sequence[_Place], first: int, budget: int) -> int:
    """Where a window ends that begins at an edge."""
    last = len(totals) - 1
    if totals[last] - totals[first] <= budget:
        return last
    reach = max(first + 1, bisect_left(totals, totals[first] + budget + 1) - 1)
    half = max(first + 1, bisect_left(totals, totals[first] + (budget + 1) // 2))
    return min(range(min(half, reach), reach + 1), key=lambda edge: (ranks[edge], -edge))


def _repeated(totals: Sequence[int], ranks: Sequence[_Place], span: tuple[int, int], overlap: int) -> int:
    """Where the next window begins: as far back as may be repeated, at no worse a place than the one cut at."""
    first, last = span
    # It holds at least one new piece besides.
    earliest = max(first + 1, bisect_left(totals, totals[last] - overlap))
    return next((edge for edge in range(earliest, last) if ranks[edge] <= ranks[last]), last)


def _mended(totals: Sequence[int], spans: list[tuple[int, int]], minimum: int, maximum: int) -> list[tuple[int, int]]:
    """The last two windows; as one where the last adds less than the minimum, or that with the end of the other."""
    (first, end), (start, last) = spans
    if totals[last] - totals[end] < minimum and totals[last] - totals[first] <= maximum:
        return [(first, last)]
    if totals[last] - totals[start] < minimum:
        back = max(first + 1, bisect_left(totals, totals[last] - minimum + 1) - 1)
        start = back if totals[last] - totals[back] <= maximum else start
    return [(first, end), (start, last)]


def _places(source: bytes, *, long: int, prose: bool) -> dict[int, _Place]:
    """Where something begins in a source."""
    places: dict[int, _Place] = {}
    for paragraph in _paragraphs(source):
        first, *others = paragraph
        places[first.start] = _Place(_PARAGRAPH, first.indent)
        filled = prose and _is_filled(others)
        end = paragraph[-1].start + len(paragraph[-1].text)
        if prose and (filled or any(len(line.text) > long for line in paragraph)):
            places |= {at: _Place(_SENTENCE) for at in sentences(source, first.start, end)}
        for above, line in pairwise(paragraph):
            begins = _BEGINS.match(line.text) if filled else not _CLOSES.match(line.text)
            if begins or (filled and line.indent < above.indent):
                places[line.start] = _Place(_LINE, line.indent)
    return places


def _is_filled(others: Sequence[_Text]) -> bool:
    """Whether the lines after the first go on with its sentences."""
    lower = sum(line.text[:4].decode("utf-8", "ignore")[:1].islower() for line in others)
    return bool(others) and lower >= _FILLED * len(others)


def _paragraphs(source: bytes) -> Iterator[list[_Text]]:
    """Lines between blank ones."""
    paragraph: list[_Text] = []
    start = 0
    for line in source.split(b"\n"):
        if text := line.strip():
            blank = line[: len(line) - len(line.lstrip())]
            indent = len(blank.expandtabs(_TAB)) if b"\t" in blank else len(blank)
            paragraph.append(_Text(start, text, indent))
        elif paragraph:
            yield paragraph
            paragraph = []
        start += len(line) + 1
    if paragraph:
        yield paragraph
