"""LRN-11: what Thompson sampling gives each signal on average is what is believed of it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.nights import a_day
from weft.domain.documents import Domain
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import Beliefs, read_beliefs
from weft.learning.evidence import Evidence
from weft.learning.pooling.weights import StickBreaking
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
ALL = frozenset(Signal)
BELIEFS = {
    "at the priors": read_beliefs(PRIORS, Evidence(), now=0.0),
    "after a few outcomes": read_beliefs(PRIORS, a_day(0, outcomes=30), now=0.0),
    "after many": read_beliefs(PRIORS, a_day(0, outcomes=2000), now=0.0),
}


@pytest.mark.parametrize("beliefs", BELIEFS.values(), ids=BELIEFS.keys())
@pytest.mark.parametrize("domain", list(Domain))
def test_the_mean_of_many_draws_is_the_weight(beliefs: Beliefs, domain: Domain) -> None:
    """LRN-11: of 20,000 draws, within four standard errors for each signal; one of weight 0 is never drawn above 0."""
    weights = beliefs.weights(Scope(domain), ALL)
    for signal, draws in beliefs.weight_draws(Scope(domain), ALL, 20_000).items():
        error = float(draws.std()) / len(draws) ** 0.5
        assert abs(float(draws.mean()) - weights[signal].mean) <= 4.0 * error + 1e-12
        assert weights[signal].mean > 0.0 or not draws.any()


def test_draws_of_a_request_are_unbiased_too() -> None:
    """LRN-11: each from a generator of its own, as searches draw them."""
    beliefs, scope = BELIEFS["at the priors"], Scope(Domain.HISTORY)
    each = [beliefs.sampled_weights(scope, ALL, np.random.default_rng([1, seed])) for seed in range(1000)]
    for signal, belief in beliefs.weights(scope, ALL).items():
        drawn = np.array([one[signal] for one in each])
        assert abs(drawn.mean() - belief.mean) <= 4.0 * drawn.std() / len(drawn) ** 0.5 + 1e-12


def test_shares_have_the_means_and_the_variances_that_were_asked_for() -> None:
    """LRN-11: by simulation; the last share has what the others leave it."""
    mean, variance = np.array([0.4, 0.3, 0.0, 0.2, 0.1]), np.array([0.002, 0.01, 0.5, 0.004, 0.008])
    draws = StickBreaking.of(mean, variance).draws(np.random.default_rng(5), 100_000)
    assert np.allclose(draws.sum(axis=1), 1.0)
    assert draws.min() >= 0.0
    assert np.allclose(draws.mean(axis=0), mean, atol=4.0 * draws.std(axis=0).max() / 100_000**0.5)
    surest = [0, 3, 1]  # by variance over squared mean; the fourth takes the rest
    assert np.allclose(draws.var(axis=0)[surest], variance[surest], rtol=0.03)
    assert (
        StickBreaking.of(np.array([0.0, 1.0]), np.zeros(2)).draws(np.random.default_rng(1), 3).tolist() == [[0, 1]] * 3
    )
