"""Where one topic of a conversation ends: rolling similarity between neighbouring turns (ING-8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

Similarity = Callable[[Sequence[str]], np.ndarray]
"""Texts to vectors, float32 (n, d) of any length, whose cosine says how alike they are; a row of zeros says nothing."""

BLOCK = 4096
"""Turns whose vectors are in memory at once."""


def distances(texts: Sequence[str], window: int, similarity: Similarity, *, block: int = BLOCK) -> np.ndarray:
    """Cosine distance between what is said before and from each turn on, float (n,); 0 where either says nothing.

    Args:
        window: How many turns on either side are taken together.
        block: How many turns are held in memory at once; makes no difference to the distances.
    """
    return np.concatenate([np.zeros(0), *_blocks(texts, window, similarity, block)])


def _blocks(texts: Sequence[str], window: int, similarity: Similarity, block: int) -> Iterator[np.ndarray]:
    """Distances a block at a time: the vectors of a very long session would not fit into memory."""
    for first in range(0, len(texts), block):
        around = max(0, first - window)
        last = min(len(texts), first + block)
        vectors = similarity(texts[around : last + window]).astype(np.float64)
        sums = np.concatenate([np.zeros((1, vectors.shape[1])), np.cumsum(vectors, axis=0)])
        at = np.arange(first, last) - around
        before = sums[at] - sums[np.maximum(at - window, 0)]
        after = sums[np.minimum(at + window, len(vectors))] - sums[at]
        lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        cosine = np.einsum("nd,nd->n", before, after) / np.where(lengths > 0.0, lengths, 1.0)
        yield np.where(lengths > 0.0, 1.0 - cosine, 0.0)
