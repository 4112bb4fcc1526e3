"""The shards of a generation: ranges of content hash, each a folder that is whole in itself (SCL-6, decision 0002).

Documents, their texts and what was rejected lie in the shard that the hash of their URI falls into.

A generation of one shard has that shard's files in its own folder; one of several has them in `shards/0000` and so on.
Rows are numbered over all shards: the first row of a shard, and the row in it. So rows, their order and ties are the
same for any number of shards.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.domain.arrays import Ints

SHARDS_FOLDER = "shards"

MapTasks = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Runs a function on every task, like `map`: in this process as results are asked for, or at once on a cluster."""


def await_all(results: Iterable[object]) -> None:
    """Wait until all tasks are done; what one raised is raised here."""
    for _ in results:
        pass


_PREFIX_BITS = 32  # of a hash that say which range it lies in
_LEADING_BITS = 3


def shard_count(contents: int, most: int) -> int:
    """How many shards hold so many contents, `most` each, about.

    Above eight it is rounded up to its three leading bits, so that a corpus is not cut anew whenever it grows a little.

    Examples:
        >>> [shard_count(contents, 10) for contents in (0, 10, 11, 45, 85, 1001)]
        [1, 1, 2, 5, 10, 112]
    """
    needed = max(1, -(-contents // most))
    step = 1 << max(0, needed.bit_length() - _LEADING_BITS)
    return -(-needed // step) * step


def bounds(count: int) -> list[str]:
    """What the hashes of each shard but the first begin with, or are above.

    Examples:
        >>> bounds(1), bounds(4)
        ([], ['40000000', '80000000', 'c0000000'])
    """
    return [f"{-((-shard << _PREFIX_BITS) // count):08x}" for shard in range(1, count)]


def shards_of(generation: Path) -> list[Path]:
    """The folders of a generation's shards, in the order of their hashes."""
    folder = generation / SHARDS_FOLDER
    return sorted(folder.iterdir()) if folder.is_dir() else [generation]


def shard_folders(generation: Path, count: int) -> list[Path]:
    """The folders that so many shards have in that of a generation."""
    return [generation / SHARDS_FOLDER / f"{shard:04d}" for shard in range(count)] if count > 1 else [generation]


def make_shards(generation: Path, count: int) -> list[Path]:
    """The folders of so many shards, made anew."""
    folders = shard_folders(generation, count)
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def overlapping(shards: Sequence[Path], shard: int, count: int) -> list[Path]:
    """Those of another generation's shards that may hold contents of the range `shard` of `count`."""
    others = len(shards)
    return list(shards[shard * others // count : -(-(shard + 1) * others // count)])


def take_over(source: Path, target: Path, names: Iterable[str]) -> None:
    """Have files, or those of folders, of an unchanged shard in another one, too: linked, not copied, where it goes.

    Both stay whole whichever of them is removed first; neither is ever written to again.
    """
    for name in names:
        below = source / name
        for path in sorted(below.rglob("*")) if below.is_dir() else [below]:
            if path.is_file():
                link = target / path.relative_to(source)
                link.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    try:
                        os.link(path, link)
                    except FileExistsError:
                        raise
                    except OSError:
                        shutil.copyfile(path, link)


class Stacked:
    """Arrays of several shards, read as one: by slices or by numbers of rows; nothing is copied but what is read."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.arrays = arrays
        self.shape: tuple[int, ...] = (sum(map(len, arrays)), *arrays[0].shape[1:])
        self.dtype = arrays[0].dtype
        self._numbers = Numbering([len(array) for array in arrays])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Ints) -> np.ndarray:
        """Some rows, copied."""
        wanted = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else np.asarray(rows)
        read = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        for shard, places, own in self._numbers.apart(wanted):
            read[places] = self.arrays[shard][own]
        return read


def stacked(arrays: Sequence[np.ndarray]) -> Any:
    """Arrays of shards as one: the only one as it is."""
    return arrays[0] if len(arrays) == 1 else Stacked(arrays)


class Numbering:
    """Which shard a row is in, and which row of it."""

    def __init__(self, rows: Sequence[int]) -> None:
        """Take the number of rows of each shard."""
        self.ends = np.cumsum(rows, dtype=np.int64)
        self.firsts = self.ends - np.asarray(rows, dtype=np.int64)

    def __len__(self) -> int:
        return int(self.ends[-1])

    def apart(self, rows: Ints) -> Iterator[tuple[int, Ints, Ints]]:
        """By shard that has any of some rows: their places among these, and which rows of the shard they are."""
        shards = np.searchsorted(self.ends, rows, side="right")
        for shard in np.unique(shards).tolist():
            places = np.flatnonzero(shards == shard)
            yield shard, places, rows[places] - self.firsts[shard]
