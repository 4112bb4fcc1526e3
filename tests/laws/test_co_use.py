"""CON-3: laws of how strongly contents are linked that were used together."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from weft.consolidation.steps.links import co_uses, strength
from weft.learning.evidence import MICRO, Evidence
from weft.learning.uses import UsageKey

CONTENTS = ["aa", "bb", "cc", "dd"]
KEYS = st.builds(
    UsageKey,
    st.integers(100, 130),
    st.sampled_from(CONTENTS),
    st.sampled_from(["positive", "negative", "inclusion", "verdict:good:00000735:63"]),
    st.sampled_from(["ada", "bob", ""]),
    st.sampled_from(["why", "how", ""]),
)
USES = st.lists(st.tuples(KEYS, st.integers(1, 2 * MICRO)), max_size=30)
LATE = 10_000


def evidence(uses: Sequence[tuple[UsageKey, int]]) -> Evidence:
    return Evidence.sum(Evidence(usage={key: micro}) for key, micro in uses)


def together(found: Evidence, *, most: int = 10, half_life: float = 30.0, today: int = LATE) -> dict:
    return co_uses(found, named=lambda name: name, half_life_days=half_life, together=most, today=today)


def used(day: int, *contents: str, principal: str = "ada", micro: int = MICRO) -> list[tuple[UsageKey, int]]:
    return [(UsageKey(day, name, "positive", principal, "why"), micro) for name in contents]


@given(USES, st.randoms(use_true_random=False))
def test_the_order_of_uses_means_nothing(uses, rng) -> None:
    """CON-3: integers of the evidence alone decide, in whatever order and parts they came."""
    other = list(uses)
    rng.shuffle(other)
    assert together(evidence(uses)) == together(evidence(other))
    half = len(other) // 2
    assert together(evidence(other[:half]) + evidence(other[half:])) == together(evidence(uses))


@given(USES, st.integers(0, 3))
def test_more_use_never_weakens_and_is_bounded(uses, more: int) -> None:
    """CON-3: on the newest day one further use together adds one use at most, and the strength stays within 1."""
    once = [*uses, *used(130, "aa", "bb", principal="eve")]
    before, after = together(evidence(once)), together(evidence([*once, *used(130, "aa", "bb", principal="fay")]))
    pair = ("aa", "bb")
    assert after[pair] == before[pair] + MICRO
    assert {key: micro for key, micro in after.items() if key != pair} == {
        key: micro for key, micro in before.items() if key != pair
    }
    grown = [strength(each[pair], half_uses=1.0 + more) for each in (before, after)]
    assert 0 < grown[0] < grown[1] <= MICRO


@given(st.integers(0, 10**15), st.integers(0, 10**9), st.floats(0.001, 1000.0))
def test_strength_is_bounded_and_monotone(micro: int, more: int, half: float) -> None:
    """CON-3: in [0, 1], nothing for nothing, never less for more."""
    assert strength(0, half_uses=half) == 0
    assert 0 <= strength(micro, half_uses=half) <= strength(micro + more, half_uses=half) <= MICRO


@given(st.integers(1, 300), st.floats(1.0, 400.0))
def test_use_fades_with_the_days_others_are_used_on(days: int, half_life: float) -> None:
    """CON-3: half of it is left after a half-life; without a newer use of anything it stays as it is."""
    once = evidence(used(100, "aa", "bb"))
    assert together(once, half_life=half_life) == {("aa", "bb"): MICRO}
    later = once + evidence(used(100 + days, "cc"))
    assert together(later, half_life=half_life).get(("aa", "bb"), 0) == round(MICRO * 2.0 ** (-days / half_life))
    assert together(later, half_life=half_life, today=100) == {("aa", "bb"): MICRO}  # a day that is still to come


def test_one_principal_on_one_day_is_one_use() -> None:
    """CON-3: whoever praises a pair a hundred times that day says so once; another day or principal says it anew."""
    assert together(evidence(used(100, "aa", "bb") * 100)) == {("aa", "bb"): MICRO}
    assert together(evidence([*used(100, "aa", "bb"), *used(100, "aa", "bb", principal="bob")])) == {
        ("aa", "bb"): 2 * MICRO
    }


def test_what_was_good_for_different_questions_was_not_used_together() -> None:
    """CON-3: nor what was bad, nor what was only shown, nor what nobody asked for."""
    asked = [
        (UsageKey(100, "aa", "positive", "ada", "why"), MICRO),
        (UsageKey(100, "bb", "positive", "ada", "how"), MICRO),
        (UsageKey(100, "cc", "negative", "ada", "why"), MICRO),
        (UsageKey(100, "dd", "retrieval", "ada", "why"), MICRO),
        (UsageKey(100, "cc", "positive", "ada", ""), MICRO),
        (UsageKey(100, "dd", "positive", "ada", ""), MICRO),
    ]
    assert together(evidence(asked)) == {}


def test_of_many_the_best_are_linked() -> None:
    """CON-3: an answer of many contents makes no more than its best ones' pairs."""
    uses = [each for at, name in enumerate(CONTENTS) for each in used(100, name, micro=MICRO - at)]
    assert sorted(together(evidence(uses), most=3)) == [("aa", "bb"), ("aa", "cc"), ("bb", "cc")]


def test_an_alias_is_used_as_what_stands_for_it() -> None:
    """CON-3: what is gone is left out, and nothing is linked with itself."""
    named = {"aa": "aa", "bb": "aa", "cc": "cc", "dd": None}.get
    pairs = co_uses(evidence(used(100, *CONTENTS)), named=named, half_life_days=30.0, together=10, today=LATE)  # type: ignore[arg-type]
    assert pairs == {("aa", "cc"): MICRO}
