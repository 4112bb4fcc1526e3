"""All pairs of near vectors, each product computed once: how contents that say nearly the same are found (ING-14)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

_BLOCK = 512  # rows compared at once: bounds memory, changes nothing else
_KEPT = 5_000_000  # pairs at once: 80 MB


def near_rows(unit: np.ndarray, least: np.float32, kept: int = _KEPT) -> Iterator[tuple[int, np.ndarray]]:
    """Each row that has others near it, in order, and these, in no order.

    A pair found from the one side is kept for the other, which need not compare with the rows before it then.

    Args:
        unit: float32 (n, dimension), unit rows.
        least: Product of two near rows, in single precision.
        kept: How many pairs at most; those beyond are computed from both sides.

    Examples:
        >>> unit = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]], dtype=np.float32)
        >>> [(row, near.tolist()) for row, near in near_rows(unit, np.float32(0.7))]
        [(0, [2]), (2, [0])]
    """
    waiting = _Waiting()
    compared_from = len(unit)  # rows from here on are compared with by every block
    for start in range(0, len(unit), _BLOCK):
        stop = start + _BLOCK
        first = min(start, compared_from)
        own, others = np.nonzero(unit[start:stop] @ unit[first:].T >= least)
        pairs = np.stack([own + start, others + first])
        before = waiting.taken(start)
        if compared_from == len(unit) and not waiting.put(pairs[:, pairs[1] >= stop], kept):
            compared_from = start
        pairs = np.concatenate([*before, pairs[:, pairs[0] != pairs[1]]], axis=1)
        rows, near = pairs[:, np.argsort(pairs[0], kind="stable")]
        bounds = [0, *(np.flatnonzero(np.diff(rows)) + 1).tolist(), len(rows)]
        yield from ((int(rows[low]), near[low:high]) for low, high in pairwise(bounds) if high > low)


class _Waiting:
    """Pairs by the block of their second row, turned around."""

    def __init__(self) -> None:
        self._pairs: dict[int, list[np.ndarray]] = {}
        self._held = 0

    def put(self, pairs: np.ndarray, most: int) -> bool:
        """Keep pairs, unless they would be too many."""
        if self._held + pairs.shape[1] > most:
            return False
        self._held += pairs.shape[1]
        turned = pairs[::-1, np.argsort(pairs[1], kind="stable")]
        blocks, firsts = np.unique(turned[0] // _BLOCK, return_index=True)
        for block, some in zip(blocks.tolist(), np.split(turned, firsts[1:], axis=1), strict=False):
            self._pairs.setdefault(block * _BLOCK, []).append(some)
        return True

    def taken(self, start: int) -> list[np.ndarray]:
        """Those of the block that begins there."""
        found = self._pairs.pop(start, [])
        self._held -= sum(some.shape[1] for some in found)
        return found
