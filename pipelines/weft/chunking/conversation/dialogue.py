"""The canonical form of a session's text: how turns are written down and found again (ING-8).

A turn begins in the first column with `Speaker: ` or `Speaker (time): `; the further lines of what was said are
indented by two blanks, and empty lines stay empty. A line `# name` or `---` in the first column begins a topic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

_TURN = re.compile(rb"(?P<speaker>[^\s:()#][^:()\n]{0,79}?)(?: \((?P<time>[^()\n]{1,40})\))?:(?=[ \r\n]|\Z)")
_TOPIC = re.compile(rb"(?:#{1,6} (?P<name>[^\n]*)|-{3,}[ \t\r]*)(?:\n|\Z)")
_INDENT = "  "
_LONGEST_SPEAKER = 80
_LONGEST_TIME = 40


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker said at once."""

    speaker: str
    text: str
    time: str | None = None  # when, as it is shown
    turn_id: str | None = None  # what its source calls it


Line = Turn | str
"""A turn, or the name of a topic that begins ("" for one without)."""


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """Where a turn, or the marker of a topic, stands in a session's text."""

    start: int  # Bytes; the places of a session cover it
    end: int
    body: int  # where what was said begins
    speaker: str  # empty for a marker, and for text before the first turn
    time: str | None = None
    topic: str | None = None  # the name that a marker gives; None for a turn


def written(lines: Iterable[Line]) -> str:
    """A session's text."""
    return "".join(_turn(line) if isinstance(line, Turn) else _topic(line) for line in lines)


def unindented(text: str) -> str:
    """What was said, from the part of a session's text after a turn's colon."""
    first, *more = text.removesuffix("\n").split("\n")
    return "\n".join((first.removeprefix(" "), *(line.removeprefix(_INDENT) for line in more)))


def places(source: bytes) -> list[TurnPlace]:
    """Turns and markers of a session's text, in order; other lines belong to the turn before them."""
    if not source:
        return []
    starts = [_place(source, 0)]
    position = source.find(b"\n") + 1
    while position:
        if position < len(source) and source[position] not in b" \t\r\n":
            place = _place(source, position)
            if place.speaker or place.topic is not None:
                starts.append(place)
        position = source.find(b"\n", position) + 1
    ends = [*(place.start for place in starts[1:]), len(source)]
    return [replace(place, end=end) for place, end in zip(starts, ends, strict=True)]


def _place(source: bytes, start: int) -> TurnPlace:
    topic = _TOPIC.match(source, start)
    if topic is not None:
        return TurnPlace(start, start, topic.end(), "", topic=_decoded(topic.group("name") or b"").strip())
    turn = _TURN.match(source, start)
    if turn is None:
        return TurnPlace(start, start, start, "")
    time = turn.group("time")
    return TurnPlace(
        start, start, turn.end(), _decoded(turn.group("speaker")), None if time is None else _decoded(time)
    )


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _turn(turn: Turn) -> str:
    speaker = _plain(turn.speaker.lstrip("#-"), _LONGEST_SPEAKER) or "unknown"
    time = _plain(turn.time or "", _LONGEST_TIME, colon=":")
    first, *more = turn.text.replace("\r\n", "\n").split("\n")
    head = f"{speaker} ({time}):" if time else f"{speaker}:"
    lines = [f"{head} {first}" if first else head, *(f"{_INDENT}{line}" if line else "" for line in more)]
    return "\n".join(lines) + "\n"


def _topic(name: str) -> str:
    plain = " ".join(name.split())
    return f"# {plain}\n" if plain else "---\n"


def _plain(name: str, longest: int, *, colon: str = "-") -> str:
    """A name that cannot be taken for anything else at the start of a line."""
    clean = " ".join(name.split()).replace("(", "[").replace(")", "]").replace(":", colon)
    return clean.encode("utf-8", "replace")[:longest].decode("utf-8", "ignore").strip()
