"""ARC-7, ARC-9: sums of many lines at once are those of `math.fsum`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.quality import groups

AMOUNTS = st.one_of(
    st.floats(-1.0, 1.0), st.sampled_from([0.0, float("nan"), 1e16, -1e16, 0.1, 2.0**-53, -(2.0**-54), 1e-305])
)
LINES = st.integers(1, 6).flatmap(lambda parts: st.lists(st.lists(AMOUNTS, min_size=parts, max_size=parts), max_size=8))


@pytest.mark.parametrize("wide", [np.longdouble, np.float64])
def test_sums_are_rounded_once(wide: type[np.floating]) -> None:
    """ARC-7: also on machines whose widest number is an ordinary one, and whatever cancels."""

    @given(LINES)
    def holds(lines: list[list[float]]) -> None:
        table = np.array(lines, dtype=np.float64).reshape(len(lines), len(lines[0]) if lines else 1)
        told = groups.exact_sums(table).tolist()
        assert told == [math.fsum(each for each in line if not math.isnan(each)) for line in lines]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(groups, "_WIDE", wide)
        patched.setattr(groups, "_ERROR", float(np.finfo(wide).eps))
        holds()
