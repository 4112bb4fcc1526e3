"""LRN-1, LRN-9: Gamma and Dirichlet beliefs against quadrature and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from weft.domain.chunks import MadeBy
from weft.learning.evidence import MICRO
from weft.learning.observe.sizes import Dirichlet, Gamma, size_masses


@pytest.mark.parametrize("sizes", [[120.0], [40.0, 90.0, 500.0], list(np.linspace(60.0, 900.0, 16))], ids=len)
def test_the_posterior_of_a_size_is_prior_times_inverse_gamma_likelihood(sizes: list[float]) -> None:
    """LRN-9: p(x | θ) = θ/x² · e^(−θ/x), integrated numerically."""
    belief = Gamma(30.0, 0.1).given(len(sizes), math.fsum(1.0 / size for size in sizes))
    prior = stats.gamma(30.0, scale=10.0)

    def density(theta: float) -> float:
        likelihood = math.fsum(stats.invgamma(1.0, scale=theta).logpdf(size) for size in sizes)
        return math.exp(prior.logpdf(theta) + likelihood + 6.5 * len(sizes) + 5.0)

    low, high = belief.quantile(1e-9), belief.quantile(1.0 - 1e-9)
    whole = integrate.quad(density, low, high, epsabs=0.0, epsrel=1e-9, limit=200)[0]
    mean = (
        integrate.quad(lambda theta: theta * density(theta), low, high, epsabs=0.0, epsrel=1e-9, limit=200)[0] / whole
    )
    assert belief.mean == pytest.approx(mean, rel=1e-5)


def test_the_evidence_of_a_size_gives_its_statistics_back() -> None:
    """LRN-1: Σw, Σw·1000/x, Σw·ln x, to the rounding of micro-units."""
    rng = np.random.default_rng(1)
    sizes, weights = rng.integers(5, 8000, 500), rng.uniform(0.05, 1.0, 500)
    made = [MadeBy(tokens=int(size)) for size in sizes]
    masses = [size_masses(each, good=True, weight=float(weight)) for each, weight in zip(made, weights, strict=True)]
    expected = {"weight": weights, "inverse": weights * 1000 / sizes, "log": weights * np.log(sizes)}
    for statistic, values in expected.items():
        total = sum(each["size.target.good", statistic] for each in masses) / MICRO
        assert total == pytest.approx(values.sum(), rel=1e-5)


@pytest.mark.parametrize(("shape", "rate"), [(30.0, 0.1), (0.1, 0.1), (5.0, 0.05)])
def test_a_gamma_belief_is_scipys(shape: float, rate: float) -> None:
    """LRN-9: mean, interval, draws."""
    belief, reference = Gamma(shape, rate), stats.gamma(shape, scale=1.0 / rate)
    assert belief.mean == pytest.approx(reference.mean())
    assert belief.interval(0.9) == pytest.approx(reference.interval(0.9))
    rng = np.random.default_rng(2)
    draws = [belief.sample(rng) for _ in range(5000)]
    assert stats.kstest(draws, reference.cdf).pvalue > 0.001


@pytest.mark.parametrize("alpha", [(3.0, 1.0, 1.0), (0.4, 7.0, 2.0)])
def test_a_dirichlet_belief_is_scipys(alpha: tuple[float, ...]) -> None:
    """LRN-1: means, marginal intervals and draws."""
    belief, reference = Dirichlet(alpha), stats.dirichlet(alpha)
    assert belief.mean == pytest.approx(reference.mean())
    rng = np.random.default_rng(3)
    draws = np.array([belief.sample(rng) for _ in range(5000)])
    assert draws.sum(axis=1) == pytest.approx(np.ones(5000))
    for place, each in enumerate(alpha):
        share = stats.beta(each, sum(alpha) - each)
        assert belief.interval(0.9)[place] == pytest.approx(share.interval(0.9))
        assert stats.kstest(draws[:, place], share.cdf).pvalue > 0.001


def test_counts_add_to_a_dirichlet() -> None:
    """LRN-1: α + n."""
    assert Dirichlet((1.0, 1.0, 1.0)).given((1.0, 1.0, 3.0)).alpha == (2.0, 2.0, 4.0)
