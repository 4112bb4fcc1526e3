"""LRN-1, FBK-6: masses in columns are what they are one by one, and so are the beliefs read out of them."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.domain.ids import ContentHash
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.usage import read_usage
from weft.learning.pooling.covariance import read_design_effect
from weft.learning.recency import Discount
from weft.learning.uses import UsageKey, Uses
from weft.settings import load_settings

TODAY, PRIOR = 20, load_settings(environment={}).priors.usage
CONTENTS, QUESTIONS = ["a", "b", "ß"], ["", "what", "who"]
GOOD, BAD = ("positive", "verdict:good:00000007:50"), ("negative", "verdict:bad:00000009:-")
keys = st.builds(
    UsageKey,
    st.integers(TODAY - 9, TODAY),
    st.sampled_from(CONTENTS),
    st.sampled_from([*GOOD, *BAD, "retrieval", "[learned:]pie"]),
    st.sampled_from(["", "ada", "bob"]),
    st.sampled_from(QUESTIONS),
)
masses = st.dictionaries(keys, st.integers(1, 3 * MICRO), max_size=12)
differences = st.dictionaries(keys, st.integers(-3, 3).filter(bool), max_size=12)
GREAT = 2**62


@given(st.lists(st.tuples(differences, st.sampled_from([1, -1])), max_size=4))
def test_sums_are_those_of_integers(parts: list[tuple[Mapping[UsageKey, int], int]]) -> None:
    """LRN-1: without what comes to nothing; whether columns or a mapping are asked."""
    total: Counter[UsageKey] = Counter()
    for part, sign in parts:
        for key, micro in part.items():
            total[key] += sign * micro
    found = Uses.summed([(Uses.of(part), sign) for part, sign in parts])
    expected = {key: micro for key, micro in total.items() if micro}
    assert found == expected
    assert expected == found
    assert len(found) == len(expected)
    assert pickle.loads(pickle.dumps(found)) == found


@given(differences)
def test_columns_hold_every_row(some: Mapping[UsageKey, int]) -> None:
    """FBK-6."""
    uses = Uses.summed([(Uses.of(some), 1)]).columns()
    words = [[each.values[code] for code in each.codes.tolist()] for each in uses[1:5]]
    rows = zip(uses.day.tolist(), *words, strict=True)
    assert dict(zip(map(UsageKey._make, rows), uses.micro.tolist(), strict=True)) == some


def test_masses_near_the_bound_are_added_exactly() -> None:
    """LRN-1: what a machine's integer cannot hold is said, and not wrapped around."""
    key = UsageKey(TODAY, "a", "positive")
    great = Uses.of({key: GREAT})
    assert Uses.summed([(great, 1), (Uses.of({key: GREAT - 1}), 1)])[key] == 2 * GREAT - 1
    assert Uses.summed([(great, -1), (great, -1)])[key] == -2 * GREAT
    with pytest.raises(OverflowError, match="within int64, found 9223372036854775808 at"):
        Uses.summed([(great, 1), (great, 1)])


def counting(some: Mapping[UsageKey, int], half_life: float) -> Counter[UsageKey]:
    """Outcomes as they count today."""
    discount = Discount(TODAY, half_life)
    return Counter({key: discount(micro, key.day) for key, micro in some.items() if key.bin in GOOD + BAD})


@given(masses)
def test_usage_is_what_counting_by_hand_tells(some: Mapping[UsageKey, int]) -> None:
    """FBK-6, LRN-3: outcomes of one principal and content count as far as the cap, whatever was asked."""
    counted = counting(some, PRIOR.half_life_days)
    said: Counter[tuple[str, str]] = Counter()
    for key, micro in counted.items():
        said[key.content_hash, key.principal] += micro
    shares = {
        of: min(1.0, PRIOR.principal_cap * MICRO / micro) if of[1] and micro else 1.0 for of, micro in said.items()
    }

    def mean(content: str) -> float:
        good, bad = (
            sum(
                micro * shares[key.content_hash, key.principal]
                for key, micro in counted.items()
                if key.content_hash == content and key.bin in bins
            )
            / MICRO
            for bins in (GOOD, BAD)
        )
        return (PRIOR.positive + good) / (PRIOR.positive + PRIOR.negative + good + bad)

    usage = read_usage(PRIOR, Evidence(usage=some), TODAY).signals([ContentHash(each) for each in CONTENTS]).usage
    assert usage.tolist() == pytest.approx([mean(each) for each in CONTENTS], abs=1e-5)


@given(masses, st.floats(0.0, 1.0))
def test_repetition_is_what_counting_by_hand_tells(some: Mapping[UsageKey, int], alike: float) -> None:
    """LRN-4: outcomes by question, those of one principal and content at most one observation."""
    said: Counter[tuple[str, str, str]] = Counter()
    for key, micro in counting(some, 30.0).items():
        if key.question:
            said[key.question, key.content_hash, key.principal] += micro
    asked: Counter[str] = Counter()
    for (question, _, principal), micro in said.items():
        asked[question] += min(micro, MICRO) if principal else micro
    worth = sum(n / (1 + max(n - 1, 0) * alike) for n in (micro / MICRO for micro in asked.values()))
    found = read_design_effect(Evidence(usage=some), Discount(TODAY, 30.0), correlation=alike, principal_cap=1.0)
    assert found.worth == pytest.approx(worth)
    assert found.worth + found.lost == pytest.approx(sum(asked.values()) / MICRO)


@given(masses)
def test_beliefs_have_the_same_bits_however_masses_are_held(some: Mapping[UsageKey, int]) -> None:
    """ARC-1: in a mapping, in columns, in another order, and after something that was taken back."""
    turned = Evidence(usage=dict(reversed(some.items())))
    columns = Evidence.from_table(turned.to_table())
    hashes = [ContentHash(each) for each in CONTENTS]
    known = read_usage(PRIOR, Evidence(usage=some), TODAY)
    for held in (turned, columns, columns + turned - columns):
        found = read_usage(PRIOR, held, TODAY)
        assert np.array_equal(found.signals(hashes).usage, known.signals(hashes).usage)
