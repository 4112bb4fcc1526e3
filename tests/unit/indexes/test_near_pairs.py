"""Contents that say nearly the same."""

from __future__ import annotations

import numpy as np

from weft.indexes.dense.vectors import DenseIndex
from weft.indexes.manifest import DenseFacts


def test_the_nearest_others_of_each_row_are_those_of_comparing_everything() -> None:
    """ING-14: the k nearest of each row above a cosine, itself left out, best first, ties by row."""
    draw = np.random.default_rng(7)
    # Copies of few directions, so that thousands of pairs are near.
    vectors = draw.normal(size=(40, 12))[draw.integers(0, 40, 700)] + 0.05 * draw.normal(size=(700, 12))
    vectors[5] = vectors[6] = vectors[7]
    stored = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    unit = stored.astype(np.float64) / np.linalg.norm(stored.astype(np.float64), axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -1.0)
    pairs = list(DenseIndex(stored, DenseFacts(dimension=12, kind="exact")).near_pairs(4, 0.9))
    expected = [
        (row, other) for row in range(700) for other in np.argsort(-cosines[row], kind="stable")[:4].tolist()
        if cosines[row, other] >= 0.9
    ]  # fmt: skip
    assert [(row, other) for row, other, _ in pairs] == expected
    assert np.allclose([cosine for *_, cosine in pairs], [cosines[pair] for pair in expected], atol=1e-6)
    assert {(5, 6), (6, 5), (7, 5)} <= set(expected)
