"""Some of a generation's contents, by row: what a filtered search may find (RET-4)."""

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
