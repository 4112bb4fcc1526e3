from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.embedding.encoders.compute import packs, padded_batches
from weft.embedding.settings import LENGTH_STEP
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).embedding


def test_every_text_is_in_one_batch_of_its_own_padded_length_within_the_token_budget() -> None:
    """ING-21, ARC-9: batches keep to the budget, and a text's padded length depends on the text alone."""
    settings = SETTINGS.model_copy(update={"batch_tokens": 64, "max_tokens": 40})
    lengths = [3, 16, 17, 40, 1, 33, 20, 5, 6, 7, 8]
    batches = list(padded_batches(lengths, settings))
    assert sorted(row for rows, _ in batches for row in rows) == list(range(len(lengths)))
    for rows, width in batches:
        assert len(rows) * width <= 64
        for row in rows:
            assert lengths[row] <= width < lengths[row] + LENGTH_STEP
            assert width <= 40


def test_a_text_longer_than_the_budget_still_gets_a_batch() -> None:
    """ING-21: a token budget below one text's length means batches of one."""
    settings = SETTINGS.model_copy(update={"batch_tokens": 1, "max_tokens": 256})
    assert list(padded_batches([100, 100], settings)) == [([0], 112), ([1], 112)]


@given(st.lists(st.integers(1, 60), max_size=60), st.integers(1, 200))
def test_packs_hold_every_text_once_within_the_budget(lengths: list[int], budget: int) -> None:
    """ING-21: packs are filled by tokens, sorted by length; a text above the budget goes alone."""
    made = list(packs(lengths, budget))
    rows = [row for pack in made for row in pack]
    assert sorted(rows) == list(range(len(lengths)))
    assert [lengths[row] for row in rows] == sorted(lengths, reverse=True)
    assert all(sum(lengths[row] for row in pack) <= budget or len(pack) == 1 for pack in made)
