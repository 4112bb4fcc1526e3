"""LRN-4: what one outcome writes where."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from tests.support.outcomes import observe_outcome, outcome_evidence
from weft.domain.chunks import MadeBy
from weft.domain.documents import Domain
from weft.domain.ids import ContentHash
from weft.domain.matching import MatchFeatures
from weft.domain.ranking import Scope
from weft.learning.evidence import MICRO, Evidence, EvidenceKey
from weft.learning.observe.outcomes import OutcomeScope
from weft.learning.observe.tallies import Tally
from weft.learning.uses import UsageKey

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


class Seen(NamedTuple):
    """A result as it was shown."""

    signals: dict[str, float]
    domain: Domain = Domain.CODE
    content_hash: str = HASH
    score: float | None = None
    made: MadeBy | None = None
    rank: int = 1
    match: MatchFeatures | None = None
    precedent: float | None = None


def noted(result: Seen, page: Sequence[Seen], *, good: bool = True, slope: float = 0.0) -> dict[str, float]:
    """Mass for each parameter after one outcome of weight 1."""
    tally = Tally()
    tally.note(result, OutcomeScope("*", "*", "*", "", slope=slope), day=3, good=good, weight=1.0, page=page)
    return {key.parameter: mass / MICRO for key, mass in tally.freeze().counts.items() if key.bin == "for"}


def test_what_was_chosen_is_measured_against_what_was_shown_beside() -> None:
    """LRN-4, LRN-22: ½ + s − mean of the page, over what tells a signal, cut to [0, 1]; the rest is bad, and lower."""
    page = [Seen({"vector": 0.9, "lexical": 1.0, "trust": 0.7}), Seen({"vector": 0.3, "lexical": 0.0, "trust": 0.7})]
    page.append(Seen({"vector": 0.3, "lexical": 0.2}))
    mass = noted(page[0], page)
    chosen = {"vector": 0.5 + 0.9 - 0.5, "lexical": 1.0, "trust": 0.5}
    beside = {"vector": 0.5 - 0.4 / 2, "lexical": 0.5 - 0.6 / 2, "trust": 0.5}
    for kind, expected in (("good", chosen), ("bad", {name: 1.0 - value for name, value in beside.items()})):
        assert {name: mass.get(f"signal.{name}.{kind}", 0.0) for name in expected} == pytest.approx(expected, abs=1e-6)
        assert mass[f"product.vector.lexical.{kind}"] == pytest.approx(
            (0.9 * 1.0 + 0.3 * 0.1 + 0.3 * 0.3) / 3, abs=1e-6
        )
    assert noted(page[0], page, good=False) == {}


@pytest.mark.parametrize(("slope", "chosen"), [(0.0, 0.7), (0.5, 0.5 + 0.5 * 0.02), (1e9, 0.7)])
def test_a_choice_of_the_first_says_what_was_expected_of_it(slope: float, chosen: float) -> None:
    """LRN-22: ½ + slope · covariance with the score, no higher than its own score is; 0 takes it as any other."""
    page = [Seen({"vector": 0.8}, score=0.5), Seen({"vector": 0.4}, score=0.3, content_hash="ef" * 32)]
    assert noted(page[0], page, slope=slope)["signal.vector.good"] == pytest.approx(chosen, abs=1e-5)
    assert noted(page[1], page, slope=slope)["signal.vector.good"] == pytest.approx(0.3, abs=1e-5)
    equal = [Seen({"vector": 0.8}, score=0.5), Seen({"vector": 0.4}, score=0.5, content_hash="ef" * 32)]
    assert noted(equal[0], equal, slope=slope)["signal.vector.good"] == pytest.approx(0.7, abs=1e-5)


@pytest.mark.parametrize("page", [(), [Seen({"vector": 0.9})]], ids=["not compared", "alone"])
def test_what_was_shown_alone_counts_as_it_is(page: Sequence[Seen]) -> None:
    """LRN-4: there is nothing to measure it against."""
    assert noted(Seen({"vector": 0.9}), page)["signal.vector.good"] == 0.9


def test_what_a_whole_page_has_in_common_moves_no_signal_for_or_against() -> None:
    """LRN-4: however well everything matched, and whatever came of it."""
    page = [Seen({"vector": 0.8, "lexical": value}) for value in (0.0, 1.0)]
    assert {noted(page[0], page)[f"signal.vector.{kind}"] for kind in ("good", "bad")} == {0.5}


@pytest.mark.parametrize(("precedents", "left"), [((0.5, None), 1.0), ((0.75, 0.5), 0.5), ((0.625, 0.125), 0.25)])
def test_what_precedent_put_in_order_tells_less_of_signals(precedents: tuple[float, float], left: float) -> None:
    """LRN-4: as far as the page was left open; what came of the content itself counts in full."""
    page = [
        Seen({"vector": value, "graph": 0.5}, precedent=told)
        for value, told in zip((0.75, 0.25), precedents, strict=True)
    ]
    found = noted(page[0], page)
    assert found["signal.vector.good"] == pytest.approx(0.75 * left, abs=1e-6)
    assert found["product.vector.vector.good"] == pytest.approx((0.75**2 + 0.25**2) / 2 * left, abs=1e-6)
    assert found["signal.graph.good"] == pytest.approx(0.5 * left, abs=1e-6)
    assert noted(page[0], ())["signal.vector.good"] == 0.75  # not compared: as it is
