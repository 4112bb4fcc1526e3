"""What encoders compute with: threads of products, batches, vectors cut short."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from weft.domain.errors import ConfigurationError
from weft.embedding.settings import LENGTH_STEP, EmbeddingSettings


@contextmanager
def computing_with(threads: int) -> Iterator[None]:
    """Hold products that this thread asks for to so many threads; 0 leaves the choice to PyTorch.

    Two threads share a small product, such as a query's, in a sixth less time and two thirds more of the processor.
    """
    import torch  # noqa: PLC0415  who only cuts vectors does without

    before = torch.get_num_threads()
    if threads in (0, before):
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def packs(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Rows to encode together: sorted by length, longest first, at most `budget` tokens or else one text."""
    pack: list[int] = []
    tokens = 0
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if pack and tokens + lengths[row] > budget:
            yield pack
            pack, tokens = [], 0
        pack.append(row)
        tokens += lengths[row]
    if pack:
        yield pack


def padded_batches(lengths: Sequence[int], settings: EmbeddingSettings) -> Iterator[tuple[list[int], int]]:
    """Rows to encode together and their padded width, longest first so that memory peaks at once."""
    by_width: defaultdict[int, list[int]] = defaultdict(list)
    for row, length in enumerate(lengths):
        steps = max(1, -(-length // LENGTH_STEP))
        by_width[min(settings.max_tokens, steps * LENGTH_STEP)].append(row)
    for width in sorted(by_width, reverse=True):
        size = max(1, settings.batch_tokens // width)
        rows = by_width[width]
        for start in range(0, len(rows), size):
            yield rows[start : start + size], width


def vector_dimension(settings: EmbeddingSettings, width: int) -> int:
    """How many of a model's `width` numbers are kept."""
    if settings.dimension > width:
        raise ConfigurationError(
            f"embedding.dimension: {settings.model} gives {width} numbers, found {settings.dimension}: "
            f"use {width} or less, or 0 for all"
        )
    return settings.dimension or width


def shortened(vectors: np.ndarray, dimension: int) -> np.ndarray:
    """The first numbers of each vector, of length 1 again: float32 (n, dimension); zeros stay zeros."""
    head = np.asarray(vectors[:, :dimension], dtype=np.float32)
    # Each row by itself and in double precision: a vector's bits must not depend on how many rows there are.
    lengths = np.sqrt((head.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return (head / np.where(lengths > 0.0, lengths, 1.0)).astype(np.float32)
