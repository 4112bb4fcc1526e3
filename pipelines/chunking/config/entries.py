"""Entries of configuration files: keys with what they hold, found without building values (ING-9).

Scanners read a source once, know no aliases to expand and keep no more than `DEEPEST` levels, so that hostile files
cost what their size costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

DEEPEST = 12
"""Levels of nesting that are told apart; deeper ones belong to their ancestor."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value, one table, stage, document or item.

    Attributes:
        start, end: Bytes: from the comments above it to where its next sibling, or what follows its parent, begins.
        at: Where the entry itself begins, after those comments.
        children: What stands in it, in order.
        container: Whether its value holds others, rather than being a scalar or a list of scalars.
        own: Whether it is a unit of its own however short it is.
    """

    start: int
    end: int
    at: int
    key: str
    children: tuple[Entry, ...] = ()
    container: bool = False
    own: bool = False


Scanner = Callable[[bytes], list[Entry]]
"""Entries at the top of a source, in order; none where it has no structure."""


@dataclass(slots=True)
class Open:
    """An entry whose end is not known yet."""

    start: int
    at: int
    key: str
    container: bool = False
    children: list[Open] = field(default_factory=list)


def closed(opened: Sequence[Open], end: int) -> list[Entry]:
    """Entries with their ends: each runs to the next one, the last to `end`."""
    ends = [*(following.start for following in opened[1:]), end][: len(opened)]
    return [
        Entry(each.start, last, each.at, each.key, tuple(closed(each.children, last)), each.container)
        for each, last in zip(opened, ends, strict=True)
    ]
