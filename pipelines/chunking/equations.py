r"""Displayed equations, and the words that explain them: neither is cut from the other (ING-6, ING-7)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from pipelines.chunking.splitting import sentences

_FENCES = ((b"$$", b"$$"), (b"\\[", b"\\]"))
_EXPLAINS = re.compile(
    rb"[\s,.;]{0,20}(?:where|with|here|in which|such that|so that|for|and|subject to)\b", re.IGNORECASE
)


def displayed(source: bytes, start: int, end: int) -> list[tuple[int, int]]:
    r"""Spans of the equations between `$$` and `$$`, or `\[` and `\]`, in a paragraph, with their explanations."""
    equations = [span for opening, closing in _FENCES for span in _between(source, start, end, opening, closing)]
    return explained(source, start, end, sorted(equations))


def explained(source: bytes, start: int, end: int, equations: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Equations of a paragraph with the sentence that leads to each, and the one after it that begins with "where".

    Args:
        equations: Spans, by where they begin.
    """
    if not equations:
        return []
    breaks = [start, *sentences(source, start, end), end]
    return list(_merged(_with_words(source, breaks, *span) for span in equations))


def _with_words(source: bytes, breaks: Sequence[int], first: int, last: int) -> tuple[int, int]:
    lead = breaks[bisect_right(breaks, first) - 1]
    words = _EXPLAINS.match(source, last, breaks[-1])
    return lead, last if words is None else breaks[bisect_left(breaks, words.end())]


def _between(source: bytes, start: int, end: int, opening: bytes, closing: bytes) -> Iterator[tuple[int, int]]:
    first = source.find(opening, start, end)
    while first >= 0:
        last = source.find(closing, first + len(opening), end)
        if last < 0:
            return
        yield first, last + len(closing)
        first = source.find(opening, last + len(closing), end)


def _merged(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    open_span: tuple[int, int] | None = None
    for start, end in spans:
        if open_span is not None and start < open_span[1]:
            open_span = (open_span[0], max(open_span[1], end))
            continue
        if open_span is not None:
            yield open_span
        open_span = (start, end)
    if open_span is not None:
        yield open_span
