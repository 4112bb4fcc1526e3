"""Which event ids a partition has applied: an index in memory over entries that are durable (FBK-5).

The entries lie in the partition's store in the order of their offsets, many to a row, so that writing them touches the
end of one table and nothing else. Finding one by its fingerprint is the index's part: eight bytes of the fingerprint
and the offset of its entry, in sorted runs that are merged as they grow (O'Neil et al., The log-structured merge-tree,
1996). Two ids may share their eight bytes: the index names entries to look at, and the entry decides.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

_BYTES = 16  # of a fingerprint, of which the first eight are the key
_KEY = np.dtype([("key", "<u8"), ("rest", "<u8")])
_ENTRY = np.dtype([("fingerprint", _KEY), ("offset", "<i8"), ("at_ms", "<i8")])
_ROW = 256  # entries to a row: few enough that reading one of them is cheap, enough that rows are
_AT_ONCE = 100  # rows read together when an index is built


class SeenIndex:
    """Offsets by fingerprint; 16 bytes per id."""

    def __init__(self) -> None:
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self._runs)

    def add(self, fingerprints: Sequence[bytes], offsets: Sequence[int]) -> None:
        """Note fingerprints of sixteen bytes and the offsets of their entries."""
        if fingerprints:
            self.add_keys(_keys(fingerprints)["key"], np.asarray(offsets, dtype=np.int64))

    def add_keys(self, keys: np.ndarray, offsets: np.ndarray) -> None:
        """Note the first eight bytes of fingerprints, uint64 (n,), and the offsets of their entries, int64 (n,)."""
        run = (keys, offsets)
        # A run is merged into the one before while that is not twice as long: so there are few runs, and adding
        # copies each id a logarithmic number of times.
        while self._runs and len(self._runs[-1][0]) <= 2 * len(run[0]):
            earlier, places = self._runs.pop()
            run = (np.concatenate([earlier, run[0]]), np.concatenate([places, run[1]]))
        order = np.argsort(run[0], kind="stable")
        self._runs.append((run[0][order], run[1][order]))

    def offsets(self, fingerprints: Sequence[bytes]) -> np.ndarray:
        """Offsets of every entry that may hold one of some fingerprints, int64, ascending."""
        if not fingerprints or not self._runs:
            return np.empty(0, dtype=np.int64)
        wanted = np.sort(_keys(fingerprints)["key"])
        matches = [_matching(keys, places, wanted) for keys, places in self._runs]
        return np.unique(np.concatenate(matches))

    def forget_before(self, offset: int) -> None:
        """Give up runs that lie before an offset as a whole: their entries are gone."""
        self._runs = [run for run in self._runs if int(run[1].max()) >= offset]


def write_seen(connection: sqlite3.Connection, seen: Mapping[bytes, tuple[int, int]]) -> None:
    """Add entries to the table `seen`, whose offsets lie behind all others: offset and milliseconds by fingerprint."""
    if not seen:
        return
    entries = np.empty(len(seen), dtype=_ENTRY)
    entries["fingerprint"] = _keys(list(seen))
    moments = np.fromiter(chain.from_iterable(seen.values()), np.int64, 2 * len(seen)).reshape(-1, 2)
    entries["offset"], entries["at_ms"] = moments[:, 0], moments[:, 1]
    entries = entries[np.argsort(entries["offset"], kind="stable")]
    rows = [entries[begin : begin + _ROW] for begin in range(0, len(entries), _ROW)]
    connection.executemany(
        "insert into seen (offset, at_ms, entries) values (?, ?, ?)",
        [(int(row["offset"][-1]), int(row["at_ms"].max()), row.tobytes()) for row in rows],
    )


def read_seen(connection: sqlite3.Connection, offsets: np.ndarray) -> Iterator[tuple[bytes, int, int]]:
    """Fingerprint, offset and milliseconds of the entries at some offsets, int64 ascending, those that there are."""
    done = 0
    while done < len(offsets):
        row = "select offset, entries from seen where offset >= ? order by offset limit 1"
        stored_row = connection.execute(row, (int(offsets[done]),)).fetchone()
        if stored_row is None:
            return
        last, entries = stored_row[0], np.frombuffer(stored_row[1], dtype=_ENTRY)
        behind = int(np.searchsorted(offsets, last, "right"))
        here = np.isin(entries["offset"], offsets[done:behind], assume_unique=True)
        for entry in entries[here]:
            yield entry["fingerprint"].tobytes(), int(entry["offset"]), int(entry["at_ms"])
        done = behind


def index_of_seen(connection: sqlite3.Connection) -> SeenIndex:
    """The index over all entries of the table `seen`."""
    index = SeenIndex()
    rows = connection.execute("select entries from seen order by offset")
    while some := rows.fetchmany(_AT_ONCE):
        entries = np.frombuffer(b"".join(row for (row,) in some), dtype=_ENTRY)
        index.add_keys(entries["fingerprint"]["key"], entries["offset"])
    return index


def _keys(fingerprints: Sequence[bytes]) -> np.ndarray:
    joined = b"".join(fingerprints)
    if len(joined) != _BYTES * len(fingerprints):
        raise ValueError(f"expected fingerprints of {_BYTES} bytes")
    return np.frombuffer(joined, dtype=_KEY)


def _matching(keys: np.ndarray, places: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    first, last = np.searchsorted(keys, wanted, "left"), np.searchsorted(keys, wanted, "right")
    hits = np.flatnonzero(last > first)
    spans = [places[first[hit] : last[hit]] for hit in hits]
    return np.concatenate(spans) if spans else np.empty(0, dtype=np.int64)
