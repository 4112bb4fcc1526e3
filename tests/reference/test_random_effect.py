"""LRN-18: effects of what came of contents, against scipy's minimiser, and what their variance is learned from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit

from weft.learning.families.random_effect import learned_variance, random_effects

Outcome = tuple[float, float, float]
outcomes = st.lists(
    st.tuples(st.floats(-9.0, 5.0), st.sampled_from([0.0, 0.3, 1.0]), st.floats(0.0, 4.0)), min_size=1, max_size=8
)
variances = st.sampled_from([0.05, 1.0, 25.0, 100.0])


def effect(said: list[Outcome], variance: float) -> tuple[float, float]:
    """Mode and deviation of one effect: expected log-odds, good and weight of each outcome."""
    expected, good, weight = np.array(said).T
    mode, deviation = random_effects(
        expected, good, weight, np.zeros(len(said), dtype=np.int64), count=1, variance=variance
    )
    return float(mode[0]), float(deviation[0])


@given(outcomes, variances)
def test_the_mode_is_where_the_posterior_is_greatest(said: list[Outcome], variance: float) -> None:
    """LRN-18: Σ w·[y·log σ(l + u) + (1 − y)·log σ(−l − u)] − u² / 2v; its curvature there is the deviation."""
    expected, good, weight = np.array(said).T

    def loss(u: float) -> float:
        at = expected + u
        return float(u**2 / (2.0 * variance) - weight @ (good * log_expit(at) + (1.0 - good) * log_expit(-at)))

    best = minimize_scalar(loss, bounds=(-60.0, 60.0), method="bounded", options={"xatol": 1e-9})
    mode, deviation = effect(said, variance)
    assert mode == pytest.approx(best.x, abs=1e-4)
    p = expit(expected + mode)
    assert deviation == pytest.approx((1.0 / variance + weight @ (p * (1.0 - p))) ** -0.5)


@given(outcomes, variances, st.floats(-9.0, 5.0), st.floats(0.01, 4.0))
def test_a_good_outcome_never_lowers_an_effect_and_a_bad_one_never_raises_it(
    said: list[Outcome], variance: float, expected: float, weight: float
) -> None:
    """LRN-18: and either makes it surer where it stands."""
    before = effect(said, variance)[0]
    assert effect([*said, (expected, 1.0, weight)], variance)[0] >= before - 1e-9
    assert effect([*said, (expected, 0.0, weight)], variance)[0] <= before + 1e-9


@given(outcomes, variances)
def test_effects_are_told_apart(said: list[Outcome], variance: float) -> None:
    """LRN-18: each is moved by its own outcomes alone; one without outcomes is what it was expected to be."""
    expected, good, weight = np.array([*said, (0.0, 1.0, 1.0)]).T
    of = np.array([1] * len(said) + [2])
    mode, deviation = random_effects(expected, good, weight, of, count=3, variance=variance)
    assert (mode[1], deviation[1]) == pytest.approx(effect(said, variance))
    assert (mode[0], deviation[0]) == pytest.approx((0.0, variance**0.5))


def test_a_surprise_moves_more_than_what_was_expected() -> None:
    """LRN-18: a good outcome of what nobody thought good says most."""
    moved = [effect([(log_odds, 1.0, 1.0)], 25.0)[0] for log_odds in (-5.0, -2.0, 0.0, 3.0)]
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] > 0.0


def populated(rng: np.random.Generator, variance: float, things: int = 2_000, each: int = 4) -> tuple[np.ndarray, ...]:
    """Outcomes of things that differ by effects of a variance: what was expected, and what came."""
    of = np.repeat(np.arange(things), each)
    expected = rng.uniform(-2.0, 2.0, len(of))
    good = rng.random(len(of)) < expit(expected + rng.normal(0.0, variance**0.5, things)[of])
    return expected, good.astype(np.float64), np.ones(len(of)), of


@pytest.mark.parametrize("variance", [0.5, 3.0])
@pytest.mark.parametrize("prior", [0.6, 1.6], ids="prior {} times".format)
def test_the_variance_is_found_from_outcomes_that_go_together(variance: float, prior: float) -> None:
    """LRN-18: empirical Bayes over two thousand things of a simulated population, from either side."""
    outcomes_of = populated(np.random.default_rng(5), variance)
    found = learned_variance(*outcomes_of, prior=prior * variance, spread=0.7)
    assert found == pytest.approx(variance, rel=0.35)


def test_outcomes_by_chance_show_no_variance() -> None:
    """LRN-18: what was expected of each is all there is: the least that the prior thinks possible remains."""
    assert learned_variance(*populated(np.random.default_rng(6), 1e-9), prior=2.0, spread=0.7) < 0.5


def test_without_several_outcomes_of_a_thing_the_prior_holds() -> None:
    """LRN-18: one outcome of each says nothing of how they go together."""
    expected, good, weight, of = populated(np.random.default_rng(7), 1.0, things=50)
    assert learned_variance(expected, good, weight, np.arange(len(of)), prior=3.0, spread=0.7) == 3.0
    nothing = np.zeros(0)
    assert learned_variance(nothing, nothing, nothing, nothing.astype(np.int64), prior=3.0, spread=0.7) == 3.0
