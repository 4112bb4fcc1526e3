"""LRN-12: which changes of belief are more than chance makes, and in which order people read of them."""

from __future__ import annotations

import pytest
from scipy.stats import norm

from tests.support.nights import a_day
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import Evidence
from weft.learning.reading import BeliefChange, Reading, moves, read_all
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
LEVEL = PRIORS.interval.level


def changes(evidence: Evidence) -> list[BeliefChange]:
    old, new = (read_beliefs(PRIORS, each, now=0.0) for each in (Evidence(), evidence))
    return moves(*(read_all(each, PRIORS, new.scopes()) for each in (old, new)), level=LEVEL)


def reading(mean: float, low: float | None, high: float | None, parameter: str = "a") -> Reading:
    return Reading("weight", "code", parameter, mean, low, high, 5.0, 0.5)


def test_two_verdicts_move_nothing_beyond_chance_and_two_thousand_do() -> None:
    """LRN-12: after few, what moved is shown and not taken for news; after many, the surest stand first."""
    few, many = changes(a_day(0, outcomes=2)), changes(a_day(0, outcomes=2000))
    assert few
    assert not any(change.beyond_chance for change in few)
    beyond = [change.beyond_chance for change in many]
    assert any(beyond)
    assert beyond == sorted(beyond, reverse=True)
    assert [change.certainty for change in many] == sorted((change.certainty for change in many), reverse=True)


def test_a_change_is_as_sure_as_the_surer_of_both_states() -> None:
    """LRN-12: from .5 to .6, the latter known to within .05 with 90 %: two standard errors, whichever came first."""
    wide, narrow = reading(0.5, 0.1, 0.9), reading(0.6, 0.55, 0.65)
    expected = norm.cdf(0.1 / 0.05 * norm.ppf(0.95))
    for pair in ((wide, narrow), (narrow, wide)):
        change = BeliefChange(*pair, LEVEL)
        assert change.certainty == pytest.approx(expected)
        assert change.beyond_chance
    assert not BeliefChange(wide, reading(0.54, 0.49, 0.6), LEVEL).beyond_chance


def test_what_has_no_interval_or_no_counterpart_is_not_sure() -> None:
    """LRN-12: such as the bound that an agent acts from, or a lesson that was not heard of before."""
    bare = BeliefChange(reading(0.5, None, None), reading(0.9, None, None), LEVEL)
    fresh = BeliefChange(None, reading(0.9, 0.8, 1.0), LEVEL)
    assert (bare.certainty, fresh.certainty) == (0.5, 0.5)


def test_a_belief_that_became_certain_is_surest() -> None:
    """LRN-12: an interval of no width leaves no doubt, and is no division by 0."""
    sure = BeliefChange(reading(0.5, 0.4, 0.6), reading(0.0, 0.0, 0.0), LEVEL)
    assert sure.certainty == 1.0
