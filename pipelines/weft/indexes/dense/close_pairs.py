"""Pairs of vectors that lie near each other, among very many: candidates for near-duplicates (CON-2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import faiss
import numpy as np
from numpy.typing import NDArray

from weft.domain.arrays import Ints

_EXACT_BELOW = 20_000  # vectors, of which all pairs are compared
_PER_LIST = 128  # vectors in a list of the index, about; below a million it is these, and not the lists, that take time
_PROBES = (
    8  # lists that are looked into for each vector; two that are as near as duplicates share one of these nearly always
)
_BATCH = 16_384  # vectors that are looked up at once
_ROUNDING = 1e-3  # of a cosine with a vector of 16 bits: 2⁻¹¹ at most, and that of the sum
_SEED = 7  # of the draw of the lists' centres

Floats = NDArray[np.float32]


class Rows(Protocol):
    """Rows of numbers that are asked for some at a time, as of an array: not all of them lie in memory twice."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any) -> Any:
        """Those rows, float32 (rows, dimension), for a slice or for numbers."""


def close_pairs(vectors: Rows, *, least: float, neighbours: int) -> tuple[Ints, Floats]:
    """Pairs of rows with a cosine of at least `least`, int64 (pairs, 2), the lower row first, and their cosines.

    Of each row so many `neighbours` are looked at: rows of a larger group are joined through others.
    """
    count = len(vectors)
    if count < 2:
        return np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    nearest_of = _index_of(vectors)
    keys: list[Ints] = []
    for start in range(0, count, _BATCH):
        some = vectors[start : start + _BATCH]
        near, rows = nearest_of(some, start, min(neighbours + 1, count))
        own = np.arange(start, start + len(some))[:, None]
        line, column = np.nonzero((near >= least - _ROUNDING) & (rows >= 0) & (rows != own))
        pair = np.stack([line + start, rows[line, column]], axis=1)
        pair.sort(axis=1)
        keys.append(np.unique(pair[:, 0] * count + pair[:, 1]))
    pairs = np.stack(np.divmod(np.unique(np.concatenate(keys)), count), axis=1)
    cosines = np.concatenate(
        [_cosines(vectors, pairs[at : at + _BATCH]) for at in range(0, max(1, len(pairs)), _BATCH)]
    )
    return pairs[cosines >= least], np.minimum(cosines[cosines >= least], 1.0)


def nearest_rows(some: Floats, others: Floats, most: int) -> Ints:
    """For each vector the rows of those among others with the greatest products, int64 (some, most)."""
    rows: Ints = faiss.knn(some, others, most, metric=faiss.METRIC_INNER_PRODUCT)[1]
    return rows


def _cosines(vectors: Rows, pairs: Ints) -> Floats:
    """Of the rows of each pair, whatever the index keeps of them."""
    return np.asarray(np.einsum("ij,ij->i", *(vectors[rows] for rows in pairs.T)), dtype=np.float32)


Nearest = Callable[[Floats, int, int], tuple[Floats, Ints]]
"""Cosines and rows of the k nearest of some rows, of which the first one's number is given."""


def _index_of(vectors: Rows) -> Nearest:
    count, dimension = len(vectors), vectors[:1].shape[1]
    if count <= _EXACT_BELOW:
        exact: Any = faiss.IndexFlatIP(dimension)
        exact.add(vectors[:])
        return lambda some, _, k: exact.search(some, k)
    lists = count // _PER_LIST
    centres: Any = faiss.IndexFlatIP(dimension)
    centres.add(vectors[np.sort(np.random.default_rng(_SEED).choice(count, lists, replace=False))])
    index: Any = faiss.IndexIVFScalarQuantizer(
        centres, dimension, lists, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT, False
    )
    index.is_trained = True  # the centres are drawn, and numbers of 16 bits need no training
    index.nprobe = _PROBES
    # Finding lists is most of the work among a million, and the same for what is kept in a list as for what is looked
    # up. It is exact, and no slower than a graph up to some thousand lists, which loses one pair in four among as many.
    nearest_lists = np.empty((count, _PROBES), np.int32)
    for start in range(0, count, _BATCH):
        some = np.ascontiguousarray(vectors[start : start + _BATCH], np.float32)
        lists_of = centres.search(some, _PROBES)[1]
        nearest_lists[start : start + len(some)] = lists_of
        own_list = np.ascontiguousarray(lists_of[:, 0])
        index.add_core(len(some), faiss.swig_ptr(some), None, faiss.swig_ptr(own_list))

    def nearest(some: Floats, start: int, k: int) -> tuple[Floats, Ints]:
        lists_of = nearest_lists[start : start + len(some)].astype(np.int64)
        near, rows = index.search_preassigned(some, k, lists_of, np.zeros(lists_of.shape, np.float32))
        return near, rows

    return nearest
