"""LRN-4: the Beta family."""

import math

import numpy as np
import pytest

from weft.learning.families.beta import Beta, confidence


def test_moments_are_those_of_its_draws() -> None:
    """LRN-4: mean, variance and interval against 100,000 samples."""
    belief, rng = Beta(3.0, 5.0), np.random.default_rng(4)
    draws = np.array([belief.sample(rng) for _ in range(100_000)])
    assert belief.mean == pytest.approx(draws.mean(), abs=0.003)
    assert belief.variance == pytest.approx(draws.var(), rel=0.03)
    low, high = belief.interval(0.9)
    assert np.mean((draws >= low) & (draws <= high)) == pytest.approx(0.9, abs=0.005)


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (1.0, -1.0), (math.nan, 1.0)])
def test_an_improper_belief_is_refused(a: float, b: float) -> None:
    """LRN-4."""
    with pytest.raises(ValueError, match="expected a > 0 and b > 0"):
        Beta(a, b)


def test_confidence_grows_with_evidence_towards_one() -> None:
    """LRN-4: 1 − 1/(1 + n/10)."""
    assert confidence(30.0, halfway=10.0) == 0.75
    assert confidence(1e9, halfway=10.0) < 1.0
