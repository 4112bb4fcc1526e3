"""CON-4: whether two texts about one matter say opposite things of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wording.test_statements import TEXT
from weft.wording.comparison import Polarity, changes_places, opposition
from weft.wording.statements import OpposedSentences, Statements
from weft.wording.text import Text


def found(other: str) -> OpposedSentences | None:
    """What is found, the same from both sides."""
    one_way, back = (
        Statements(one).opposes(Statements(another), least=0.8) for one, another in ((TEXT, other), (other, TEXT))
    )
    assert (one_way is None) == (back is None)
    if one_way is not None and back is not None:
        assert (one_way.polarity, one_way.exact, one_way.one) == (back.polarity, back.exact, back.other)
    return one_way


@pytest.mark.parametrize(
    ("ours", "theirs", "polarity"),
    [
        ("gives up", "does not give up", Polarity.DENIAL),
        ("is enabled", "isn't enabled", Polarity.DENIAL),
        ("always keep", "never keep", Polarity.DENIAL),
        ("is enabled", "is disabled", Polarity.OPPOSITE),
        ("before it", "after it", Polarity.OPPOSITE),
        ("3 times", "5 times", Polarity.NUMBER),
    ],
)
def test_statements_are_opposed(ours: str, theirs: str, polarity: Polarity) -> None:
    """CON-4: by a denial, an opposite word or another number, and by nothing else."""
    told = found(TEXT.replace(ours, theirs))
    assert told is not None
    assert (told.polarity, told.exact) == (polarity, True)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("is enabled", "is not disabled"),
        ("always keep", "keep"),
        ("Paris", "London"),
        ("The cache is enabled", "The index is not enabled"),
        ("failed task 3 times", "failed task three times"),
        ("gives up", "gives in"),
        ("retries a failed task 3 times", "does not retry a failed task 5 times"),
    ],
)
def test_other_differences_are_no_opposition(ours: str, theirs: str) -> None:
    """CON-4: two turns undo each other, and what is said of something else opposes nothing."""
    assert ours in TEXT
    assert found(TEXT.replace(ours, theirs)) is None


def test_what_holds_on_a_condition_is_only_proposed() -> None:
    """CON-4: where more differs than what is denied, a person decides."""
    told = found(TEXT.replace("The cache is enabled", "While tests run the cache is not enabled"))
    assert told is not None
    assert not told.exact


WORDS = [
    "the",
    "cache",
    "is",
    "not",
    "never",
    "always",
    "before",
    "after",
    "enabled",
    "disabled",
    "3",
    "5",
    "Paris",
    "lock",
]
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join).map(Text)


@given(one=sentences, other=sentences)
def test_texts_are_to_each_other_what_they_are_whichever_comes_first(one: Text, other: Text) -> None:
    """CON-2, CON-4: what stands in whose place, and in what they are opposed."""
    assert changes_places(one, other) == changes_places(other, one)
    assert opposition(one, other) == opposition(other, one)
