"""Entities: named things that texts mention."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of a text that names something.

    Attributes:
        start, end: Half-open span in characters of the chunk's text.
        score: The model's confidence in [0, 1].
    """

    start: int
    end: int
    text: str
    label: str
    score: float
