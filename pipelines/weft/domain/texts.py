"""A short text as an encoder reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class ReadText:
    """What an encoder makes of a text."""

    states: np.ndarray  # of its tokens behind one layer, float32 (tokens, dimension)
    vector: np.ndarray  # of the text, float32 (dimension,): of unit length, zero of an empty text


class TextReader(Protocol):
    """Reads texts by an encoder; the same text gives the same bits."""

    def __call__(self, text: str, most: int, *, from_end: bool = False) -> ReadText:
        """A text's first tokens, or its last ones, at most `most`."""
        ...
