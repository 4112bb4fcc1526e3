"""How much alone contents stand among all others: what is near to everything answers nothing in particular.

In many dimensions some vectors are near to most others (hubs; Radovanović et al., JMLR 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from weft.domain.arrays import Ints
from weft.indexes.dense.close_pairs import nearest_rows
from weft.indexes.rows import evenly_spaced
from weft.indexes.settings import IsolationSettings

ISOLATION_FILE = "isolation.npy"

_BLOCK = 512  # rows compared at once: bounds memory, changes nothing else
_SPARE = 8  # more than asked for that single precision chooses, so that its rounding decides nothing


class Others(NamedTuple):
    """What each vector is compared with: some of all vectors, evenly spaced."""

    rows: Ints  # their rows among all, ascending
    vectors: np.ndarray


def compared_rows(count: int, settings: IsolationSettings) -> Ints:
    """Rows of so many vectors that each is compared with: a large corpus takes no longer for each."""
    return evenly_spaced(count, settings.among)


def write_isolation(
    folder: Path, stored: Any, settings: IsolationSettings, others: Others | None = None, first: int = 0
) -> None:
    """Write the isolation of one shard's contents beside their vectors, unless it is switched off."""
    if settings.neighbours:
        np.save(folder / ISOLATION_FILE, isolation_of(stored, settings, others, first))


def read_isolation(folders: Sequence[Path]) -> np.ndarray | None:
    """The isolation of contents by row, float32 (contents,); None where none was written."""
    paths = [folder / ISOLATION_FILE for folder in folders]
    return np.concatenate([np.load(path, allow_pickle=False) for path in paths]) if paths[0].exists() else None


def isolation_of(stored: Any, settings: IsolationSettings, others: Others | None = None, first: int = 0) -> np.ndarray:
    """1 − the mean cosine of each vector to its `neighbours` nearest others, at least 0: float32 (n,) in [0, 1].

    Args:
        others: Those of `compared_rows` among the vectors of all shards; of one shard its own where none are given.
        first: The row among all of the first vector.
    """
    if others is None:
        rows = compared_rows(len(stored), settings)
        others = Others(rows, stored[rows])
    alone = np.ones(len(stored), dtype=np.float32)
    count = min(settings.neighbours, len(others.rows) - 1)
    if count < 1:
        return alone
    compared = _unit(others.vectors)
    roughly = compared.astype(np.float32)
    for start in range(0, len(stored), _BLOCK):
        block = _unit(stored[start : start + _BLOCK])
        places = first + np.arange(start, start + len(block))
        most = min(count + 1 + _SPARE, len(compared))
        near = nearest_rows(block.astype(np.float32), roughly, most)
        cosines = np.einsum("id,ind->in", block, compared[near])
        cosines[others.rows[near] == places[:, None]] = -np.inf  # nothing is its own neighbour
        nearest = np.partition(cosines, most - count, axis=1)[:, most - count :]
        alone[start : start + len(block)] = np.clip(1.0 - np.sort(nearest, axis=1).mean(axis=1), 0.0, 1.0)
    return alone


def _unit(vectors: np.ndarray) -> np.ndarray:
    """In double precision; a vector of no length stays as it is."""
    numbers = np.array(vectors, dtype=np.float64)
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    unit: np.ndarray = np.divide(numbers, lengths, out=numbers, where=lengths > 0.0)
    return unit
