"""Content hashes as arrays that are sorted and searched: what rows of a generation are found by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

HASH = np.dtype("S64")
"""One content hash, 64 hex digits."""


def hashes_of(column: pa.Array[Any]) -> np.ndarray:
    """The hashes of a column of strings."""
    return np.array(column.to_pylist(), dtype=HASH)


def rows_of(names: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """The row of each name in sorted hashes; −1 where there is none.

    Examples:
        >>> rows_of(np.array([b"b", b"x"]), np.array([b"a", b"b"])).tolist()
        [1, -1]
    """
    if not len(hashes):
        return np.full(len(names), -1, dtype=np.int64)
    rows = np.minimum(np.searchsorted(hashes, names), len(hashes) - 1)
    return np.where(hashes[rows] == names, rows, -1)
