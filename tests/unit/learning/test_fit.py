"""CON-8: weights fitted to logged outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.logged_worlds import SAME_AS_LEXICAL, a_world, joined
from tests.support.nights import a_day
from weft.domain.documents import Domain
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import Evidence
from weft.learning.pooling.fit import better, counted, fit_weights, held_out
from weft.learning.pooling.fitted import FIT, FittedWeights
from weft.runtime.process import linear_algebra_threads
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
RULES = PRIORS.signals
STATED = {
    domain: {signal: weight / sum(weights.values()) for signal, weight in weights.items()}
    for domain, weights in RULES.weights.items()
}
DAY = 20_000


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """As a night fits: threads of small products wait for one another."""
    with linear_algebra_threads(1):
        yield


def shares(fitted: FittedWeights, domain: Domain = Domain.CODE) -> dict[Signal, float]:
    fit = fitted.by_domain[domain]
    return dict(zip(fit.signals, fit.shares.tolist(), strict=True))


def test_the_fit_finds_what_results_are_good_by() -> None:
    """CON-8: though pages were arranged by other weights, and a signal that says nothing of its own goes along."""
    found = shares(fit_weights(a_world(PRIORS, questions=3_000), RULES, STATED))
    assert found[Signal.LEXICAL] == pytest.approx(2.0 / 3.0, abs=0.12)
    assert found[Signal.LATE_INTERACTION] == pytest.approx(1.0 / 3.0, abs=0.1)
    assert found[SAME_AS_LEXICAL] < 0.12


def test_more_outcomes_make_the_fit_surer_and_nearer() -> None:
    """CON-8: its covariance shrinks as outcomes come in, and it is shrunk to the stated weights while they are few."""
    few, many = (fit_weights(a_world(PRIORS, questions=n), RULES, STATED) for n in (25, 1_000))
    stated = STATED[Domain.CODE]
    apart = [sum(abs(share - stated[signal]) for signal, share in shares(one).items()) for one in (few, many)]
    assert apart[0] < 0.5 * apart[1]
    assert many.by_domain[Domain.CODE].covariance.trace() < few.by_domain[Domain.CODE].covariance.trace() * 4


@pytest.mark.parametrize("seed", range(3))
def test_domains_share_what_they_have_in_common(seed: int) -> None:
    """CON-8: a domain of which little was logged is nearer to what is so in another than it would be alone."""
    little = a_world(PRIORS, questions=25, domain=Domain.GENERAL, seed=seed)
    alone = shares(fit_weights(little, RULES, STATED), Domain.GENERAL)
    together = joined(little, a_world(PRIORS, questions=600))
    pooled = shares(fit_weights(together, RULES, STATED), Domain.GENERAL)
    elsewhere = shares(fit_weights(together, RULES, STATED), Domain.CODE)
    apart = (abs(each[Signal.LEXICAL] - elsewhere[Signal.LEXICAL]) for each in (alone, pooled))
    assert next(apart) > 1.5 * next(apart)


@pytest.mark.parametrize("seed", range(5))
def test_the_fit_wins_where_it_orders_better_and_not_by_chance(seed: int) -> None:
    """CON-8: on questions that it has not seen; where outcomes follow no signal, counted weights stay."""
    telling = a_world(PRIORS, questions=150, seed=seed)
    apart = np.random.default_rng([seed, 1])  # chance wins in about one world of ninety: in none of these
    chance = replace(telling, good=apart.random(len(telling)) < 0.3)
    wins = [
        better(held_out(world, RULES, STATED, deviation=1.0, folds=5), z=3.0)[Domain.CODE]
        for world in (telling, chance)
    ]
    assert wins == [True, False]


def test_nobody_outvotes_everybody_else() -> None:
    """CON-8, LRN-3: a principal who judges ten times as much as all others together makes up a tenth at most."""
    honest = a_world(PRIORS, questions=200)
    flood = a_world(PRIORS, questions=2_000, true={Signal.FRESHNESS: 3.0}, seed=9)
    flood = replace(flood, principal=np.zeros(len(flood), dtype=np.int64))
    mass = counted(joined(honest, flood), RULES.fit, correlation=0.0)
    assert mass[len(honest) :].sum() <= RULES.fit.most * 1.01 * mass.sum()
    found = shares(fit_weights(joined(honest, flood), RULES, STATED))
    assert found[Signal.LEXICAL] > 2.0 * found[Signal.FRESHNESS]


def test_rarely_shown_results_count_for_those_that_were_not_shown() -> None:
    """CON-8: outcomes are weighed by the inverse of the propensity that was logged, at most ten times."""
    world = a_world(PRIORS, questions=10)
    world = replace(world, principal=np.arange(len(world)))
    rare = replace(world, propensity=np.where(np.arange(len(world)) == 0, 0.01, 1.0))
    mass = counted(rare, RULES.fit, correlation=0.0)
    assert mass[0] == pytest.approx(10.0 * mass[50])


def test_too_little_is_no_fit() -> None:
    """CON-8: below the least, and of nothing at all."""
    world = a_world(PRIORS, questions=5)
    assert fit_weights(world, RULES, STATED).by_domain == {}
    assert fit_weights(world.rows(np.zeros(len(world), dtype=bool)), RULES, STATED).by_domain == {}


@pytest.fixture(scope="module")
def fitted() -> FittedWeights:
    told = [Signal.VECTOR, Signal.LEXICAL, Signal.LATE_INTERACTION, Signal.FRESHNESS, Signal.TRUST]
    beliefs = read_beliefs(PRIORS, Evidence(), now=DAY * 86_400.0)
    now = {domain: {s: b.mean for s, b in beliefs.weights(Scope(domain), told).items()} for domain in Domain}
    world = a_world(PRIORS, questions=300)
    silent = [at for at, signal in enumerate(Signal) if signal not in told]
    values = world.values.copy()
    values[:, silent] = np.nan
    return fit_weights(replace(world, values=values), RULES, now)


def test_a_version_reads_back_to_equal_bits(fitted: FittedWeights) -> None:
    """CON-8, ARC-2: what a learned version holds."""
    assert FittedWeights.from_table(fitted.to_table()).to_table() == fitted.to_table()
    with pytest.raises(ValueError, match="fitted weights by domain"):
        FittedWeights.from_table("[]")


def test_fitted_weights_hold_until_something_is_streamed(fitted: FittedWeights) -> None:
    """CON-8: they are what was fitted, name their level and interval, and move as far as counting moves."""
    active = fitted.by_domain[Domain.CODE].signals
    scope, now = Scope(Domain.CODE), DAY * 86_400.0
    counted_then = read_beliefs(PRIORS, Evidence(), now=now).weights(scope, active)
    believed = read_beliefs(PRIORS, Evidence(), now=now, fitted=fitted).weights(scope, active)
    for signal, share in shares(fitted).items():
        assert believed[signal].mean == pytest.approx(share, abs=1e-12)
        assert believed[signal].level == FIT
        assert believed[signal].low <= believed[signal].mean <= believed[signal].high
    later = a_day(DAY, outcomes=800, telling=Signal.TRUST)
    counted_now = read_beliefs(PRIORS, later, now=now).weights(scope, active)
    moved = read_beliefs(PRIORS, later, now=now, fitted=fitted).weights(scope, active)
    assert counted_now[Signal.TRUST].mean > counted_then[Signal.TRUST].mean + 0.05
    assert moved[Signal.TRUST].mean > believed[Signal.TRUST].mean + 0.02
    assert sum(belief.mean for belief in moved.values()) == pytest.approx(1.0)
    assert read_beliefs(PRIORS, later, now=now, fitted=fitted).weights(Scope(Domain.HISTORY), active) == read_beliefs(
        PRIORS, later, now=now
    ).weights(Scope(Domain.HISTORY), active)


@given(st.sets(st.sampled_from(list(Signal)), min_size=1), st.integers(0, 3))
def test_shares_and_draws_of_any_signals_are_shares(fitted: FittedWeights, active: set[Signal], seed: int) -> None:
    """CON-8, LRN-11: of whatever is active; draws average to the mean, and what weighs nothing draws nothing."""
    beliefs = read_beliefs(PRIORS, Evidence(), now=DAY * 86_400.0, fitted=fitted)
    scope = Scope(Domain.CODE)
    means = {signal: belief.mean for signal, belief in beliefs.weights(scope, active).items()}
    assert means.keys() == active
    assert sum(means.values()) == pytest.approx(1.0)
    one = beliefs.sampled_weights(scope, active, np.random.default_rng(seed))
    assert sum(one.values()) == pytest.approx(1.0)
    draws = beliefs.weight_draws(scope, active, 400)
    for signal, mean in means.items():
        assert draws[signal].mean() == pytest.approx(mean, abs=0.02)
        if mean == 0.0:
            assert not draws[signal].any()
