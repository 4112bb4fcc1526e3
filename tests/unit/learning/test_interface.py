"""LRN-4, LRN-6, LRN-7: every family of belief answers the same questions in the same words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft.learning.evidence import MICRO
from weft.learning.families.beta import Beta, confidence
from weft.learning.families.survival import Survival, survival_masses
from weft.learning.families.threshold import Threshold, threshold_masses
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors


def survival(n: float) -> Survival:
    prior = Survival(2.0, 200.0)
    return prior.given(survival_masses(50.0, accurate=True, weight=n)) if n else prior


def threshold(n: float) -> Threshold:
    prior = Threshold(PRIORS.thresholds)
    return prior.given(threshold_masses(0.7, good=True, weight=n)) if n else prior


FAMILIES: dict[str, Callable[[float], Any]] = {
    "beta": lambda n: Beta(2.0, 2.0).given(round(0.8 * n * MICRO), round(0.2 * n * MICRO)),
    "survival": survival,
    "threshold": threshold,
}
"""Beliefs after so many observations."""


@pytest.mark.parametrize("family", FAMILIES)
def test_it_has_mean_variance_interval_sample_and_confidence(family: str) -> None:
    """LRN-4, LRN-11: confidence = 1 − 1/(1 + n/10): a half after ten observations."""
    prior, belief = (FAMILIES[family](n) for n in (0.0, 10.0))
    halfway = PRIORS.confidence.halfway
    assert halfway == 10.0
    assert confidence(prior.observations, halfway=halfway) == 0.0
    assert confidence(belief.observations, halfway=halfway) == pytest.approx(0.5)
    low, high = belief.interval(0.9)
    assert low < belief.mean < high
    rng = np.random.default_rng(1)
    draws = np.array([belief.sample(rng) for _ in range(2000)])
    assert draws.mean() == pytest.approx(belief.mean, rel=0.1)
    assert draws.var() == pytest.approx(belief.variance, rel=0.2)
    assert belief.sample(np.random.default_rng(2)) == belief.sample(np.random.default_rng(2))


@pytest.mark.parametrize("family", FAMILIES)
def test_more_evidence_of_the_same_narrows_the_belief(family: str) -> None:
    """LRN-4."""
    once, again = (FAMILIES[family](n) for n in (10.0, 30.0))
    assert again.variance < once.variance
    assert again.observations == pytest.approx(30.0)
