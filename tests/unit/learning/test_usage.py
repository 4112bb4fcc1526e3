"""FBK-6: what is known of contents by what became of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.domain.ids import ContentHash
from weft.learning.beliefs import read_beliefs
from weft.learning.evidence import Evidence
from weft.learning.families.beta import Beta
from weft.learning.observe.usage import NEVER, ContentSignals, read_usage
from weft.learning.observe.verdicts import VerdictBin
from weft.learning.uses import UsageKey
from weft.settings import load_settings

PRIORS = load_settings(environment={}).priors
PRIOR = PRIORS.usage
ONE, OTHER, NOBODY = (ContentHash(letter * 64) for letter in "abc")
MICRO = 1_000_000
TODAY = 100
HALF_LIFE = round(PRIOR.half_life_days)


def used(
    bins: dict[str, float],
    *,
    content: ContentHash = ONE,
    day: int = TODAY,
    question: str = "",
    principal: str = "",
) -> Evidence:
    keys = {bin_: UsageKey(day, content, bin_, principal, question) for bin_ in bins}
    return Evidence(usage={keys[bin_]: round(mass * MICRO) for bin_, mass in bins.items()})


def signals(*evidence: Evidence, of: tuple[ContentHash, ...] = (ONE,)) -> ContentSignals:
    return read_usage(PRIOR, Evidence.sum(evidence), TODAY).signals(of)


def test_the_half_life_is_the_one_that_was_asked_for() -> None:
    """FBK-6: seven days."""
    assert HALF_LIFE == PRIOR.half_life_days == 7


def test_the_usage_score_is_a_belief_with_its_uncertainty() -> None:
    """FBK-6: the mean and the deviation of Beta(prior + good, prior + bad)."""
    found = signals(used({"positive": 3.0, "negative": 1.5}))
    belief = Beta(PRIOR.positive + 3.0, PRIOR.negative + 1.5)
    assert found.usage[0] == pytest.approx(belief.mean)
    assert found.deviation[0] == pytest.approx(belief.variance**0.5)
    assert (found.positive[0], found.negative[0]) == (3.0, 1.5)


def test_a_half_life_later_everything_that_fades_counts_half() -> None:
    """FBK-6: decay is on read; citations are a count and stay."""
    bins = {"positive": 2.0, "negative": 4.0, "retrieval": 6.0, "inclusion": 8.0, "reference": 1.0}
    now, later = signals(used(bins)), signals(used(bins, day=TODAY - HALF_LIFE))
    for name in ("positive", "negative", "retrieval", "inclusion", "reference"):
        assert getattr(later, name)[0] == pytest.approx(getattr(now, name)[0] / 2)
    assert (later.citations[0], now.citations[0]) == (1.0, 1.0)
    assert (later.last_feedback[0], now.last_feedback[0]) == (TODAY - HALF_LIFE, TODAY)


@pytest.mark.parametrize("name", ["retrieval", "inclusion", "reference"])
def test_uses_are_moving_averages_of_daily_counts(name: str) -> None:
    """FBK-6: EMA(t) = α · EMA(t − 1) + (1 − α) · events of day t, day by day."""
    events = {0: 3, 1: 0, 2: 5, 40: 1, 100: 2}
    alpha, expected = 2.0 ** (-1.0 / HALF_LIFE), 0.0
    for day in range(TODAY + 1):
        expected = alpha * expected + (1.0 - alpha) * events.get(day, 0)
    found = signals(*(used({name: count}, day=day) for day, count in events.items()))
    assert getattr(found, name)[0] == pytest.approx(expected, abs=1e-6)


def test_a_steady_use_is_its_own_average() -> None:
    """FBK-6: three inclusions a day for a long time are three a day."""
    found = signals(*(used({"inclusion": 3.0}, day=day) for day in range(-100, TODAY + 1)))
    assert found.inclusion[0] == pytest.approx(3.0, rel=1e-3)


def test_contents_are_looked_up_in_one_go() -> None:
    """FBK-6: a row each, in the order asked, the prior's for those never heard of."""
    found = signals(used({"positive": 2.0}), used({"negative": 2.0}, content=OTHER), of=(NOBODY, OTHER, ONE, NOBODY))
    a, b = PRIOR.positive, PRIOR.negative
    assert found.usage.tolist() == [a / (a + b), a / (a + b + 2), (a + 2) / (a + b + 2), a / (a + b)]
    assert found.last_feedback.tolist() == [NEVER, TODAY, TODAY, NEVER]
    assert found.citations.tolist() == [0.0] * 4
    assert signals(of=()).usage.shape == (0,)


def test_being_retrieved_lowers_the_score_and_nothing_raises_it() -> None:
    """FBK-12: a use by itself is no outcome."""
    prior = PRIOR.positive / (PRIOR.positive + PRIOR.negative)
    assert signals(used({"retrieval": 50.0, "inclusion": 50.0, "reference": 50.0})).usage[0] == prior
    assert signals(used({"retrieval": 50.0, "negative": 5.0})).usage[0] < prior


def test_verdicts_on_one_result_are_outcomes_like_others() -> None:
    """FBK-6: right ones are good, wrong ones bad, each with the weight it was given."""
    good, bad = VerdictBin(True, 5, 0.5).name, VerdictBin(False, 9, None).name
    found = signals(used({good: 1.0, bad: 0.5, "positive": 2.0, "question:how?": 9.0}))
    assert (found.positive[0], found.negative[0]) == (3.0, 0.5)


def test_beliefs_read_the_same_table() -> None:
    """FBK-6: a row per content, whoever reads."""
    evidence = used({"positive": 3.0}) + used({"negative": 1.0}, content=OTHER)
    read = read_beliefs(PRIORS, evidence, now=TODAY * 86_400.0).content_signals([ONE, NOBODY])
    assert read.usage.tolist() == signals(evidence, of=(ONE, NOBODY)).usage.tolist()


def test_one_principal_counts_once_whatever_it_asks() -> None:
    """LRN-3, FBK-11: the cap holds over all of its questions together."""
    evidence = Evidence.sum(used({"positive": 30.0}, question=each, principal="ada") for each in ("how", "why", "when"))
    assert signals(evidence).positive[0] == pytest.approx(PRIOR.principal_cap)


keys = st.builds(
    UsageKey,
    st.integers(TODAY - 30, TODAY),
    st.sampled_from([ONE, OTHER]),
    st.sampled_from(
        ["positive", "negative", "retrieval", "inclusion", "reference", "of a later version", "verdict:bad:00000007:-"]
    ),
    st.sampled_from(["", "ada"]),
    st.sampled_from(["", "how", "why"]),
)


@given(st.dictionaries(keys, st.integers(-MICRO, 10**12), max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_masses_changes_no_bit(masses: dict[UsageKey, int], rng: object) -> None:
    """ARC-1: sums are of integers; and every score lies in (0, 1), whatever was taken back."""
    shuffled = list(masses.items())
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    one, two = (read_usage(PRIOR, Evidence(usage=dict(each)), TODAY) for each in (masses.items(), shuffled))
    for name in ContentSignals.__slots__:
        assert np.array_equal(*(getattr(each.signals([ONE, OTHER, NOBODY]), name) for each in (one, two)))
        said = one.signals([ONE, OTHER, NOBODY]).usage
        assert ((said > 0.0) & (said < 1.0)).all()
