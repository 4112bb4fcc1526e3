"""OPS-10: what an encoder made of the latest queries is remembered, and nobody can tell by the answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from weft.embedding.encoders.encoder import Encoder, load_encoder
from weft.embedding.remembered import RememberedQueries
from weft.settings import load_settings

pytestmark = pytest.mark.integration

TEXTS = ("a lock", "Who holds the lock of a transaction?", "übergroße Straßen", "word " * 40, "", "a key")


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return load_encoder(load_settings(environment={}).embedding)


@pytest.fixture(scope="module")
def alone(encoder: Encoder) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    vectors, states = encoder.encode_tokens(TEXTS, np.array)
    return dict(zip(TEXTS, zip(vectors, states, strict=True), strict=True))


@given(
    batches=st.lists(st.lists(st.sampled_from(TEXTS), max_size=4), min_size=1, max_size=6),
    most=st.integers(0, 80),
)
@settings(max_examples=examples(20), deadline=None)
def test_the_bits_are_the_encoders_own(
    encoder: Encoder,
    alone: dict[str, tuple[np.ndarray, np.ndarray]],
    batches: Sequence[Sequence[str]],
    most: int,
) -> None:
    """ARC-9: in whatever order texts are asked, and however little is kept."""
    remembered = RememberedQueries(encoder, most_tokens=most)
    for batch in batches:
        vectors, sums = remembered.encode_tokens(batch, lambda states: states.sum(axis=0))
        assert len(vectors) == len(batch)
        for text, vector, total in zip(batch, vectors, sums, strict=True):
            assert vector.tobytes() == alone[text][0].tobytes()
            assert total.tobytes() == alone[text][1].sum(axis=0).tobytes()
    assert remembered.recalled + remembered.computed == sum(len(set(batch)) for batch in batches)


def test_what_was_asked_lately_is_not_computed_again(encoder: Encoder) -> None:
    """The text that was asked longest ago goes first."""
    remembered = RememberedQueries(encoder, most_tokens=4)
    for text in ("a lock", "a key", "a lock", "a door", "a lock", "a key"):
        remembered.encode_tokens([text], np.array)
    assert (remembered.recalled, remembered.computed) == (2, 4)
