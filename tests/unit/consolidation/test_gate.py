"""Whether a night may go live: by rankings, or by weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.nights import improved
from weft.consolidation.settings import MovementSettings, ShadowSettings
from weft.consolidation.steps.gate import (
    Decision,
    GateVerdict,
    jaccard,
    judge_movement,
    judge_rankings,
    kendall_tau,
    weighed,
)
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.ranking import Signal, WeightBelief

SHADOW = ShadowSettings(safe_tau=0.85, safe_jaccard=0.80, monitored_tau=0.60)
MOVEMENT = MovementSettings(safe=0.10, monitored=0.30)
TEN = [ContentHash(name) for name in "abcdefghij"]

rankings = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)


def weights(**means: float) -> dict[Domain, dict[Signal, WeightBelief]]:
    return {Domain.CODE: {Signal(name): WeightBelief(mean, mean, mean, 0.0, "prior") for name, mean in means.items()}}


def swapped(ranking: list[ContentHash], *pairs: tuple[int, int]) -> list[ContentHash]:
    changed = list(ranking)
    for left, right in pairs:
        changed[left], changed[right] = changed[right], changed[left]
    return changed


def test_unchanged_rankings_are_safe() -> None:
    """EVA-7: tau 1 and Jaccard 1 go live."""
    verdict = judge_rankings([TEN, TEN], [TEN, TEN], SHADOW)
    assert verdict.decision is Decision.SAFE
    assert verdict.figures == {"kendall_tau": 1.0, "jaccard": 1.0, "queries": 2.0}


def test_a_few_changed_places_go_live_under_watch() -> None:
    """EVA-7: tau between 0.60 and 0.85 goes live, marked."""
    adjacent = [
        (start, start + 1) for start in range(0, 10, 2)
    ]  # 5 of 45 pairs turn round: tau = 1 - 2 * 5 / 45 = .778
    verdict = judge_rankings([TEN], [swapped(TEN, *adjacent)], SHADOW)
    assert verdict.figures["kendall_tau"] == pytest.approx(1 - 2 * 5 / 45)
    assert verdict.decision is Decision.MONITORED
    assert verdict.decision.goes_live


def test_the_same_order_of_too_many_strangers_is_not_safe() -> None:
    """EVA-7: both bounds must hold for safety; 7 of 13 in common is a Jaccard of .54."""
    verdict = judge_rankings([TEN], [[*TEN[:7], *(ContentHash(name) for name in "xyz")]], SHADOW)
    assert verdict.figures["jaccard"] == pytest.approx(7 / 13)
    assert verdict.decision is not Decision.SAFE


def test_reversed_rankings_wait_for_a_person() -> None:
    """EVA-7, ARC-8: below 0.60 nothing goes live by itself."""
    verdict = judge_rankings([TEN], [TEN[::-1]], SHADOW)
    assert verdict.figures["kendall_tau"] == pytest.approx(-1.0)
    assert not verdict.decision.goes_live


def test_only_the_first_ranks_count() -> None:
    """EVA-7: what stands below the depth is not shown and does not count."""
    deeper = [*TEN, ContentHash("k"), ContentHash("l")]
    assert judge_rankings([deeper], [swapped(deeper, (10, 11))], SHADOW).decision is Decision.SAFE


def test_comparing_no_queries_is_refused() -> None:
    """EVA-7: silence is not safety."""
    with pytest.raises(ValueError, match="found 0 and 0"):
        judge_rankings([], [], SHADOW)


@pytest.mark.parametrize(
    ("moved", "decision"), [(0.10, Decision.SAFE), (0.25, Decision.MONITORED), (0.35, Decision.REVIEW)]
)
def test_without_queries_the_weights_themselves_are_judged(moved: float, decision: Decision) -> None:
    """EVA-7: the share of the score that changed hands decides."""
    verdict = judge_movement(weights(vector=0.5, graph=0.5), weights(vector=0.5 + moved, graph=0.5 - moved), MOVEMENT)
    assert verdict.figures["movement"] == pytest.approx(moved)
    assert verdict.decision is decision


@given(rankings, rankings)
def test_agreement_is_symmetric_and_bounded(left: list[ContentHash], right: list[ContentHash]) -> None:
    """EVA-7: neither side is privileged, and 1 is reached by equal rankings."""
    assert kendall_tau(left, right) == pytest.approx(kendall_tau(right, left))
    assert jaccard(left, right) == jaccard(right, left)
    assert -1.0 <= kendall_tau(left, right) <= 1.0 + 1e-12
    assert 0.0 <= jaccard(left, right) <= 1.0
    assert (kendall_tau(left, left), jaccard(left, left)) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("decision", "low", "high", "expected"),
    [
        (Decision.REVIEW, 0.01, 0.03, Decision.MONITORED),  # shown to be better: need not wait
        (Decision.REVIEW, -0.01, 0.03, Decision.REVIEW),  # not shown either way: the movement decides
        (Decision.SAFE, -0.03, -0.01, Decision.REVIEW),  # shown to be worse: waits, however little moved
        (Decision.SAFE, 0.01, 0.03, Decision.SAFE),
    ],
)
def test_a_measured_difference_has_the_last_word(
    decision: Decision, low: float, high: float, expected: Decision
) -> None:
    """EVA-7: how far rankings moved does not say in which direction."""
    measured = improved("ndcg_at_10", 0.5, 0.5 + (low + high) / 2, reach=(high - low) / 2, questions=300)
    assert weighed(GateVerdict(decision, "moved"), measured).decision is expected


@pytest.mark.parametrize("decision", Decision)
def test_what_a_query_or_two_seem_to_show_changes_no_decision(decision: Decision) -> None:
    """EVA-7, EVA-10: their interval leaves 0 out, whatever they are."""
    for gain in (0.2, -0.2):
        few = replace(improved("ndcg_at_10", 0.5, 0.5 + gain, reach=0.1, questions=2), significant=False)
        assert weighed(GateVerdict(decision, "moved"), few).decision is decision
