"""Vectors of some rows of all shards: each task reads those of its own shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.domain.arrays import Ints
from weft.indexes.shards import MapTasks, Numbering, await_all

VECTORS_FILE = "vectors.npy"


@dataclass(frozen=True, slots=True)
class SampleTask:
    """Some vectors of one shard."""

    folder: Path  # of the encoder's files
    number: int  # of the shard
    rows: Ints  # of the shard's own
    out: Path | None  # the file that they are written to; None where they are asked for

    @property
    def writes(self) -> list[Path]:
        """The vectors."""
        return [] if self.out is None else [self.out]


def mapped_vectors(folder: Path) -> Any:
    """The stored vectors of a shard, float16 (contents, dimension)."""
    # Mapped, but as a plain array: numpy's own class for mapped files costs more with each slice.
    return np.asarray(np.load(folder / VECTORS_FILE, mmap_mode="r", allow_pickle=False))


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1, float32; one of no length stays as it is."""
    single = vectors.astype(np.float32)
    lengths = np.linalg.norm(single, axis=1, keepdims=True)
    scaled: np.ndarray = np.divide(single, lengths, out=single, where=lengths > 0.0)
    return scaled


def sample_vectors(folders: Sequence[Path], counts: Sequence[int], rows: Ints, run: MapTasks) -> np.ndarray:
    """The vectors of a few rows among all, ascending, of shards with so many contents: float16 (n, dimension)."""
    return np.concatenate(list(run(_read, _tasks(folders, counts, rows))))


def write_samples(
    folders: Sequence[Path], counts: Sequence[int], rows: Ints, out: Path, run: MapTasks
) -> tuple[Path, ...]:
    """The same, written to a file for each shard that has any, below a folder; for `read_samples`."""
    tasks = _tasks(folders, counts, rows, out)
    await_all(run(_write, tasks))
    return tuple(task.out for task in tasks if task.out is not None)


def read_samples(files: Sequence[Path]) -> np.ndarray:
    """What `write_samples` wrote."""
    return np.concatenate([np.load(file, allow_pickle=False) for file in files] or [np.empty((0, 0), np.float16)])


def _tasks(folders: Sequence[Path], counts: Sequence[int], rows: Ints, out: Path | None = None) -> list[SampleTask]:
    return [
        SampleTask(folders[shard], shard, own, None if out is None else out / f"{shard:04d}.npy")
        for shard, _, own in Numbering(counts).apart(rows)
    ]


def _read(task: SampleTask) -> np.ndarray:
    vectors: np.ndarray = mapped_vectors(task.folder)[task.rows]
    return vectors


def _write(task: SampleTask) -> None:
    if task.out is not None:
        task.out.parent.mkdir(parents=True, exist_ok=True)
        np.save(task.out, _read(task))
