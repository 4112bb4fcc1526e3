"""What one channel ranked for one query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ScoreRows = Callable[[Ints], Floats]
"""One number for each of some contents, named by row."""


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Rows of contents, each once, and a channel's scores of them (higher is better), best first.

    Attributes:
        rows: int64 (n,).
        scores: float64 (n,).
    """

    rows: Ints
    scores: Floats

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, float]]) -> Hits:
        """Rows with their scores, the best first.

        Examples:
            >>> found = Hits.of([(7, 0.5), (3, 0.25)])
            >>> len(found), list(found.head(1))
            (2, [(7, 0.5)])
        """
        known = list(pairs)
        rows, scores = zip(*known, strict=True) if known else ((), ())
        return cls(np.array(rows, dtype=np.int64), np.array(scores, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(self.rows.tolist(), self.scores.tolist(), strict=True)

    def head(self, depth: int) -> Hits:
        """The first `depth` of them."""
        return self if len(self.rows) <= depth else Hits(self.rows[:depth], self.scores[:depth])


NOTHING = Hits.of(())
