"""LRN-4 … LRN-9: every family of belief answers the same questions in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipelines.learning.families.beta import Beta, BetaEvidence
from pipelines.learning.families.dirichlet import Dirichlet, DirichletEvidence
from pipelines.learning.families.gamma import Gamma, GammaEvidence
from pipelines.learning.families.survival import Survival, SurvivalEvidence
from pipelines.learning.families.threshold import Threshold, ThresholdEvidence
from pipelines.settings import load_settings

PRIORS = load_settings(environment={}).priors

FAMILIES: dict[str, tuple[Any, Any]] = {
    "beta": (Beta(2.0, 2.0), BetaEvidence.of(0.8, weight=10.0)),
    "gamma": (Gamma(30.0, 0.1), GammaEvidence.of(200.0, weight=10.0)),
    "dirichlet": (Dirichlet((3.0, 1.0, 1.0)), DirichletEvidence.of(1, 3, weight=10.0)),
    "survival": (Survival(2.0, 200.0), SurvivalEvidence.of(50.0, accurate=True, per_doubling=4, weight=10.0)),
    "threshold": (Threshold(PRIORS.thresholds), ThresholdEvidence.of(0.7, good=True, bins=20, weight=10.0)),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_it_has_mean_variance_interval_sample_and_confidence(family: str) -> None:
    """LRN-4: confidence = 1 − 1/(1 + n/10): a half after ten observations; recency halves what evidence counts."""
    prior, evidence = FAMILIES[family]
    belief = prior.given(evidence)
    halfway = PRIORS.confidence.halfway
    assert halfway == 10.0
    assert prior.confidence(halfway) == 0.0
    assert belief.confidence(halfway) == pytest.approx(0.5)
    assert prior.given(evidence, recency=0.5).confidence(halfway) == pytest.approx(1.0 - 1.0 / 1.5)
    low, high = np.array(belief.interval(0.9)).reshape(-1, 2).T
    mean = np.atleast_1d(belief.mean)
    assert (low < mean).all()
    assert (mean < high).all()
    rng = np.random.default_rng(1)
    draws = np.array([np.atleast_1d(belief.sample(rng)) for _ in range(2000)])
    assert draws.mean(axis=0) == pytest.approx(mean, rel=0.1)
    assert draws.var(axis=0) == pytest.approx(np.atleast_1d(belief.variance), rel=0.2)
    assert np.array_equal(belief.sample(np.random.default_rng(2)), belief.sample(np.random.default_rng(2)))


@pytest.mark.parametrize("family", FAMILIES)
def test_more_evidence_of_the_same_narrows_the_belief(family: str) -> None:
    """LRN-4."""
    prior, evidence = FAMILIES[family]
    once = prior.given(evidence)
    again = prior.given(evidence + evidence + evidence)
    assert np.sum(again.variance) < np.sum(once.variance)
    assert again.observations == pytest.approx(30.0)
