"""FBK-13: new names count as three known ones at most, of each content under each question and day."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.domain.arrays import Floats
from weft.learning.observe.allowances import are_new, capped_weights, newcomer_shares

statements = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3), st.integers(0, 3)), max_size=60)
"""Who, on which day, about what."""


def shares(said: list[tuple[int, int, int]], most: int = 3) -> Floats:
    columns = np.array(said, dtype=np.int64).reshape(-1, 3)
    return newcomer_shares(*columns.T, most=most)


def test_a_thousand_new_names_count_as_three() -> None:
    """FBK-13."""
    assert list(shares([(name, 5, 0) for name in range(1000)])) == [3 / 1000] * 1000


def test_three_new_people_count_as_three() -> None:
    """LRN-18: whoever comes for the first time is heard, as long as there is no crowd of them."""
    assert list(shares([(name, 5, 0) for name in range(3)])) == [1.0, 1.0, 1.0]


def test_those_who_came_before_count_in_full_beside_a_crowd() -> None:
    """FBK-13: made-up names take nothing from known ones, and later days lend a first one its weight."""
    known = [(0, 4, 1), (0, 5, 0)]
    weights = shares([*known, *((name, 5, 0) for name in range(1, 7))])
    assert list(weights) == [1.0, 1.0, *[0.5] * 6]


@given(said=statements, most=st.integers(1, 4))
def test_new_names_of_a_day_never_count_as_more(said: list[tuple[int, int, int]], most: int) -> None:
    """FBK-13: however statements are spread, and whatever their order."""
    weights = shares(said, most)
    days = {who: {day for one, day, _ in said if one == who} for who, _, _ in said}
    crowds: dict[tuple[int, int], dict[int, float]] = {}
    for (who, day, cell), weight in zip(said, weights, strict=True):
        if len(days[who]) > 1:
            assert weight == 1.0
        else:
            crowds.setdefault((cell, day), {})[who] = float(weight)
    for crowd in crowds.values():
        assert sum(crowd.values()) <= most + 1e-9
    backwards = shares(said[::-1], most)
    assert list(backwards[::-1]) == list(weights)


@given(said=statements, most=st.integers(1, 4))
def test_what_new_names_weigh_is_bounded_by_day_and_line(said: list[tuple[int, int, int]], most: int) -> None:
    """FBK-13: whatever it is taken to speak of; known ones keep theirs, and nobody gains."""
    principal, day, line = np.array(said, dtype=np.int64).reshape(-1, 3).T
    weight = 1.0 / (1.0 + np.arange(len(said)) % 3)
    new = are_new(principal, day)
    counted = capped_weights(weight, np.where(new, float(most), np.inf), day, line)
    assert list(counted[~new]) == list(weight[~new])
    for one, other in {(int(a), int(b)) for a, b in zip(line, day, strict=True)}:
        crowd = new & (line == one) & (day == other)
        assert counted[crowd].sum() == pytest.approx(min(float(most), weight[crowd].sum()))
