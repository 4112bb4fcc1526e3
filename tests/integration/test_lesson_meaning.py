"""LES-8: free questions meet lessons by meaning, with the encoder in use."""

from __future__ import annotations

import pytest

from pipelines.embedding.encoders.encoder import load_encoder
from tests.support.lesson_figures import free_queries
from tests.support.lessons import settings


@pytest.mark.integration
def test_questions_in_other_words_find_their_lesson_and_unrelated_ones_none() -> None:
    """LES-8: words alone find one in twenty; of questions about the world, nine in ten show nothing."""
    found, by_words, silent = free_queries(load_encoder(settings().embedding), held_out=True)
    assert found >= by_words + 0.4
    assert silent >= 0.9
