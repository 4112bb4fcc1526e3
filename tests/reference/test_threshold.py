"""LRN-7: the belief about thresholds against importance sampling, maximum likelihood and plain counting of costs."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from weft.learning.families.threshold import Threshold, threshold_masses
from weft.learning.priors import ThresholdPrior
from weft.settings import load_settings

PRIOR = load_settings(environment={}).priors.thresholds
COSTLY = PRIOR.model_copy(update={"cost_false_positive": 4.0})
BINS = 20


def decisions(seed: int, count: int, *, centre: float, slope: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    confidences = rng.random(count)
    return confidences, rng.random(count) < expit(slope * (confidences - centre))


def taught(prior: ThresholdPrior, confidences: np.ndarray, good: np.ndarray) -> Threshold:
    of = zip(confidences, good, strict=True)
    seen = (threshold_masses(float(confidence), good=bool(outcome)) for confidence, outcome in of)
    return Threshold(prior).given(sum(seen, Counter()))


def test_without_evidence_it_is_the_prior() -> None:
    """LRN-7: Beta(3, 3)."""
    beta = stats.beta(PRIOR.a, PRIOR.b)
    belief = Threshold(PRIOR)
    assert (PRIOR.a, PRIOR.b) == (3.0, 3.0)
    assert belief.mean == pytest.approx(0.5, abs=1e-9)
    assert belief.variance == pytest.approx(beta.var(), rel=1e-3)
    assert belief.interval(0.9) == pytest.approx(beta.interval(0.9), abs=1e-3)


@pytest.mark.parametrize("prior", [PRIOR, COSTLY], ids=["even costs", "costly false positives"])
@pytest.mark.parametrize("count", [5, 60, 600])
def test_the_posterior_agrees_with_importance_sampling(prior: ThresholdPrior, count: int) -> None:
    """LRN-7: a million draws of the prior, each weighted with its likelihood."""
    confidences, good = decisions(count, count, centre=0.6, slope=9.0)
    belief = taught(prior, confidences, good)
    rng = np.random.default_rng(7)
    draws = 1_000_000
    threshold = rng.beta(prior.a, prior.b, draws)
    slope = rng.gamma(prior.slope_shape, 1.0 / prior.slope_rate, draws)
    q = prior.cost_false_positive / (prior.cost_false_positive + prior.cost_false_negative)
    log = np.zeros(draws)
    middles = (np.minimum((confidences * BINS).astype(int), BINS - 1) + 0.5) / BINS
    for middle in np.unique(middles):
        odds = logit(q) + slope * (middle - threshold)
        here = middles == middle
        log -= good[here].sum() * np.logaddexp(0, -odds) + (~good[here]).sum() * np.logaddexp(0, odds)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = float(weight @ threshold)
    error = 4.0 * math.sqrt(float(weight**2 @ (threshold - mean) ** 2))
    assert belief.mean == pytest.approx(mean, abs=error + 1e-3)
    assert belief.variance == pytest.approx(float(weight @ (threshold - mean) ** 2), rel=0.1)


def test_much_evidence_gives_the_point_of_the_fitted_logistic_curve() -> None:
    """LRN-7: where scikit-learn's maximum likelihood crosses C_FP / (C_FP + C_FN)."""
    confidences, good = decisions(2, 20_000, centre=0.45, slope=8.0)
    middles = (np.minimum((confidences * BINS).astype(int), BINS - 1) + 0.5) / BINS
    fit = LogisticRegression(C=1e9).fit(middles[:, None], good)
    for prior, q in ((PRIOR, 0.5), (COSTLY, 0.8)):
        crossing = (logit(q) - fit.intercept_[0]) / fit.coef_[0, 0]
        belief = taught(prior, confidences, good)
        assert belief.mean == pytest.approx(crossing, abs=0.01)
        low, high = belief.interval(0.9)
        assert low < crossing < high
        assert belief.probability(0.7) == pytest.approx(expit(8.0 * (0.7 - 0.45)), abs=0.02)


@pytest.mark.parametrize("costs", [(1.0, 1.0), (5.0, 1.0), (1.0, 3.0)])
def test_no_other_threshold_costs_less(costs: tuple[float, float]) -> None:
    """LRN-7: τ* minimises C_FP · P(bad, c ≥ τ) + C_FN · P(good, c < τ), counted over 100,000 fresh decisions."""
    prior = PRIOR.model_copy(update=dict(zip(("cost_false_positive", "cost_false_negative"), costs, strict=True)))
    belief = taught(prior, *decisions(3, 5_000, centre=0.5, slope=10.0))
    confidences, good = decisions(4, 100_000, centre=0.5, slope=10.0)

    def cost(threshold: float) -> float:
        acted = confidences >= threshold
        return costs[0] * np.mean(acted & ~good) + costs[1] * np.mean(~acted & good)

    least = min(cost(threshold) for threshold in np.linspace(0.0, 1.0, 101))
    assert cost(belief.mean) <= 1.03 * least


@pytest.mark.slow
def test_intervals_hold_the_true_threshold_as_often_as_they_say() -> None:
    """LRN-7: 90 % intervals over 200 worlds drawn from the priors, 40 decisions each."""
    rng = np.random.default_rng(6)
    hits = 0
    for world in range(200):
        centre = rng.beta(PRIOR.a, PRIOR.b)
        slope = rng.gamma(PRIOR.slope_shape, 1.0 / PRIOR.slope_rate)
        low, high = taught(PRIOR, *decisions(world, 40, centre=centre, slope=slope)).interval(0.9)
        hits += low <= centre <= high
    assert 0.85 <= hits / 200 <= 0.95


def test_an_agent_is_followed_a_fifth_of_the_way_and_never_beyond_the_bounds() -> None:
    """LRN-7: offset scaled by 0.2, clamped to [0.1, 0.9]."""
    domain = taught(PRIOR, *decisions(8, 3_000, centre=0.5, slope=10.0))
    agent = taught(PRIOR, *decisions(9, 3_000, centre=0.8, slope=10.0))
    assert domain.of_agent(agent) == pytest.approx(0.5 + 0.2 * 0.3, abs=0.02)
    strict = taught(PRIOR, np.full(5_000, 0.97), np.zeros(5_000, dtype=bool))
    assert strict.of_agent(strict) == 0.9


def test_draws_are_those_of_the_posterior() -> None:
    """LRN-7."""
    belief = taught(PRIOR, *decisions(10, 50, centre=0.6, slope=6.0))
    rng = np.random.default_rng(11)
    draws = np.array([belief.sample(rng) for _ in range(20_000)])
    assert draws.mean() == pytest.approx(belief.mean, abs=0.003)
    assert draws.var() == pytest.approx(belief.variance, rel=0.04)
