"""CIT-3: laws of authority by quadrant."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.domain.links import MEASURES, Measure, Quadrant
from weft.quality.authority import QUADRANTS, external, fused, log_scaled
from weft.settings import load_settings

PRIOR = load_settings(environment={}).priors.authority
SHARES = st.floats(0.0, 1.0, allow_nan=False)
BELOW = float(np.nextafter(PRIOR.bound, 0.0))


def value(e: float, i: float) -> float:
    return float(fused(np.array([e]), np.array([i]), PRIOR).value[0])


def as_written(e: float, i: float) -> tuple[Quadrant, float, float]:
    """The formula of the requirement, with its numbers: quadrant, value and confidence."""
    if e >= 0.5 and i >= 0.5:
        return Quadrant.BOTH, 0.7 + 0.3 * e * i, 0.95
    if i >= 0.5:
        return Quadrant.INTERNAL, 0.5 + 0.3 * i + 0.1 * e, 0.8
    if e >= 0.5:
        return Quadrant.EXTERNAL, 0.3 + 0.25 * e + 0.1 * i, 0.6
    return Quadrant.NEITHER, 0.2 + 0.1 * e + 0.1 * i, 0.4


@given(SHARES, SHARES)
def test_every_quadrant_has_its_formula_and_its_confidence(e: float, i: float) -> None:
    """CIT-3: at the priors, and within [.2, 1]."""
    quadrant, expected, confidence = as_written(e, i)
    told = fused(np.array([e]), np.array([i]), PRIOR).of(0, PRIOR)
    assert (told.quadrant, told.confidence) == (quadrant, confidence)
    assert told.value == pytest.approx(expected, abs=1e-12)
    assert 0.2 <= told.value <= 1.0
    assert (told.external, told.internal) == (e, i)


@given(SHARES, SHARES, SHARES, SHARES)
def test_more_of_either_is_never_less(e: float, i: float, more_e: float, more_i: float) -> None:
    """CIT-3: monotone in both axes, over the bounds, too."""
    assert value(max(e, more_e), max(i, more_i)) >= value(min(e, more_e), min(i, more_i))


@given(SHARES, SHARES, st.floats(0.0, 0.01))
def test_it_is_continuous_within_a_quadrant(e: float, i: float, step: float) -> None:
    """CIT-3: no slope there is above .3 on either axis."""
    before, after = (fused(np.array([at]), np.array([i]), PRIOR) for at in (e, min(1.0, e + step)))
    if before.quadrant[0] == after.quadrant[0]:
        assert after.value[0] - before.value[0] <= 0.3 * step + 1e-12


@given(SHARES)
def test_it_jumps_at_the_bound_by_as_much_as_quadrants_differ(other: float) -> None:
    """CIT-3: to "external" by .175, to "internal" by .4; to "both" the less the higher the other axis was."""
    low, high = other * BELOW, 0.5 + other / 2
    assert value(0.5, low) - value(BELOW, low) == pytest.approx(0.3 + 0.125 - 0.2 - 0.05)
    assert value(low, 0.5) - value(low, BELOW) == pytest.approx(0.5 + 0.15 - 0.2 - 0.05)
    assert value(0.5, high) - value(BELOW, high) == pytest.approx(0.15 - 0.15 * high, abs=1e-9)
    assert value(high, 0.5) - value(high, BELOW) == pytest.approx(0.35 - 0.1 * high, abs=1e-9)


def test_the_steps_between_quadrants_are_those_that_docs_name() -> None:
    """CIT-3: at the corners of the jumps."""
    corners = [value(*at) for at in ((0.5, 0.5), (BELOW, 0.5), (0.5, BELOW), (BELOW, BELOW), (1.0, 1.0), (0.0, 0.0))]
    assert corners == pytest.approx([0.775, 0.7, 0.475, 0.3, 1.0, 0.2])
    assert [QUADRANTS[at] for at in fused(np.array([0.5, BELOW]), np.array([0.5, 0.5]), PRIOR).quadrant] == [
        Quadrant.BOTH,
        Quadrant.INTERNAL,
    ]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=20), st.integers(1, 10**8))
def test_a_count_says_the_same_wherever_it_stands(counts: list[int], full: int) -> None:
    """CIT-1: shares in [0, 1], in the order of counts, bit for bit as alone."""
    columns = np.array(counts, dtype=np.float64)
    shares = log_scaled(columns, float(full))
    assert ((shares >= 0.0) & (shares <= 1.0)).all()
    assert (np.diff(shares[np.argsort(columns, kind="stable")]) >= 0.0).all()
    assert shares.tolist() == [float(log_scaled(np.array([float(count)]), float(full))[0]) for count in counts]


@given(st.lists(st.floats(0.0, 1e12), min_size=len(MEASURES), max_size=len(MEASURES)))
def test_elsewhere_is_what_the_strongest_measure_says(counts: list[float]) -> None:
    """CIT-1: an author's record and a review lift a document no further than their share."""
    said = external(np.array([counts]), PRIOR)[0]
    alone = [external(np.diag(counts)[[place]], PRIOR)[0] for place in range(len(MEASURES))]
    assert said == max(alone)
    assert all(alone[MEASURES.index(measure)] <= PRIOR.external[measure].most for measure in Measure)
