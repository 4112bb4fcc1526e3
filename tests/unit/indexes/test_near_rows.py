"""Rows that are near, found with half the products."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.indexes.dense.near_rows import near_rows


@pytest.mark.parametrize("kept", [0, 3_000, 1_000_000])
def test_every_near_row_is_found_from_both_sides(kept: int) -> None:
    """ING-14: whatever may be kept, the rows are those of comparing everything with everything."""
    draw = np.random.default_rng(7)
    # Copies of few directions, so that thousands of pairs are near, across all blocks.
    vectors = draw.normal(size=(40, 12))[draw.integers(0, 40, 1_300)] + 0.05 * draw.normal(size=(1_300, 12))
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    least = np.float32(0.9)
    found = {row: set(near.tolist()) for row, near in near_rows(unit, least, kept)}
    near = unit.astype(np.float64) @ unit.T.astype(np.float64)
    expected = {row: set(np.flatnonzero(near[row] >= 0.9).tolist()) - {row} for row in range(len(unit))}
    assert list(found) == sorted(found)
    assert found == {row: others for row, others in expected.items() if others}
