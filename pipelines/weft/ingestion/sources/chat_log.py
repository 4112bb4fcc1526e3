"""Chat logs: plain text in which a turn begins with the name of its speaker."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from weft.chunking.conversation.dialogue import Line, Turn

_NAME = r"[^\W\d_][\w.'’ -]{0,38}[\w.)]|[^\W\d_]"
_CLOCK = r"(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[,T ]{0,2})?\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?: ?[AaPp]\.?[Mm]\.?|Z)?"
_TURN = re.compile(
    rf"(?:\[?(?P<time>{_CLOCK})\]?\s*(?:[-–]\s*)?)?"
    rf"(?:<(?P<nick>[^<>\n]{{1,40}})>\s+(?![<:])|(?P<name>{_NAME})(?:\s*[(\[](?P<later>{_CLOCK})[)\]])?:(?:\s|\Z))"
)
_TOPIC = re.compile(r"(?:#{1,6}[ \t]+(?P<name>\S.*)|(?:-{3,}|={3,})\s*\Z)")
_NO_SPEAKERS = {
    *("debug", "info", "warning", "warn", "error", "fatal", "critical", "trace", "notice", "note", "todo", "fixme"),
    *("file", "files", "copyright", "license", "comment", "package", "pin", "version", "name", "what", "when", "why"),
}
_FEWEST_TURNS = 4
_LINE_END = re.compile(r"\r\n?|\n")  # a line that somebody wrote may hold what `str.splitlines` takes for an end
_MOST_SPEAKERS = 12
_FEWEST_RETURNING = 0.7  # share of the speakers who speak again after another: in lists of facts most names come once
_LEAST_SHARE = 0.4  # of the lines that are not blank
_LOOKED_AT = 400  # lines that decide
_CHARACTERS_LOOKED_AT = 160_000


def is_log(text: str) -> bool:
    """Whether a text reads as a chat log, by its first lines."""
    head = [line for line in _LINE_END.split(text[:_CHARACTERS_LOOKED_AT])[:_LOOKED_AT] if line.strip()]
    speakers = [_speaker(match) for match, _ in _matched(head) if match is not None]
    if len(speakers) < _FEWEST_TURNS or len(speakers) < _LEAST_SHARE * len(head):
        return False
    runs = Counter(speaker for speaker, _ in groupby(speakers))
    returning = sum(times > 1 for times in runs.values())
    return (
        2 <= len(runs) <= _MOST_SPEAKERS
        and returning >= max(1.0, _FEWEST_RETURNING * len(runs))
        and not any(name.lower() in _NO_SPEAKERS for name in runs)
    )


def lines_of(text: str) -> list[Line]:
    """Turns and topics of a chat log; none where the text is something else."""
    if not is_log(text):
        return []
    lines: list[Line] = []
    turn: list[str] = []  # lines of the last one
    for match, line in _matched(_LINE_END.split(text)):
        topic = _TOPIC.match(line) if match is None else None
        if match is not None:
            _finish(lines, turn)
            lines.append(Turn(_speaker(match), "", match["time"] or match["later"]))
            turn = [line[match.end() :]]
        elif topic is not None:
            _finish(lines, turn)
            lines.append((topic["name"] or "").strip())
        elif lines and isinstance(lines[-1], Turn):
            turn.append(line)
        elif line.strip():
            lines.append(line.strip())
    _finish(lines, turn)
    return lines


def _finish(lines: list[Line], turn: list[str]) -> None:
    if lines and isinstance(lines[-1], Turn):
        lines[-1] = replace(lines[-1], text="\n".join(turn).rstrip())


def _matched(lines: list[str]) -> Iterator[tuple[re.Match[str] | None, str]]:
    """Every line with the start of the turn on it; none inside a fence of code."""
    fenced = False
    for line in lines:
        match = None if fenced else _TURN.match(line)
        if line.count("```") % 2 == 1:
            fenced = not fenced
        yield match, line


def _speaker(match: re.Match[str]) -> str:
    speaker: str = match["nick"] or match["name"]
    return speaker.strip()
