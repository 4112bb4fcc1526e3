"""Windows over a long text, and one list of mentions out of their overlapping finds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft.domain.chunks import Mention

WORD = re.compile(r"\w+(?:[-_]\w+)*|\S")  # GLiNER's own splitter, so that a window holds the words it counts


@dataclass(frozen=True, slots=True)
class Window:
    """Characters start to end (half-open) of a text, cut at words."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """What a window may hold."""

    words: int  # words at most, > 0
    tokens: int  # tokens of the encoder at most, > 0: names in code have many, and a model drops the surplus silently
    overlap: int  # words that neighbours share, in [0, words): a name on a border is whole in one of them

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < self.words or self.tokens < 1:
            raise ValueError(f"expected 0 <= overlap < words and tokens >= 1, got {self}")


def words_of(text: str) -> list[str]:
    """The words of a text, as the model counts them."""
    return WORD.findall(text)


def windows(text: str, costs: Sequence[int], room: WindowLimits) -> list[Window]:
    """Windows within `room` that together hold every word of `text`; a word too large for any has its own."""
    spans = [match.span() for match in WORD.finditer(text)]
    cut: list[Window] = []
    first = last = 0
    while last < len(spans):
        # Less overlap where large words leave no room for anything new behind it.
        while (reach := _reach(first, costs, room)) <= last:
            first += 1
        last = reach
        cut.append(Window(spans[first][0], spans[last - 1][1]))
        first = max(first + 1, last - room.overlap)
    return cut


def _reach(first: int, costs: Sequence[int], room: WindowLimits) -> int:
    """The word behind the last one that a window from `first` on can hold."""
    last, tokens = first + 1, costs[first]
    while last < min(first + room.words, len(costs)) and tokens + costs[last] <= room.tokens:
        tokens += costs[last]
        last += 1
    return last


def without_overlaps(mentions: Iterable[Mention]) -> list[Mention]:
    """Mentions that do not overlap, in text order: of two that do, the better scored stays, then the longer."""
    retained: list[Mention] = []
    for mention in sorted(mentions, key=lambda m: (-m.score, m.start - m.end, m.start, m.label)):
        if all(mention.end <= other.start or other.end <= mention.start for other in retained):
            retained.append(mention)
    return sorted(retained, key=lambda m: m.start)
