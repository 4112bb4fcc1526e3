"""Sets of numbers that share enough of them, found by the pairs of small numbers in them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_AT_ONCE = 2_000_000  # pairs that are compared together: some hundred megabytes


def sharing(left: Ints, right: Ints, shared: int) -> Ints:
    """Pairs of rows of which at least `shared` numbers are the same, each once, int64 (pairs, 2).

    Of sets with a and b members that share s, both have k of the shared ones among their first a − s + k and b − s + k
    in any order of all numbers. With k = 2 and the rarest numbers first, few sets meet by chance.

    Args:
        left, right: Ascending numbers >= 0, each once in a row, int64 (rows, size); the rarest is the smallest. The
            same array twice: pairs within it, the smaller row first.
        shared: >= 1, and at most the size of either.

    Examples:
        >>> sharing(np.array([[1, 2, 3], [4, 5, 6]]), np.array([[2, 3, 9], [4, 8, 9]]), 2).tolist()
        [[0, 0]]
    """
    together = min(2, shared)
    most = int(max(left.max(initial=0), right.max(initial=0))) + 1
    ours, our_rows = _keys(left, left.shape[1] - shared + together, together, most)
    theirs, their_rows = (
        (ours, our_rows) if left is right else _keys(right, right.shape[1] - shared + together, together, most)
    )
    # Within one array, each meets those that stand behind it.
    begin = np.arange(1, len(ours) + 1) if left is right else np.searchsorted(theirs, ours, side="left")
    end = np.searchsorted(theirs, ours, side="right")
    parts = [np.zeros(0, dtype=np.int64)]
    for some in _portions(end - begin):
        counts = end[some] - begin[some]
        starts = np.cumsum(counts) - counts
        one = np.repeat(our_rows[some], counts)
        other = their_rows[np.arange(int(counts.sum())) - np.repeat(starts - begin[some], counts)]
        if left is right:
            one, other = np.minimum(one, other), np.maximum(one, other)
        both = distinct(one * len(right) + other)
        enough = _overlaps(left[both // len(right)], right[both % len(right)]) >= shared
        parts.append(both[enough])
    pairs = distinct(np.concatenate(parts))
    return np.stack([pairs // max(1, len(right)), pairs % max(1, len(right))], axis=1)


def distinct(values: Ints) -> Ints:
    """The values of an array, each once, ascending: by sorting, where `np.unique` hashes at a hundredth of the speed.

    Examples:
        >>> distinct(np.array([3, 1, 3])).tolist()
        [1, 3]
    """
    ordered = np.sort(values)
    different: Ints = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return different


def _keys(rows: Ints, prefix: int, together: int, most: int) -> tuple[Ints, Ints]:
    """Every choice of `together` numbers among the first of each row, as one number, ascending, and its row."""
    columns = [rows[:, list(chosen)] for chosen in combinations(range(min(prefix, rows.shape[1])), together)]
    keys = [each[:, 0] * most + each[:, 1] if together > 1 else each[:, 0] for each in columns]
    every = np.concatenate(keys)
    order = np.argsort(every)  # those of one key in any order: pairs are sorted at the end
    return every[order], order % len(rows)


def _portions(counts: Ints) -> Iterator[slice]:
    """Runs of keys whose pairs are compared together; one key's at least."""
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _AT_ONCE, side="right")))
        yield slice(begin, end)
        begin = end


def _overlaps(left: Ints, right: Ints) -> Ints:
    """How many numbers two rows share, row by row."""
    shared = np.zeros(len(left), dtype=np.int64)
    for column in left.T:
        shared += (right == column[:, None]).any(axis=1)
    return shared
