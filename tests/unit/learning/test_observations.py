"""LRN-4: what one outcome writes where."""

import math

import pytest

from pipelines.domain.documents import Domain
from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Scope
from pipelines.learning.evidence import MICRO, Evidence, EvidenceKey, UsageKey
from pipelines.learning.observations import Tally, observe_outcome, outcome_evidence

HASH = ContentHash("c" * 64)
OUTCOME = {
    "day": 3,
    "scope": Scope(Domain.CODE, "m", "a"),
    "intent": "debug",
    "signals": {"vector": 0.75},
    "score": 0.5,
    "content_hash": HASH,
    "good": True,
    "weight": 1.0,
    "bins": 20,
}


@pytest.mark.parametrize(
    ("good", "weight", "expected"),
    [(True, 1.0, (0.75, 0.25)), (False, 1.0, (0.25, 0.75)), (True, 0.2, (0.15, 0.05)), (False, 0.2, (0.05, 0.15))],
)
def test_agreement_is_counted_by_kind_of_outcome(good: bool, weight: float, expected: tuple[float, float]) -> None:
    """LRN-4: good adds s for and 1 − s against, bad the other way round, scaled by the weight, in Betas apart."""
    counts = outcome_evidence(**{**OUTCOME, "good": good, "weight": weight}).counts
    leaf = (3, "code", "m", "a", "debug", "signal.vector.good" if good else "signal.vector.bad")
    assert [counts[EvidenceKey(*leaf, bin_)] for bin_ in ("for", "against")] == [round(x * MICRO) for x in expected]
    other = "signal.vector.bad" if good else "signal.vector.good"
    assert not [key for key in counts if key.parameter == other]


@pytest.mark.parametrize(("score", "index"), [(0.0, 0), (0.049, 0), (0.05, 1), (0.999, 19), (1.0, 19)])
def test_the_score_falls_in_one_bin_with_its_outcome(score: float, index: int) -> None:
    """CON-8."""
    counts = outcome_evidence(**{**OUTCOME, "score": score, "good": False}).counts
    bins = {key.bin: micro for key, micro in counts.items() if key.parameter == "relevance"}
    assert bins == {f"{index:02d}/20.bad": MICRO}


@pytest.mark.parametrize(("good", "bin_"), [(True, "positive"), (False, "negative")])
def test_usage_is_kept_under_the_content_hash_alone(good: bool, bin_: str) -> None:
    """FBK-6, ARC-4."""
    assert outcome_evidence(**{**OUTCOME, "good": good}).usage == {UsageKey(3, HASH, bin_): MICRO}


def test_a_signal_that_weft_does_not_know_is_passed_over() -> None:
    """LRN-1: names from the wire do not widen the table."""
    assert outcome_evidence(**{**OUTCOME, "signals": {"vector": 0.75, "oracle": 1.0}}) == outcome_evidence(**OUTCOME)


def test_an_outcome_of_no_weight_leaves_nothing() -> None:
    """LRN-1: zero masses are no evidence."""
    assert outcome_evidence(**{**OUTCOME, "weight": 0.0}).is_empty


@pytest.mark.parametrize(
    "wrong",
    [
        {"signals": {"vector": 1.01}},
        {"signals": {"vector": math.nan}},
        {"signals": {"oracle": -1.0}},
        {"score": -0.1},
        {"score": math.nan},
        {"weight": -1.0},
        {"weight": math.inf},
        {"weight": math.nan},
    ],
    ids=str,
)
def test_a_value_out_of_range_is_refused_and_nothing_is_added(wrong: dict) -> None:
    """LRN-4, FBK-3."""
    tally = Tally()
    with pytest.raises(ValueError, match="expected"):
        observe_outcome(tally, **{**OUTCOME, **wrong})
    assert tally.freeze() == Evidence()


def test_a_frozen_tally_does_not_follow_the_tally() -> None:
    """LRN-1: evidence is a value."""
    tally = Tally()
    observe_outcome(tally, **OUTCOME)
    first = tally.freeze()
    observe_outcome(tally, **OUTCOME)
    assert tally.freeze() == first + first
