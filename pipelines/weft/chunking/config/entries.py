"""Entries of configuration files: keys with what they hold, found without building values (ING-9).

Scanners read a source once, know no aliases to expand and keep no more than `DEEPEST` levels, so that hostile files
cost what their size costs. Between brackets stand the entries of JSON, with comments and trailing commas, and those of
YAML in flow style; even ill-formed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from weft.chunking.units.splitting import decoded

DEEPEST = 12
"""Levels of nesting that are told apart; deeper ones belong to their ancestor."""

LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*+"?|[{}\[\],:]|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|[^\s{}\[\],:"/]+|/')
_IGNORED = (b"//", b"/*")


@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value, one table, stage, document or item."""

    start: int  # Bytes: from the comments above it to where its next sibling, or what follows its parent, begins
    end: int
    at: int  # where the entry itself begins, after those comments
    key: str
    children: tuple[Entry, ...] = ()  # what stands in it, in order
    container: bool = False  # whether its value holds others, rather than being a scalar or a list of scalars
    own: bool = False  # whether it is a unit of its own however short it is


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


@dataclass(slots=True)
class _Frame:
    """An object or array that is open."""

    owner: Open | None  # the entry whose value it is; None at the top
    array: bool
    boundary: int  # where its next entry may begin
    name: tuple[int, bytes] | None = None  # the last scalar, which a colon makes a key: its place and text
    count: int = 0  # elements of an array so far
    entries: list[Open] = field(default_factory=list)


def json_entries(source: bytes) -> list[Entry]:
    r"""Keys of the outermost object, or the objects in the outermost list.

    Examples:
        >>> [(entry.key, [child.key for child in entry.children]) for entry in json_entries(b'{"a": {"b": 1}, "c": 2}')]
        [('a', ['b']), ('c', [])]
    """
    return entries_within(source, _TOKEN, _IGNORED, lambda name: decoded(name.strip(b'"')))


def entries_within(
    source: bytes, tokens: re.Pattern[bytes], ignored: tuple[bytes, ...], named: Callable[[bytes], str]
) -> list[Entry]:
    """The same of other notations."""
    top = _Frame(None, array=False, boundary=0)
    stack = [top]
    skipped = 0  # brackets open below the deepest level
    for token in tokens.finditer(source):
        mark, at = token.group(), token.start()
        if mark.startswith(ignored):
            continue
        if mark in {b"{", b"["}:
            if skipped or len(stack) > DEEPEST:
                skipped += 1
            else:
                stack.append(_opened(source, stack[-1], array=mark == b"[", at=at))
        elif mark in {b"}", b"]"}:
            if skipped:
                skipped -= 1
            elif len(stack) > 1:
                _finish(stack.pop())
        elif not skipped:
            _scalar(source, stack[-1], mark, at, named)
    while len(stack) > 1:
        _finish(stack.pop())
    outermost = top.entries[0].children if len(top.entries) == 1 and not top.entries[0].key else top.entries
    return closed(outermost, len(source))


def _opened(source: bytes, frame: _Frame, *, array: bool, at: int) -> _Frame:
    if frame.array or not frame.entries or frame.name is not None:
        key = str(frame.count) if frame.array else ""
        frame.entries.append(Open(_start(source, frame.boundary, at), at, key))
        frame.name = None
    owner = frame.entries[-1]
    owner.container = True
    return _Frame(owner, array, at + 1)


def _finish(frame: _Frame) -> None:
    if frame.owner is not None:
        frame.owner.children += frame.entries
        frame.owner.container = not frame.array or bool(frame.entries)


def _scalar(source: bytes, frame: _Frame, mark: bytes, at: int, named: Callable[[bytes], str]) -> None:
    if mark == b",":
        frame.boundary, frame.name = at + 1, None
        frame.count += 1
    elif mark == b":":
        if frame.name is not None and not frame.array:
            place, name = frame.name
            frame.entries.append(Open(_start(source, frame.boundary, place), place, named(name)))
            frame.name = None
    else:
        frame.name = (at, mark)


def _start(source: bytes, boundary: int, at: int) -> int:
    """Where an entry begins, its comments included: after the line that the one before ends on."""
    line = source.find(b"\n", boundary, at) + 1
    return line or boundary
