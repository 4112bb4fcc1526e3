"""Laws of sharing an outcome among contents."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from weft.feedback.events.attribution import Attributed, Method, Views, attribute, counterfactual, method_of
from weft.settings import load_settings

RULES = load_settings(environment={}).feedback.attribution
COSINES = st.floats(-1.0, 1.0).map(lambda value: round(value, 3))  # ties are likely
SIGNALS = st.floats(-1.0, 1.0)


@st.composite
def views(draw: st.DrawFn) -> tuple[int, Views]:
    contents = draw(st.integers(1, 6))
    row = arrays(np.float64, contents, elements=COSINES)
    matrix = arrays(np.float64, (draw(st.integers(1, 5)), contents), elements=COSINES)
    optional = lambda strategy: draw(st.none() | strategy)  # noqa: E731
    return contents, Views(optional(row), optional(row.map(np.abs)), optional(matrix))


def without(support: np.ndarray, left_out: int) -> float:
    """Support of a response by all contents but one, sentence by sentence."""
    kept = [column for column in range(support.shape[1]) if column != left_out]
    return float(np.mean([max([max(sentence[column], 0.0) for column in kept], default=0.0) for sentence in support]))


def total(support: np.ndarray) -> float:
    return without(support, -1)


@given(views())
def test_the_closed_form_is_leave_one_out(case: tuple[int, Views]) -> None:
    """FBK-9: best against second best, equal to computing the support anew without each content."""
    contents, found = case
    if found.support is not None:
        expected = [total(found.support) - without(found.support, left_out) for left_out in range(contents)]
        assert counterfactual(found.support) == pytest.approx(expected, abs=1e-12)
        assert counterfactual(found.support).sum() <= total(found.support) + 1e-12


@given(SIGNALS, views())
def test_results_lie_between_minus_one_and_one_and_have_the_sign_of_the_outcome(
    signal: float, case: tuple[int, Views]
) -> None:
    """FBK-9: results in [−1, 1] with the method named and its confidence."""
    found = attribute(signal, *case, RULES)
    assert np.all(np.abs(found.values) <= abs(signal))
    assert np.all(found.values * signal >= 0.0)
    assert found.method is method_of(case[1])
    assert found.confidence == {"counterfactual": 0.9, "attention": 0.7, "semantic": 0.5, "equal": 1.0}[found.method]


@given(SIGNALS, views(), st.randoms(use_true_random=False))
def test_the_order_of_contents_makes_no_difference(signal: float, case: tuple[int, Views], shuffler) -> None:
    """FBK-9: permuted contents get permuted shares, even where several support a sentence equally well."""
    contents, found = case
    order = list(range(contents))
    shuffler.shuffle(order)
    permuted = Views(*(None if view is None else view[..., order] for view in (found.semantic, found.attention)))
    permuted = Views(permuted.semantic, permuted.attention, None if found.support is None else found.support[:, order])
    before, after = attribute(signal, contents, found, RULES), attribute(signal, contents, permuted, RULES)
    assert after.values == pytest.approx(before.values[order], abs=1e-12)


@given(SIGNALS, views())
def test_it_is_linear_in_the_outcome(signal: float, case: tuple[int, Views]) -> None:
    """FBK-9: shares are those of a good outcome, times the signal: an event carries them whatever comes of it."""
    shares: Attributed = attribute(1.0, *case, RULES)
    assert attribute(signal, *case, RULES).values == pytest.approx(signal * shares.values, abs=1e-12)


@given(SIGNALS, st.integers(1, 9))
def test_without_any_view_shares_are_equal(signal: float, contents: int) -> None:
    """FBK-9: they sum to the outcome, and the method says so."""
    found = attribute(signal, contents, Views(), RULES)
    assert found.method is Method.EQUAL
    assert len(set(found.values.tolist())) == 1
    assert found.values.sum() == pytest.approx(signal)
