"""RET-13: how much alone contents stand among all others, read out of their vectors when they are indexed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.domain.errors import CorruptionError
from weft.indexes.dense import isolation
from weft.indexes.dense.isolation import ISOLATION_FILE, isolation_of, read_isolation, write_isolation
from weft.indexes.dense.vectors import VECTORS_FILE, open_dense
from weft.indexes.manifest import DenseFacts
from weft.indexes.settings import IsolationSettings

DIMENSION = 6


def vectors(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float16)


def by_hand(stored: np.ndarray, others: range | np.ndarray, one: int, neighbours: int) -> float:
    exact = stored.astype(np.float64)
    cosines = [
        float(exact[one] @ exact[each] / np.linalg.norm(exact[one]) / np.linalg.norm(exact[each]))
        for each in others
        if each != one
    ]
    nearest = sorted(cosines, reverse=True)[:neighbours]
    return min(1.0, 1.0 - sum(nearest) / len(nearest))


@given(st.integers(2, 40), st.integers(1, 12), st.integers(0, 10_000))
def test_it_is_what_comparing_with_every_other_tells(count: int, neighbours: int, seed: int) -> None:
    """RET-13: 1 − the mean cosine to the nearest others, of which there may be fewer than asked for."""
    stored = vectors(count, seed)
    found = isolation_of(stored, IsolationSettings(neighbours=neighbours, among=1_000))
    told = [by_hand(stored, range(count), one, neighbours) for one in range(count)]
    assert found.tolist() == pytest.approx(told, abs=1e-6)


def test_of_many_an_even_sample_is_compared_with() -> None:
    """RET-13: what it takes grows with the contents, and not with their square."""
    stored, settings = vectors(300, 1), IsolationSettings(neighbours=3, among=100)
    sample = np.unique(np.linspace(0, 299, 100).astype(int))
    told = [by_hand(stored, sample, one, 3) for one in range(300)]
    assert isolation_of(stored, settings).tolist() == pytest.approx(told, abs=1e-6)


@given(st.integers(1, 70), st.integers(0, 10_000))
def test_it_has_the_same_bits_however_it_is_computed(block: int, seed: int) -> None:
    """ARC-6: neither how many rows are compared at once nor the order of a sum decides a bit."""
    stored, settings = vectors(70, seed), IsolationSettings(neighbours=4, among=1_000)
    whole, before = isolation_of(stored, settings), isolation._BLOCK
    try:
        isolation._BLOCK = block
        assert isolation_of(stored, settings).tobytes() == whole.tobytes()
    finally:
        isolation._BLOCK = before


def test_what_is_near_to_everything_stands_least_alone() -> None:
    """RET-13: the middle of all others is nearer to each of them than they are to one another."""
    around = np.vstack([np.ones(DIMENSION), np.ones(DIMENSION) + 2 * np.eye(DIMENSION)]).astype(np.float16)
    found = isolation_of(around, IsolationSettings(neighbours=3, among=1_000))
    assert found.argmin() == 0


def test_who_has_no_company_stands_alone() -> None:
    """RET-13: the only content of a generation, and one whose vector has no length."""
    settings = IsolationSettings(neighbours=10, among=1_000)
    assert isolation_of(np.empty((0, 3), dtype=np.float16), settings).tolist() == []
    assert isolation_of(vectors(1, 2), settings).tolist() == [1.0]
    assert isolation_of(np.array([[1, 0], [1, 0], [0, 0]], dtype=np.float16), settings)[2] == 1.0


def test_an_index_tells_what_was_written_beside_it(tmp_path: Path) -> None:
    """ARC-8: switched off nothing is written, and older generations have none."""
    stored, facts = vectors(20, 3), DenseFacts(dimension=DIMENSION, kind="exact")
    np.save(tmp_path / VECTORS_FILE, stored)
    write_isolation(tmp_path, stored, IsolationSettings(neighbours=0, among=1_000))
    assert read_isolation([tmp_path]) is None
    assert open_dense([tmp_path], facts).isolation is None
    settings = IsolationSettings(neighbours=2, among=1_000)
    write_isolation(tmp_path, stored, settings)
    told = open_dense([tmp_path], facts).isolation
    assert told is not None
    assert told.tolist() == isolation_of(stored, settings).tolist()
    np.save(tmp_path / ISOLATION_FILE, told[:-1])
    with pytest.raises(CorruptionError, match=r"isolation of 20 vectors, found \(19,\)"):
        open_dense([tmp_path], facts)
