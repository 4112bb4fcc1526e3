from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.parts import a_document
from weft.domain.errors import ConfigurationError
from weft.embedding.encoders.compute import shortened, vector_dimension
from weft.embedding.tokens import load_token_counter
from weft.ingestion.stages.models import embedded_text
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).embedding
CHUNK = replace(a_document("a.py", "return value")[1][0], heading_path=("store", "Cache"), signature="def get(self):")
PARENT = replace(CHUNK, signature="class Cache:")


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0, "return value"),
        (1, "store > Cache\nreturn value"),
        (2, "store > Cache\ndef get(self):\nreturn value"),
        (3, "store > Cache\nclass Cache:\ndef get(self):\nreturn value"),
    ],
)
def test_each_level_adds_its_context(level: int, expected: str) -> None:
    """ING-19: level 0 without context, 1 with it, 2 with the signature too, 3 with the parent's context too."""
    assert embedded_text(replace(CHUNK, level=level), PARENT, "title") == expected


def test_what_the_text_holds_already_is_not_repeated() -> None:
    """ING-19: chunkers put context into texts themselves; nothing counts twice."""
    chunk = replace(CHUNK, level=2, text="store > Cache\ndef get(self):\n    return value")
    assert embedded_text(chunk, PARENT, None) == chunk.text
    assert embedded_text(replace(chunk, heading_path=(), signature=None), None, None) == chunk.text
    assert embedded_text(replace(chunk, heading_path=(), signature=None), None, "Notes") == f"Notes\n{chunk.text}"


def test_a_text_is_cut_at_a_token() -> None:
    """ING-19: what a level's window leaves is the beginning of the text, as many tokens as it says."""
    count = load_token_counter(SETTINGS)
    text = "Every checkpoint is written in one transaction. " * 20
    cut = count.cut(text, 50)
    assert text.startswith(cut)
    assert count(cut) == 50
    assert count.cut(text, 10_000) == text


def test_shorter_vectors_are_the_beginning_of_long_ones() -> None:
    """ING-19: Matryoshka: the first numbers, of length 1 again."""
    vectors = np.random.default_rng(1).normal(size=(5, 12)).astype(np.float32)
    kept = shortened(vectors, 4)
    assert np.allclose(np.linalg.norm(kept, axis=1), 1.0, atol=1e-6)
    assert np.allclose(kept * np.linalg.norm(vectors[:, :4], axis=1, keepdims=True), vectors[:, :4], atol=1e-5)
    assert not shortened(np.zeros((2, 3)), 2).any()


def test_a_length_that_the_model_does_not_have_is_refused() -> None:
    """ING-19: more numbers than a model gives is an error, which names both."""
    assert vector_dimension(SETTINGS, 384) == 384
    assert vector_dimension(SETTINGS.model_copy(update={"dimension": 64}), 384) == 64
    with pytest.raises(ConfigurationError, match="384 numbers, found 512"):
        vector_dimension(SETTINGS.model_copy(update={"dimension": 512}), 384)


def test_further_encoders_differ_in_what_they_name() -> None:
    """ING-19: each further encoder has the default one's settings but for those it names."""
    both = load_settings(assignments=["embedding.further=[{dimension: 64}]"], environment={}).embedding.encoders
    assert [one.dimension for one in both] == [0, 64]
    assert [one.further for one in both] == [(), ()]
    with pytest.raises(ConfigurationError, match="dimensoin"):
        load_settings(assignments=["embedding.further=[{dimensoin: 64}]"], environment={})
