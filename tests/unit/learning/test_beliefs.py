"""What is read from evidence: LRN-2, LRN-4, LRN-5, LRN-6, FBK-6, RET-14."""

import math

import numpy as np
import pytest

from tests.support.outcomes import outcome_evidence
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import Evidence, day_of
from weft.learning.pooling.agreement import read_agreement
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
DAY = 86_400.0
ONE, OTHER = ContentHash("1" * 64), ContentHash("2" * 64)
ALL = list(Signal)


def _outcome(
    *, day: int = 0, good: bool = True, weight: float = 1.0, scope: Scope | None = None, **signals
) -> Evidence:
    return outcome_evidence(
        day=day,
        scope=scope or Scope(Domain.CODE),
        intent="*",
        signals=signals,
        score=0.5,
        content_hash=ONE,
        good=good,
        weight=weight,
    )


@pytest.mark.parametrize("domain", Domain)
def test_without_evidence_the_weights_are_those_of_the_priors(domain: Domain) -> None:
    """RET-14: the stated weights, normalised over the active signals."""
    active = [Signal.VECTOR, Signal.FRESHNESS, Signal.TRUST]
    stated = PRIORS.signals.weights[domain]
    weights = read_beliefs(PRIORS, Evidence(), now=0.0).weights(Scope(domain, "any", "one"), active)
    for signal in active:
        assert math.isclose(weights[signal].mean, stated[signal] / sum(stated[each] for each in active))
        assert (weights[signal].level, weights[signal].n_effective) == ("prior", 0.0)
        assert weights[signal].low < weights[signal].mean < weights[signal].high


def test_general_is_twice_as_unsure_as_the_others() -> None:
    """RET-14: twice the variance; a Beta's is m(1 − m)/(κ + 1)."""
    agreement = read_agreement(PRIORS, Evidence(), today=0)
    code, general = (agreement.posterior(agreement.node(Scope(domain))) for domain in (Domain.CODE, Domain.GENERAL))
    assert np.allclose(2.0 * (general.a + general.b + 1.0), code.a + code.b + 1.0)


def test_a_signal_that_separates_good_from_bad_gains_and_one_that_says_nothing_loses() -> None:
    """LRN-4: with nine bad outcomes for each good one, balanced by counting them apart."""
    good = _outcome(good=True, vector=0.9, lexical=0.5, weight=30.0)
    bad = _outcome(good=False, vector=0.1, lexical=0.5, weight=270.0)
    before = read_beliefs(PRIORS, Evidence(), now=0.0).weights(Scope(Domain.CODE), [Signal.VECTOR, Signal.LEXICAL])
    after = read_beliefs(PRIORS, good + bad, now=0.0).weights(Scope(Domain.CODE), [Signal.VECTOR, Signal.LEXICAL])
    assert before[Signal.VECTOR].mean == pytest.approx(0.5)
    assert after[Signal.VECTOR].mean > 0.85
    assert after[Signal.VECTOR].level == "domain"


def test_a_constant_signal_is_believed_to_say_nothing_however_rare_good_outcomes_are() -> None:
    """LRN-4: s for a good and 1 − s for a bad outcome average to one half, whatever their numbers."""
    evidence = _outcome(good=True, trust=0.9, vector=0.8, weight=5_000.0)
    evidence += _outcome(good=False, trust=0.9, vector=0.3, weight=50_000.0)
    weights = read_beliefs(PRIORS, evidence, now=0.0).weights(Scope(Domain.CODE), [Signal.TRUST, Signal.VECTOR])
    assert weights[Signal.TRUST].mean < 0.01


def test_where_no_signal_agrees_the_priors_rank() -> None:
    """LRN-4: agreement below one half is floored at weight 0; all at 0 falls back to the stated weights."""
    evidence = _outcome(good=True, vector=0.1, graph=0.1, weight=500.0)
    evidence += _outcome(good=False, vector=0.9, graph=0.9, weight=500.0)
    weights = read_beliefs(PRIORS, evidence, now=0.0).weights(Scope(Domain.CODE), [Signal.VECTOR, Signal.GRAPH])
    assert weights[Signal.VECTOR].mean == pytest.approx(0.35 / (0.35 + 0.15))


def test_intervals_narrow_with_evidence() -> None:
    """LRN-4."""
    evidence = _outcome(good=True, vector=0.8, lexical=0.7, weight=400.0)
    evidence += _outcome(good=False, vector=0.2, lexical=0.3, weight=400.0)
    few, many = (
        read_beliefs(PRIORS, each, now=0.0).weights(Scope(Domain.CODE), [Signal.VECTOR, Signal.LEXICAL])[Signal.VECTOR]
        for each in (Evidence(), evidence)
    )
    assert many.high - many.low < (few.high - few.low) / 3
    assert many.n_effective >= 800.0


def test_the_interval_holds_nine_of_ten_sampled_weights() -> None:
    """LRN-4, LRN-11: intervals and Thompson samples come from one posterior."""
    beliefs = read_beliefs(PRIORS, _outcome(good=True, vector=0.8, lexical=0.4, weight=20.0), now=0.0)
    scope, active = Scope(Domain.CODE), [Signal.VECTOR, Signal.LEXICAL, Signal.GRAPH]
    rng = np.random.default_rng(1)
    drawn = [beliefs.sampled_weights(scope, active, rng)[Signal.VECTOR] for _ in range(2000)]
    belief = beliefs.weights(scope, active)[Signal.VECTOR]
    inside = np.mean([belief.low <= weight <= belief.high for weight in drawn])
    assert inside == pytest.approx(0.9, abs=0.03)  # four standard deviations of each of the two samples


def test_the_same_seed_draws_the_same_weights() -> None:
    """ARC-9: exploration is repeatable."""
    beliefs = read_beliefs(PRIORS, Evidence(), now=0.0)
    first, second = (beliefs.sampled_weights(Scope(Domain.CODE), ALL, np.random.default_rng(3)) for _ in range(2))
    assert first == second


def test_evidence_of_a_half_life_ago_counts_half() -> None:
    """LRN-2: 30 days in the project; the same belief as half the mass today, but for the slower global level."""
    project = PRIORS.recency.model_copy(update={"global_half_life_days": PRIORS.recency.project_half_life_days})
    priors = PRIORS.model_copy(update={"recency": project})
    old = read_beliefs(priors, _outcome(day=0, vector=0.9, weight=80.0), now=30 * DAY)
    new = read_beliefs(priors, _outcome(day=30, vector=0.9, weight=40.0), now=30 * DAY)
    assert old.weights(Scope(Domain.CODE), ALL) == new.weights(Scope(Domain.CODE), ALL)


def test_evidence_from_the_future_counts_as_todays() -> None:
    """LRN-2: a producer's clock that runs ahead gains nothing."""
    ahead = read_beliefs(PRIORS, _outcome(day=9, vector=0.9, weight=40.0), now=0.0)
    today = read_beliefs(PRIORS, _outcome(day=0, vector=0.9, weight=40.0), now=0.0)
    assert ahead.weights(Scope(Domain.CODE), ALL) == today.weights(Scope(Domain.CODE), ALL)


def test_parameters_and_domains_of_other_versions_are_passed_over() -> None:
    """LRN-1: evidence written by another version of weft does not stop a search."""
    known = _outcome(vector=0.9, weight=40.0)
    foreign = {key._replace(parameter="signal.oracle.good"): mass for key, mass in known.counts.items()}
    elsewhere = {key._replace(domain="alchemy"): mass for key, mass in known.counts.items()}
    beliefs = read_beliefs(PRIORS, known + Evidence(foreign) + Evidence(elsewhere), now=0.0)
    assert beliefs.weights(Scope(Domain.CODE), ALL) == read_beliefs(PRIORS, known, now=0.0).weights(
        Scope(Domain.CODE), ALL
    )


def test_asking_again_costs_a_look_up() -> None:
    """LRN-13: the same value, not an equal one."""
    beliefs = read_beliefs(PRIORS, Evidence(), now=0.0)
    assert beliefs.weights(Scope(Domain.CODE), ALL) is beliefs.weights(Scope(Domain.CODE, "x", "y"), ALL)


def test_no_active_signal_is_refused() -> None:
    """RET-14."""
    with pytest.raises(ValueError, match="at least one active signal"):
        read_beliefs(PRIORS, Evidence(), now=0.0).weights(Scope(Domain.CODE), [])


def test_usage_follows_outcomes_and_forgets_within_weeks() -> None:
    """FBK-6: Beta(2 + good, 2 + bad), a week halves what was counted."""
    good = _outcome(weight=4.0)

    def usage(evidence: Evidence, *hashes: ContentHash, now: float = 0.0) -> list[float]:
        return read_beliefs(PRIORS, evidence, now=now).content_signals(hashes).usage.tolist()

    assert usage(Evidence(), ONE, OTHER) == [0.5, 0.5]
    assert usage(good, OTHER, ONE) == [0.5, (2 + 4) / (4 + 4)]
    assert usage(good, ONE, now=7 * DAY) == [(2 + 2) / (4 + 2)]
    assert usage(good + _outcome(good=False, weight=8.0), ONE) == [(2 + 4) / (4 + 12)]
    assert usage(good) == []


def test_freshness_is_the_mean_of_the_decay_and_not_the_decay_of_the_mean() -> None:
    """LRN-6: code, Gamma(2, 200) per hour: (200 / 400)² at 200 hours; e^(−200 · 2/200) would be .14."""
    beliefs = read_beliefs(PRIORS, Evidence(), now=0.0)
    assert beliefs.freshness(Domain.CODE, 200.0) == 0.25
    assert beliefs.freshness(Domain.CODE, -5.0) == 1.0
    assert beliefs.freshness(Domain.CODE, None) == PRIORS.decay.unknown_age


def test_freshness_of_many_is_that_of_each() -> None:
    """LRN-6."""
    beliefs = read_beliefs(PRIORS, Evidence(), now=0.0)
    ages = np.array([0.0, 10.0, np.nan, 1e5, -1.0])
    each = [beliefs.freshness(Domain.HISTORY, None if math.isnan(age) else age) for age in ages.tolist()]
    assert np.allclose(beliefs.freshness_many(Domain.HISTORY, ages), each, rtol=1e-14)


def test_freshness_agrees_with_samples_of_the_rate() -> None:
    """LRN-6: Monte Carlo over λ ~ Gamma(2, rate 500), e^(−λ · 300)."""
    rates = np.random.default_rng(2).gamma(2.0, 1.0 / 500.0, 200_000)
    beliefs = read_beliefs(PRIORS, Evidence(), now=0.0)
    assert beliefs.freshness(Domain.HISTORY, 300.0) == pytest.approx(np.exp(-rates * 300.0).mean(), abs=0.003)


def test_beliefs_change_with_the_day_and_not_within_it() -> None:
    """LRN-2: searches of one day agree."""
    evidence = _outcome(day=0, vector=0.9, weight=40.0)
    morning, evening, next_day = (
        read_beliefs(PRIORS, evidence, now=now).weights(Scope(Domain.CODE), ALL)
        for now in (DAY, 2 * DAY - 1.0, 2 * DAY)
    )
    assert morning == evening != next_day
    assert day_of(2 * DAY - 1.0) == 1
