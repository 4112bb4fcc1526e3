"""Some of a generation's contents, by row: what a filtered search may find (RET-4), and samples of all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class RowSet:
    """Contents that a filter lets through; made once per filter, shared by threads, compared by identity.

    Attributes:
        mask: bool (contents,).
    """

    mask: np.ndarray

    @cached_property
    def rows(self) -> np.ndarray:
        """The rows, int64, ascending."""
        return np.flatnonzero(self.mask)

    def __len__(self) -> int:
        return len(self.rows)


def evenly_spaced(count: int, size: int) -> np.ndarray:
    """At most `size` of so many rows, int64, ascending: deterministic, and fair because rows are ordered by a hash.

    Examples:
        >>> evenly_spaced(10, 4).tolist(), evenly_spaced(3, 4).tolist(), evenly_spaced(0, 4).tolist()
        ([0, 3, 6, 9], [0, 1, 2], [])
    """
    return np.unique(np.linspace(0, count - 1, min(count, size)).astype(np.int64))
