"""Which event ids a partition has applied: an index in memory over rows that are durable (FBK-5).

The rows lie in the partition's store in the order of their offsets, so writing them touches the end of one table and
nothing else. Finding one by its fingerprint is this index's part: eight bytes of the fingerprint and the offset of
its row, in sorted runs that are merged as they grow (O'Neil et al., The log-structured merge-tree, 1996). Two ids
may share their eight bytes: the index names rows to look at, and the row decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_BYTES = 16  # of a fingerprint, of which the first eight are the key
_KEY = np.dtype([("key", "<u8"), ("rest", "<u8")])


class SeenIndex:
    """Offsets by fingerprint; 16 bytes per id.

    Examples:
        >>> index = SeenIndex()
        >>> index.add([b"a" * 16, b"b" * 16], [7, 9])
        >>> index.offsets([b"b" * 16, b"c" * 16]).tolist()
        [9]
    """

    def __init__(self) -> None:
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self._runs)

    def add(self, fingerprints: Sequence[bytes], offsets: Sequence[int]) -> None:
        """Note fingerprints of sixteen bytes and the offsets of their rows."""
        if not fingerprints:
            return
        run = (_keys(fingerprints), np.asarray(offsets, dtype=np.int64))
        # A run is merged into the one before while that is not twice as long: so there are few runs, and adding
        # copies each id a logarithmic number of times.
        while self._runs and len(self._runs[-1][0]) <= 2 * len(run[0]):
            keys, places = self._runs.pop()
            run = (np.concatenate([keys, run[0]]), np.concatenate([places, run[1]]))
        order = np.argsort(run[0], kind="stable")
        self._runs.append((run[0][order], run[1][order]))

    def offsets(self, fingerprints: Sequence[bytes]) -> np.ndarray:
        """Offsets of every row that may hold one of some fingerprints, int64, ascending."""
        if not fingerprints or not self._runs:
            return np.empty(0, dtype=np.int64)
        wanted = np.sort(_keys(fingerprints))
        found = [_matching(keys, places, wanted) for keys, places in self._runs]
        return np.unique(np.concatenate(found))

    def forget_before(self, offset: int) -> None:
        """Give up runs that lie before an offset as a whole: their rows are gone."""
        self._runs = [run for run in self._runs if int(run[1].max()) >= offset]


def _keys(fingerprints: Sequence[bytes]) -> np.ndarray:
    joined = b"".join(fingerprints)
    if len(joined) != _BYTES * len(fingerprints):
        raise ValueError(f"expected fingerprints of {_BYTES} bytes")
    return np.frombuffer(joined, dtype=_KEY)["key"]


def _matching(keys: np.ndarray, places: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    first, last = np.searchsorted(keys, wanted, "left"), np.searchsorted(keys, wanted, "right")
    hits = np.flatnonzero(last > first)
    spans = [places[first[hit] : last[hit]] for hit in hits]
    return np.concatenate(spans) if spans else np.empty(0, dtype=np.int64)
