"""Entities: named things that texts mention."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of a text that names something.

    Attributes:
        start, end: Half-open span in characters of the chunk's text.
        score: How sure the find is, in [0, 1]: where that was measured, the share of finds at least so sure that are
            right, otherwise what the model says.
    """

    start: int
    end: int
    text: str
    label: str
    score: float
