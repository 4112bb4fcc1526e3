r"""Displayed equations, and the words that explain them: neither is cut from the other (ING-6, ING-7)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pipelines.chunking.prose.outline import PARAGRAPH, Block
from pipelines.chunking.units.splitting import sentences

Span = tuple[int, int]

_FENCES = ((b"$$", b"$$"), (b"\\[", b"\\]"))
_EXPLAINS = re.compile(
    rb"[\s,.;]{0,20}(?:where|with|here|in which|such that|so that|for|and|subject to)\b", re.IGNORECASE
)
_ENDS_SENTENCE = (b".", b"!", b"?")
_STOPS = b" \t\r\n,.;"


def fenced_equations(source: bytes, start: int, end: int) -> list[Span]:
    r"""Spans of what stands between `$$` and `$$`, or `\[` and `\]`, in order."""
    return sorted(span for opening, closing in _FENCES for span in _between(source, start, end, opening, closing))


def with_explanations(blocks: Sequence[Block], source: bytes, equations: Sequence[Span]) -> list[Block]:
    """The blocks, where no paragraph is cut between an equation and what explains it.

    An equation that is a paragraph of its own joins the one before it, unless that ended with its sentence, and the one
    after it where that begins with "where".

    Args:
        equations: Spans of all equations of the source, by where they begin.
    """
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
    return replace(block, uncut=tuple(_merged(_with_words(source, breaks, span) for span in held)))


def _with_words(source: bytes, breaks: Sequence[int], span: Span) -> Span:
    first, last = span
    index = bisect_right(breaks, first) - 1
    before = source[breaks[0] : first].rstrip()
    if index and not source[breaks[index] : first].strip() and not before.endswith(_ENDS_SENTENCE):
        index -= 1  # a blank line before an equation does not end the sentence that leads to it
    words = _EXPLAINS.match(source, last, breaks[-1])
    return breaks[index], last if words is None else breaks[bisect_left(breaks, words.end())]


def _within(spans: Sequence[Span], start: int, end: int) -> Sequence[Span]:
    return spans[bisect_left(spans, start, key=_start) : bisect_left(spans, end, key=_start)]


def _start(span: Span) -> int:
    return span[0]


def _between(source: bytes, start: int, end: int, opening: bytes, closing: bytes) -> Iterator[Span]:
    first = source.find(opening, start, end)
    while first >= 0:
        last = source.find(closing, first + len(opening), end)
        if last < 0:
            return
        yield first, last + len(closing)
        first = source.find(opening, last + len(closing), end)


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    last: Span | None = None
    for start, end in spans:
        if last is not None and start < last[1]:
            last = (last[0], max(last[1], end))
            continue
        if last is not None:
            yield last
        last = (start, end)
    if last is not None:
        yield last
