"""LRN-3, LRN-5: floods and outliers on read, and what an intent changes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.outcomes import outcome_evidence
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Scope, Signal
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import MICRO, Evidence
from weft.learning.pooling.agreement import read_agreement
from weft.learning.pooling.daily import DailyMasses, trusted_shares
from weft.learning.pooling.gathering import SIGNALS, gathered
from weft.learning.recency import Discount, capped_share
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
BOUNDS = PRIORS.robustness
DAY = 100
NOW = DAY * 86_400.0
ALL = frozenset(Signal)


def linked(
    value: float, weight: float, *, day: int = DAY, agent: str = "*", intent: str = "*", good: bool = True
) -> Evidence:
    return outcome_evidence(
        day=day,
        scope=Scope(Domain.CODE, agent=agent),
        intent=intent,
        signals={"graph": value},
        score=0.5,
        content_hash=ContentHash("a" * 64),
        good=good,
        weight=weight,
    )


def daily(*days: tuple[float, float]) -> DailyMasses:
    """One parameter of one node: observations for and against, day by day."""
    micro = np.array([round(side * MICRO) for pair in days for side in pair], dtype=np.int64)
    numbers = np.repeat(np.arange(len(days)), 2)
    return DailyMasses.of(np.zeros(2 * len(days), dtype=np.int64), numbers, micro, np.tile([False, True], len(days)))


def test_a_day_counts_up_to_its_cap() -> None:
    """LRN-3: a thousand identical events of one source count as the cap."""
    shares = trusted_shares(daily((5 * BOUNDS.daily_cap, 0.0), (20.0, 0.0)), BOUNDS, daily_cap=BOUNDS.daily_cap)
    assert shares.tolist() == [0.2, 1.0]
    cap, flood = (
        read_beliefs(PRIORS, linked(1.0, times * BOUNDS.daily_cap, agent="one"), now=NOW) for times in (1, 50)
    )
    scope = Scope(Domain.CODE, agent="one")
    assert flood.weights(scope, ALL)[Signal.GRAPH].mean == pytest.approx(cap.weights(scope, ALL)[Signal.GRAPH].mean)


def test_a_flood_spread_over_days_counts_up_to_the_effective_cap() -> None:
    """LRN-3: drift protection: the surplus blends back to the prior."""
    shares = capped_share(np.array([0.0, 10.0, 8000.0]), 2000.0)
    assert shares.tolist() == [1.0, 1.0, 0.25]
    days = Evidence.sum(linked(1.0, BOUNDS.daily_cap, day=day, agent="one") for day in range(DAY - 20, DAY + 1))
    agreement = read_agreement(PRIORS, days, DAY)
    for scope in (Scope(Domain.CODE), Scope(Domain.CODE, agent="one")):
        posterior = agreement.posterior(agreement.node(scope))
        place = SIGNALS.index(Signal.GRAPH)
        strength = float(posterior.a[place, 0] + posterior.b[place, 0])
        assert strength <= BOUNDS.effective_cap + PRIORS.pooling.maximum
    assert float(posterior.n_effective[place]) >= BOUNDS.effective_cap


def test_a_day_out_of_character_counts_less_and_is_not_lost() -> None:
    """LRN-3: |z| > 3 against all other days: it counts 3/|z|; the evidence keeps its whole mass."""
    usual = [(70.0, 30.0)] * 5
    shares = trusted_shares(daily(*usual, (5.0, 95.0)), BOUNDS, daily_cap=BOUNDS.daily_cap)
    assert shares[:5].tolist() == [1.0] * 5
    believed = 351.0 / 502.0
    deviation = math.sqrt(believed * (1.0 - believed) * (1 / 100 + 1 / 502))
    assert shares[5] == pytest.approx(3.0 * deviation / (believed - 0.05))
    assert trusted_shares(daily(*usual, (64.0, 36.0)), BOUNDS, daily_cap=BOUNDS.daily_cap).tolist() == [1.0] * 6


def test_nothing_is_out_of_character_before_there_is_any() -> None:
    """LRN-3: with enough evidence behind it."""
    assert trusted_shares(daily((0.0, 20.0), (10.0, 2.0)), BOUNDS, daily_cap=BOUNDS.daily_cap).tolist() == [1.0, 1.0]
    assert trusted_shares(daily(), BOUNDS, daily_cap=BOUNDS.daily_cap).tolist() == []


def test_bounds_hold_on_read_alone() -> None:
    """LRN-3, ARC-1: merging floods is still addition; what counts is decided when it is read."""
    flood = linked(1.0, 10 * BOUNDS.daily_cap)
    (found, _), discount = gathered(flood + flood, BOUNDS), Discount(DAY, 30.0)
    assert sum((flood + flood).usage.values()) == round(20 * BOUNDS.daily_cap) * MICRO
    counted = found.observed(np.zeros(len(found.paths), dtype=np.int64), 1, discount)
    assert sum(side.sum() for side in counted) == BOUNDS.daily_cap


def test_an_intent_multiplies_the_odds_of_agreement_in_its_domain() -> None:
    """LRN-5: a signal that speaks truer under an intent weighs more there, for every agent; elsewhere nothing moves."""
    evidence = Evidence.sum(
        linked(value, 100.0, intent=intent, agent=agent, good=good)
        for intent, rate in (("debug", 0.85), ("browse", 0.55))
        for agent in ("one", "two")
        for good, value in ((True, rate), (False, 1.0 - rate))
    )
    beliefs = read_beliefs(PRIORS, evidence, now=NOW)

    def weight(intent: str, agent: str = "one", domain: Domain = Domain.CODE) -> float:
        return beliefs.weights(Scope(domain, agent=agent, intent=intent), ALL)[Signal.GRAPH].mean

    assert weight("browse") < weight("*") < weight("debug")
    assert weight("debug", "unseen") > weight("*", "unseen")
    assert weight("unheard of") == weight("*")
    assert weight("debug", domain=Domain.HISTORY) == weight("*", domain=Domain.HISTORY)
    drawn = beliefs.sampled_weights(Scope(Domain.CODE, intent="debug"), ALL, np.random.default_rng(1))
    assert math.fsum(drawn.values()) == pytest.approx(1.0)


def test_the_strength_of_a_belief_is_not_changed_by_an_intent() -> None:
    """LRN-5: a modifier moves the mean; a + b stays."""
    evidence = linked(0.9, 50.0, intent="debug") + linked(0.5, 50.0, intent="browse")
    agreement = read_agreement(PRIORS, evidence, DAY)
    node = agreement.node(Scope(Domain.CODE))
    plain, debug = agreement.posterior(node), agreement.posterior(node, "debug")
    assert debug.a + debug.b == pytest.approx(plain.a + plain.b)
    odds = (debug.a / debug.b) / (plain.a / plain.b)
    place = SIGNALS.index(Signal.GRAPH)
    assert odds[place, 0] > 1.0
    assert np.delete(odds, place, axis=0) == pytest.approx(np.ones((len(SIGNALS) - 1, 2)))
