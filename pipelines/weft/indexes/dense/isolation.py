"""How much alone contents stand among all others: what is near to everything answers nothing in particular.

In many dimensions some vectors are near to most others (hubs; Radovanović et al., JMLR 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.indexes.dense.close_pairs import nearest_rows
from weft.indexes.rows import evenly_spaced
from weft.indexes.settings import IsolationSettings

ISOLATION_FILE = "isolation.npy"

_BLOCK = 512  # rows compared at once: bounds memory, changes nothing else
_SPARE = 8  # more than asked for that single precision chooses, so that its rounding decides nothing


def write_isolation(folder: Path, stored: Any, rows: range, settings: IsolationSettings) -> None:
    """Write the isolation of one shard's contents, `rows` of all vectors, beside theirs, unless it is switched off."""
    if settings.neighbours:
        np.save(folder / ISOLATION_FILE, isolation_of(stored, settings, rows))


def read_isolation(folders: Sequence[Path]) -> np.ndarray | None:
    """The isolation of contents by row, float32 (contents,); None where none was written."""
    paths = [folder / ISOLATION_FILE for folder in folders]
    return np.concatenate([np.load(path, allow_pickle=False) for path in paths]) if paths[0].exists() else None


def isolation_of(stored: Any, settings: IsolationSettings, rows: range | None = None) -> np.ndarray:
    """1 − the mean cosine of each vector to its `neighbours` nearest others, at least 0: float32 (n,) in [0, 1].

    The others are at most `among` rows, evenly spaced over all, so that a large corpus takes no longer for each. Of
    some neighbouring `rows` alone, or of all.
    """
    own = range(len(stored)) if rows is None else rows
    others = evenly_spaced(len(stored), settings.among)
    alone = np.ones(len(own), dtype=np.float32)
    count = min(settings.neighbours, len(others) - 1)
    if count < 1:
        return alone
    compared = _unit(stored[others])
    roughly = compared.astype(np.float32)
    for start in range(own.start, own.stop, _BLOCK):
        places = np.arange(start, min(own.stop, start + _BLOCK))
        block = _unit(stored[start : start + len(places)])
        most = min(count + 1 + _SPARE, len(others))
        near = nearest_rows(block.astype(np.float32), roughly, most)
        cosines = np.einsum("id,ind->in", block, compared[near])
        cosines[others[near] == places[:, None]] = -np.inf  # nothing is its own neighbour
        nearest = np.partition(cosines, most - count, axis=1)[:, most - count :]
        alone[start - own.start : start - own.start + len(places)] = np.clip(
            1.0 - np.sort(nearest, axis=1).mean(axis=1), 0.0, 1.0
        )
    return alone


def _unit(vectors: np.ndarray) -> np.ndarray:
    """In double precision; a vector of no length stays as it is."""
    numbers = np.array(vectors, dtype=np.float64)
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    unit: np.ndarray = np.divide(numbers, lengths, out=numbers, where=lengths > 0.0)
    return unit
