"""A few words of a text that show why it was found."""

from __future__ import annotations

import re

CHARACTERS = 240  # about three lines of a terminal
_WORD = re.compile(r"\w+")


def snippet(text: str, query: str, length: int = CHARACTERS) -> str:
    r"""The text from the line that has most words of the query, on one line, at most `length` characters.

    Examples:
        >>> snippet("# Notes\n\nLocks are held\nwhile a checkpoint  is written.", "checkpoint written", 40)
        '… while a checkpoint is written.'
        >>> snippet("one two three", "", 8)
        'one two…'
    """
    lines = [line for line in text.splitlines() if line.strip()]
    wanted = _words(query)
    best = max(range(len(lines)), key=lambda at: (len(wanted & _words(lines[at])), -at), default=0)
    shown = " ".join(" ".join(lines[best:]).split())
    if best:
        shown = f"… {shown}"
    return shown if len(shown) <= length else f"{shown[: length - 1].rstrip()}…"


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}
