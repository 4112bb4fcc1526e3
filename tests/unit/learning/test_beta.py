"""LRN-4: the Beta family."""

import math

import numpy as np
import pytest

from pipelines.learning.families.beta import Beta, BetaEvidence, confidence


def test_moments_are_those_of_its_draws() -> None:
    """LRN-4: mean, variance and interval against 100,000 samples."""
    belief, rng = Beta(3.0, 5.0), np.random.default_rng(4)
    draws = np.array([belief.sample(rng) for _ in range(100_000)])
    assert belief.mean == pytest.approx(draws.mean(), abs=0.003)
    assert belief.variance == pytest.approx(draws.var(), rel=0.03)
    low, high = belief.interval(0.9)
    assert np.mean((draws >= low) & (draws <= high)) == pytest.approx(0.9, abs=0.005)


def test_a_belief_around_a_mean_is_worth_its_strength() -> None:
    """LRN-5: Beta(κ·m, κ·(1 − m)), variance m(1 − m)/(κ + 1)."""
    belief = Beta.around(0.7, 20.0)
    assert math.isclose(belief.mean, 0.7)
    assert math.isclose(belief.variance, 0.7 * 0.3 / 21.0)


def test_mass_is_conserved_by_rounding() -> None:
    """LRN-1: for and against are the rounded weight together, also where both parts would round up."""
    evidence = BetaEvidence.of(0.5, weight=3e-6)
    assert evidence.hits + evidence.misses == 3


@pytest.mark.parametrize(
    ("agreement", "weight"), [(1.1, 1.0), (-0.1, 1.0), (math.nan, 1.0), (0.5, -1.0), (0.5, math.inf)]
)
def test_evidence_out_of_range_is_refused(agreement: float, weight: float) -> None:
    """LRN-4."""
    with pytest.raises(ValueError, match="expected agreement"):
        BetaEvidence.of(agreement, weight)


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (1.0, -1.0), (math.nan, 1.0)])
def test_an_improper_belief_is_refused(a: float, b: float) -> None:
    """LRN-4."""
    with pytest.raises(ValueError, match="expected a > 0 and b > 0"):
        Beta(a, b)


def test_confidence_grows_with_evidence_towards_one() -> None:
    """LRN-4: 1 − 1/(1 + n/10)."""
    assert confidence(30.0, halfway=10.0) == 0.75
    assert confidence(1e9, halfway=10.0) < 1.0
