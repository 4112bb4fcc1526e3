"""CON-2: pairs of vectors near each other, among few and among many."""

from __future__ import annotations

import faiss
import numpy as np
import pytest

from weft.indexes.dense.close_pairs import close_pairs
from weft.indexes.dense.vectors import DenseIndex
from weft.indexes.manifest import DenseFacts


def twins(count: int, groups: int, *, seed: int = 0) -> tuple[np.ndarray, set[tuple[int, int]]]:
    """Unit rows, of which the last are near the first, one by one; and those pairs."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count, 32))
    vectors[count - groups :] = vectors[:groups] + 0.15 * rng.normal(size=(groups, 32))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = {(at, count - groups + at) for at in range(groups)}
    near = {pair for pair in pairs if float(vectors[pair[0]] @ vectors[pair[1]]) >= 0.95}
    return vectors.astype(np.float32), near


def test_among_few_all_pairs_are_found() -> None:
    """CON-2: exactly those of comparing each with each, each once, the lower row first."""
    vectors, _ = twins(900, 300)
    pairs, cosines = close_pairs(vectors, least=0.95, neighbours=8)
    whole = np.triu(vectors @ vectors.T, 1)
    assert [tuple(pair) for pair in pairs.tolist()] == list(zip(*np.nonzero(whole >= 0.95), strict=True))
    assert np.allclose(cosines, whole[pairs[:, 0], pairs[:, 1]], atol=1e-6)


def test_among_many_nearly_all_are_found_and_always_the_same() -> None:
    """CON-2: lists are drawn and looked up alike whatever the number of threads; of near pairs few are missed."""
    vectors, near = twins(24_000, 2_000)
    threads = faiss.omp_get_max_threads()
    found = []
    for count in (1, 2):
        faiss.omp_set_num_threads(count)
        found.append(close_pairs(vectors, least=0.95, neighbours=8)[0])
    faiss.omp_set_num_threads(threads)
    assert np.array_equal(*found)
    assert len(near & {tuple(pair) for pair in found[0].tolist()}) >= 0.99 * len(near)


def test_rows_that_are_asked_for_some_at_a_time_have_the_same_pairs() -> None:
    """CON-3: an index of a generation gives its vectors as an array of all of them does, to the bit."""
    vectors, _ = twins(24_000, 200)
    stored = DenseIndex(vectors.astype(np.float16), DenseFacts(dimension=32, kind="exact"))
    lazily = close_pairs(stored, least=0.9, neighbours=8)
    at_once = close_pairs(stored.vectors(np.arange(len(stored))), least=0.9, neighbours=8)
    assert len(lazily[0]) > 100
    assert all(np.array_equal(one, other) for one, other in zip(lazily, at_once, strict=True))


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_is_near_nothing(count: int) -> None:
    """CON-2: fewer than two vectors make no pair, and a zero vector is near nothing."""
    assert not len(close_pairs(np.ones((count, 4), np.float32), least=0.5, neighbours=3)[0])
    assert not len(close_pairs(np.zeros((5, 4), np.float32), least=0.5, neighbours=3)[0])
