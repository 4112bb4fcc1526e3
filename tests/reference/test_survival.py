"""LRN-6: the belief about decay rates against quadrature, closed forms and simulated populations."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from weft.learning.families.beta import confidence
from weft.learning.families.survival import Survival, survival_masses

PRIOR = Survival(2.0, 200.0)
AGES = (1.0, 30.0, 200.0, 5000.0)


def seen(rng: np.random.Generator, rate: float, documents: int) -> Counter[str]:
    """Documents of all ages around the lifetime, each accurate with probability e^(−λ·age)."""
    evidence: Counter[str] = Counter()
    for age in rng.exponential(1.0 / rate, documents):
        accurate = rng.random() < math.exp(-rate * age)
        evidence += survival_masses(float(age), accurate=accurate)
    return evidence


def quadrature(belief: Survival, of) -> float:
    """Posterior mean of a function of λ by adaptive integration over λ itself."""

    def density(rate: float) -> float:
        log = (belief.shape - 1.0) * math.log(rate) - belief.rate_hours * rate
        for age, accurate, inaccurate in zip(belief.ages, belief.accurate, belief.inaccurate, strict=True):
            log += -accurate * rate * age + (inaccurate * math.log(-math.expm1(-rate * age)) if inaccurate else 0.0)
        return log

    peak = max(density(rate) for rate in np.geomspace(1e-7, 10.0, 4000))
    cuts = np.geomspace(1e-9, 10.0, 60)

    def total(function) -> float:
        return math.fsum(
            integrate.quad(lambda rate: function(rate) * math.exp(density(rate) - peak), low, high, limit=200)[0]
            for low, high in pairwise(cuts)
        )

    return total(of) / total(lambda rate: 1.0)


def test_without_evidence_it_is_the_gamma_in_closed_form() -> None:
    """LRN-6: mean, variance, quantiles and freshness of Gamma(2, 200), within 1e-9 (quantiles within 1e-3)."""
    gamma = stats.gamma(2.0, scale=1 / 200.0)
    assert PRIOR.mean == pytest.approx(gamma.mean(), rel=1e-9)
    assert PRIOR.variance == pytest.approx(gamma.var(), rel=1e-9)
    assert PRIOR.interval(0.9) == pytest.approx(gamma.interval(0.9), rel=1e-3)
    for age in AGES:
        assert PRIOR.freshness(age) == pytest.approx((200.0 / (200.0 + age)) ** 2, rel=1e-9)
    low, median, high = PRIOR.half_life(0.9)
    assert median == pytest.approx(math.log(2.0) / gamma.median(), rel=1e-3)
    assert low < median < high


@pytest.mark.parametrize("documents", [1, 12, 400])
@pytest.mark.parametrize("rate", [0.003, 0.05])
def test_with_evidence_it_agrees_with_adaptive_quadrature(documents: int, rate: float) -> None:
    """LRN-6: mean and freshness within 1e-6, from one document to hundreds."""
    belief = PRIOR.given(seen(np.random.default_rng(documents), rate, documents))
    assert belief.observations == documents
    assert belief.mean == pytest.approx(quadrature(belief, lambda rate: rate), rel=1e-6)
    for age in AGES:
        expected = quadrature(belief, lambda rate, age=age: math.exp(-rate * age))
        assert belief.freshness(age) == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert belief.freshness_of_ages(np.array(AGES)) == pytest.approx([belief.freshness(age) for age in AGES])


def test_freshness_is_above_that_of_the_mean_rate() -> None:
    """LRN-6: the mean of e^(−λt) exceeds e^(−t·mean λ), the more so the less is known."""
    taught = PRIOR.given(seen(np.random.default_rng(1), 0.01, 3000))
    gaps = [belief.freshness(300.0) / math.exp(-300.0 * belief.mean) for belief in (PRIOR, taught)]
    assert gaps[0] > gaps[1] > 1.0


@pytest.mark.parametrize("documents", [5, 50, 500])
def test_intervals_hold_the_true_rate_as_often_as_they_say(documents: int) -> None:
    """LRN-6: coverage of 90 % intervals over 200 populations whose rates are drawn from the prior."""
    rng = np.random.default_rng(documents)
    hits = 0
    for _ in range(200):
        rate = rng.gamma(2.0, 1 / 200.0)
        low, high = PRIOR.given(seen(rng, rate, documents)).interval(0.9)
        hits += low <= rate <= high
    assert 0.85 <= hits / 200 <= 0.95


def test_draws_are_those_of_the_posterior() -> None:
    """LRN-6: inverse CDF: moments of 20,000 draws."""
    belief = PRIOR.given(seen(np.random.default_rng(4), 0.02, 20))
    rng = np.random.default_rng(5)
    draws = np.array([belief.sample(rng) for _ in range(20_000)])
    assert draws.mean() == pytest.approx(belief.mean, rel=0.01)
    assert draws.var() == pytest.approx(belief.variance, rel=0.04)


@pytest.mark.parametrize("accurate", [True, False])
def test_one_sided_evidence_moves_the_rate_its_way_and_stays_proper(accurate: bool) -> None:
    """LRN-6: a million documents that all agree."""
    evidence = survival_masses(100.0, accurate=accurate, weight=1e6)
    belief = PRIOR.given(evidence)
    assert (belief.mean < PRIOR.mean) == accurate
    assert 0.0 < belief.freshness(100.0) < 1.0
    assert confidence(belief.observations, halfway=10.0) > 0.99
