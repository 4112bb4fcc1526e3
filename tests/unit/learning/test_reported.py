"""LRN-6, LRN-7, LRN-8, LRN-10: beliefs from what is reported outright, read from the one table."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from weft.domain.documents import Domain
from weft.domain.ranking import Scope
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import MICRO, Evidence
from weft.learning.families.gaussian_process import quality_masses
from weft.learning.families.survival import Survival, survival_masses
from weft.learning.families.threshold import Threshold, threshold_masses
from weft.learning.parameters import reported_evidence
from weft.learning.reported import Reported
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
DAY = 100
CODE = Scope(Domain.CODE)


def reported(*evidence: Evidence) -> Reported:
    return Reported(PRIORS, Evidence.sum(evidence), DAY)


def accuracy(age_hours: float, weight: float, *, accurate: bool) -> Counter[str]:
    return survival_masses(age_hours, accurate=accurate, weight=weight)


def test_documents_found_stale_make_their_domain_less_fresh() -> None:
    """LRN-6: what searches read as freshness is the posterior mean of e^(−λt) where there is evidence."""
    seen = accuracy(100.0, 30.0, accurate=False) + accuracy(10.0, 5.0, accurate=True)
    evidence = reported_evidence(DAY, CODE, "decay", seen)
    before, after = (read_beliefs(PRIORS, each, now=DAY * 86_400.0) for each in (Evidence(), evidence))
    prior = PRIORS.decay.domains[Domain.CODE]
    alone = Survival(prior.shape, prior.rate_hours).given(seen)
    assert after.freshness(Domain.CODE, 50.0) < alone.freshness(50.0) < before.freshness(Domain.CODE, 50.0)
    ages = np.array([1.0, 50.0, np.nan])
    many = after.freshness_many(Domain.CODE, ages)
    assert many[:2] == pytest.approx([after.freshness(Domain.CODE, age) for age in ages[:2]])
    assert many[2] == PRIORS.decay.unknown_age


def lived(domain: Domain, times: float, n: float) -> Evidence:
    """Documents of a domain of which half are still accurate at that many times its stated half-life."""
    prior = PRIORS.decay.domains[domain]
    age = times * Survival(prior.shape, prior.rate_hours).half_life(0.9)[1]
    seen = accuracy(age, n / 2.0, accurate=True) + accuracy(age, n / 2.0, accurate=False)
    return reported_evidence(DAY, Scope(domain), "decay", seen)


def test_decay_rates_of_a_domain_without_evidence_listen_to_the_others() -> None:
    """LRN-6: one that lives eight times as long moves the others less than half of the way, and three move them more.

    A domain with evidence of its own stands on that, and without any evidence the priors hold to the bit.
    """

    def moved(*evidence: Evidence, domain: Domain = Domain.HISTORY) -> float:
        half_lives = [each.decay(domain).half_life(0.9)[1] for each in (reported(*evidence), reported())]
        return math.log(half_lives[0] / half_lives[1]) / math.log(8.0)

    others = [lived(domain, 8.0, 90.0) for domain in Domain if domain != Domain.HISTORY]
    own = lived(Domain.HISTORY, 1.0, 90.0)
    one, three = moved(others[0]), moved(*others)
    assert 0.3 < one <= 0.5 < three < 1.0
    assert abs(moved(*others, own)) < 0.15
    prior = PRIORS.decay.domains[Domain.HISTORY]
    assert reported().decay(Domain.HISTORY).mean == Survival(prior.shape, prior.rate_hours).mean


def test_thresholds_of_a_domain_without_decisions_listen_to_the_others() -> None:
    """LRN-7: as decay rates do; without any decision the prior holds to the bit."""

    def reviews(domain: Domain, good_from: float) -> Evidence:
        grid = [(i + 0.5) / 20 for i in range(20)]
        each = (threshold_masses(c, good=c > good_from, weight=4.0) for c in grid)
        return reported_evidence(DAY, Scope(domain), "threshold", sum(each, Counter()))

    def moved(*evidence: Evidence) -> float:
        return (reported(*evidence).threshold(Domain.HISTORY).mean - 0.5) / 0.3

    others = [reviews(domain, 0.8) for domain in Domain if domain != Domain.HISTORY]
    one, three = moved(others[0]), moved(*others)
    assert 0.3 < one <= 0.5 < three < 1.0
    assert abs(moved(*others, reviews(Domain.HISTORY, 0.5))) < 0.15
    assert reported().threshold(Domain.HISTORY).mean == Threshold(PRIORS.thresholds).mean
    after = read_beliefs(PRIORS, Evidence.sum(others), now=DAY * 86_400.0)
    assert after.threshold_moved(Domain.HISTORY) == pytest.approx(0.3 * three)
    assert read_beliefs(PRIORS, Evidence(), now=0.0).threshold_moved(Domain.HISTORY) == 0.0


def test_evidence_in_the_table_is_the_evidence_that_was_reported() -> None:
    """LRN-1: through the table and back, nothing is lost; recency halves it after thirty days."""
    seen = accuracy(100.0, 4.0, accurate=False)
    today = reported(reported_evidence(DAY, CODE, "decay", seen)).decay(Domain.CODE)
    expected = Survival(2.0, 200.0).given(seen)
    assert (today.ages.tolist(), today.inaccurate.tolist()) == (expected.ages.tolist(), [4.0])
    older = reported(reported_evidence(DAY - 30, CODE, "decay", seen)).decay(Domain.CODE)
    assert (older.ages.tolist(), older.inaccurate.tolist()) == (expected.ages.tolist(), [2.0])


def test_reviews_move_the_threshold_of_their_domain_and_a_fifth_of_an_agents_own() -> None:
    """LRN-7: a domain hears all its agents; an agent's threshold is offset by a fifth of its own difference."""

    def reviews(agent: str, passed_from: float) -> Evidence:
        grid = [(i + 0.5) / 20 for i in range(20)]
        each = (threshold_masses(c, good=c > passed_from, weight=20.0) for c in grid)
        return reported_evidence(DAY, Scope(Domain.CODE, agent=agent), "threshold", sum(each, Counter()))

    read = reported(reviews("lenient", 0.3), reviews("strict", 0.7))
    domain = read.threshold(Domain.CODE)
    assert 0.4 < domain.mean < 0.6
    strict = read.threshold(Domain.CODE, "strict")
    assert strict.mean == pytest.approx(0.7, abs=0.03)
    acting = read.acting_threshold(Scope(Domain.CODE, agent="strict"))
    assert acting == pytest.approx(domain.mean + 0.2 * (strict.mean - domain.mean))
    assert read.acting_threshold(CODE) == domain.mean
    assert abs(read.threshold(Domain.HISTORY).mean - 0.5) < 0.05


def test_quality_is_the_models_and_shifted_for_an_agent() -> None:
    """LRN-8."""

    def turns(agent: str, quality: float) -> Evidence:
        seen = quality_masses(10, quality, weight=50.0)
        return reported_evidence(DAY, Scope(Domain.CODE, "large", agent), "quality", seen)

    read = reported(turns("one", 0.9), turns("two", 0.5))
    at = np.array([10.0])
    model, one, two, other = (
        float(read.quality(name, agent).predict(at)[0][0])
        for name, agent in (("large", "*"), ("large", "one"), ("large", "two"), ("small", "*"))
    )
    assert two < model < one
    assert model == pytest.approx(0.7, abs=0.03)
    assert other == pytest.approx(0.8 - 0.01)


def test_verifications_raise_and_lower_trust_by_source_and_by_model() -> None:
    """LRN-10: pooled: a source never verified hears the others a little, a model that never used one its source."""

    def verified(source: str, model: str, hits: int, misses: int) -> Evidence:
        seen = {"verified": hits * MICRO, "refuted": misses * MICRO}
        return reported_evidence(DAY, Scope(Domain.GENERAL, model), f"trust.{source}", seen)

    assert reported().trust_multiplier("blog") == PRIORS.trust.multiplier
    read = reported(verified("blog", "m", 10, 90), verified("paper", "m", 98, 2), verified("paper", "*", 20, 0))
    assert read.trust_multiplier("blog") < 0.5
    assert 1.0 < read.trust_multiplier("paper") <= PRIORS.trust.highest
    assert read.trust("blog", "m").mean < read.trust("unseen").mean < read.trust("paper", "m").mean
    assert read.trust("paper", "never") == read.trust("paper")
    low, high = read.trust("paper", "m").interval(0.9)
    assert low < read.trust("paper", "m").mean < high


def test_searches_trust_a_type_of_source_as_it_held_for_their_model() -> None:
    """LRN-10: one model's refutations weigh on its own searches more than on another's, and not on other types."""
    refuted = reported_evidence(DAY, Scope(Domain.GENERAL, "small"), "trust.blog", {"refuted": 60 * MICRO})
    held = reported_evidence(DAY, Scope(Domain.GENERAL, "large"), "trust.blog", {"verified": 60 * MICRO})
    read = read_beliefs(PRIORS, refuted + held, now=DAY * 86_400.0)
    small, any_model, large = (read.trust_multiplier("blog", model) for model in ("small", "*", "large"))
    assert small < any_model < large <= PRIORS.trust.highest
    assert read_beliefs(PRIORS, Evidence(), now=0.0).trust_multiplier("blog", "small") == PRIORS.trust.multiplier
