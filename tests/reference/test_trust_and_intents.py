"""LRN-4, LRN-5, LRN-10: rates, trust and intents against scipy, quadrature and loops over nodes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from tests.support.pooling_by_hand import node_by_node
from weft.domain.documents import Domain
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import Beliefs, read_beliefs
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.learning.families.beta import Beta, confidence
from weft.learning.parameters import reported_evidence
from weft.learning.pooling.agreement import IntentFactor
from weft.learning.pooling.hierarchy import Level, Pooled
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
DAY = 100


def read(evidence: Evidence) -> Beliefs:
    return read_beliefs(PRIORS, evidence, now=DAY * 86_400.0)


@pytest.mark.parametrize(("hits", "misses"), [(0.0, 0.0), (3.0, 1.0), (0.5, 40.0), (120.0, 80.0)])
def test_a_rate_is_prior_times_likelihood(hits: float, misses: float) -> None:
    """LRN-4: moments against quadrature of p^(a−1+hits)·(1 − p)^(b−1+misses), quantiles and draws against scipy's."""
    belief = Beta(2.0, 3.0).given(round(hits * MICRO), round(misses * MICRO))

    def density(rate: float) -> float:
        return float(rate ** (1.0 + hits) * (1.0 - rate) ** (2.0 + misses))

    mass, first, second = (
        integrate.quad(lambda rate, power=power: rate**power * density(rate), 0.0, 1.0, epsabs=0.0)[0]
        for power in range(3)
    )
    assert belief.mean == pytest.approx(first / mass, rel=1e-6)
    assert belief.variance == pytest.approx(second / mass - (first / mass) ** 2, rel=1e-5)
    assert belief.interval(0.9) == pytest.approx(stats.beta(2.0 + hits, 3.0 + misses).interval(0.9), rel=1e-9)
    draws = [belief.sample(np.random.default_rng(seed)) for seed in range(2_000)]
    assert stats.kstest(draws, stats.beta(2.0 + hits, 3.0 + misses).cdf).pvalue > 1e-3


SEEN = {
    ("paper", "m"): (40, 2),
    ("paper", "n"): (9, 3),
    ("blog", "m"): (5, 25),
    ("blog", "n"): (2, 2),
    ("wiki", "m"): (1, 0),
}


def test_trust_is_pooled_over_sources_and_models() -> None:
    """LRN-10: means against loops over sources, models and κ; the multiplier is the ratio to the prior's, capped."""
    beliefs = read(
        Evidence.sum(
            reported_evidence(
                DAY,
                Scope(Domain.GENERAL, model),
                f"trust.{source}",
                {"verified": held * MICRO, "refuted": refuted * MICRO},
            )
            for (source, model), (held, refuted) in SEEN.items()
        )
    )
    sources = sorted({source for source, _ in SEEN})
    leaves = sorted(SEEN)
    table = np.array([SEEN[leaf] for leaf in leaves], dtype=float)
    prior = PRIORS.trust
    strength = prior.verified + prior.refuted
    told = np.zeros((1, 2))  # to all sources: of n observations of one, n·κ/(κ + n)
    for source in sources:
        seen = sum(np.array(SEEN[leaf], dtype=float) for leaf in leaves if leaf[0] == source)
        told += seen * PRIORS.pooling.initial / (PRIORS.pooling.initial + seen.sum())
    root = Pooled(np.array([[prior.verified / strength]]), np.array([[strength]]), told[:, :1], told[:, 1:])
    nothing = np.zeros((len(sources), 1))
    levels = [
        Level(np.zeros(len(sources), dtype=np.int64), nothing, nothing),
        Level(np.array([sources.index(source) for source, _ in leaves]), table[:, :1], table[:, 1:]),
    ]
    by_source, by_model = node_by_node(root, levels, 0, PRIORS.pooling)
    stated = prior.verified / strength
    for leaf, expected in [
        *zip(((each, "*") for each in sources), by_source, strict=True),
        *zip(leaves, by_model, strict=True),
    ]:
        belief = beliefs.reported.trust(*leaf)
        assert belief.mean == pytest.approx(expected, rel=1e-9)
        assert belief.interval(0.9) == pytest.approx(stats.beta(belief.a, belief.b).interval(0.9), rel=1e-9)
        multiplier = min(prior.multiplier * expected / stated, prior.multiplier * prior.highest)
        assert beliefs.reported.trust_multiplier(*leaf) == pytest.approx(multiplier, rel=1e-9)


def agreed(intent: str, *, rate: float, n: float, kind: str) -> Evidence:
    sides = {"for": rate * n, "against": (1.0 - rate) * n}
    return Evidence(
        {
            EvidenceKey(DAY, "code", "*", "*", intent, f"signal.graph.{kind}", bin_): round(each * MICRO)
            for bin_, each in sides.items()
        }
    )


def test_an_intents_factor_is_the_ratio_of_odds() -> None:
    """LRN-5: what many outcomes say, against odds counted plainly; few leave it near 1; none at all, nothing to say."""
    told = {"debug": (0.8, 400.0), "browse": (0.6, 400.0), "rare": (0.95, 2.0)}
    beliefs = read(
        Evidence.sum(
            agreed(intent, rate=rate, n=n, kind=kind) for intent, (rate, n) in told.items() for kind in ("good", "bad")
        )
    )
    assert beliefs.intents() == [(Domain.CODE, intent) for intent in sorted(told)]
    factors = {intent: beliefs.intent_factor(Domain.CODE, intent, Signal.GRAPH) for intent in told}
    overall = (0.8 * 400 + 0.6 * 400 + 0.95 * 2) / 802
    for intent in ("debug", "browse"):
        rate, factor = told[intent][0], factors[intent]
        assert factor is not None
        plain = rate / (1.0 - rate) / (overall / (1.0 - overall))
        assert factor.mean == pytest.approx(plain, rel=0.08)
        low, high = factor.interval(0.9)
        assert low < plain < high
        assert factor.observations == pytest.approx(800.0)
        assert confidence(factor.observations, halfway=10.0) > 0.98
    rare = factors["rare"]
    assert rare is not None
    assert 1.0 < rare.mean < 0.5 * (0.95 / 0.05) / (overall / (1.0 - overall))
    assert beliefs.intent_factor(Domain.CODE, "debug", Signal.TRUST) is None
    assert beliefs.intent_factor(Domain.HISTORY, "debug", Signal.GRAPH) is None


@pytest.mark.parametrize(
    ("a", "b"), [((3.0, 8.0), (5.0, 4.0)), ((40.0, 12.0), (6.0, 90.0)), ((300.0, 500.0), (100.0, 20.0))]
)
def test_an_intents_interval_and_draws_are_those_of_the_ratio(a: tuple[float, float], b: tuple[float, float]) -> None:
    """LRN-5: against a million draws of both Betas by scipy."""
    expected = np.array([0.4, -0.2])
    factor = IntentFactor(np.array(a), np.array(b), expected)
    rng = np.random.default_rng(7)
    rates = np.stack([stats.beta(*pair).rvs(1_000_000, random_state=rng) for pair in zip(a, b, strict=True)])
    log = np.mean(np.log(rates / (1.0 - rates)) - expected[:, None], axis=0)
    for ours, theirs in zip(factor.interval(0.9), np.quantile(log, [0.05, 0.95]), strict=True):
        assert math.log(ours) == pytest.approx(theirs, abs=0.06 * log.std())
    drawn = [math.log(factor.sample(rng)) for _ in range(4_000)]
    assert stats.ks_2samp(drawn, log[:100_000]).pvalue > 1e-3
