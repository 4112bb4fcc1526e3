from __future__ import annotations

from pipelines.embedding.encoders.sentence_encoder import _batches
from pipelines.settings import load_settings

SETTINGS = load_settings(environment={}).embedding


def test_every_text_is_in_one_batch_of_its_own_padded_length_within_the_token_budget() -> None:
    """ING-21, ARC-9: batches keep to the budget, and a text's padded length depends on the text alone."""
    settings = SETTINGS.model_copy(update={"batch_tokens": 64, "length_step": 16, "max_tokens": 40})
    lengths = [3, 16, 17, 40, 1, 33, 20, 5, 6, 7, 8]
    batches = list(_batches(lengths, settings))
    assert sorted(row for rows, _ in batches for row in rows) == list(range(len(lengths)))
    for rows, width in batches:
        assert len(rows) * width <= 64
        for row in rows:
            assert lengths[row] <= width < lengths[row] + 16
            assert width <= 40


def test_a_text_longer_than_the_budget_still_gets_a_batch() -> None:
    """ING-21: a token budget below one text's length means batches of one."""
    settings = SETTINGS.model_copy(update={"batch_tokens": 1})
    assert list(_batches([100, 100], settings)) == [([0], 112), ([1], 112)]
