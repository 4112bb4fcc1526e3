from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from weft.domain.errors import ConfigurationError, ModelUnavailableError
from weft.embedding.encoders import int8_models
from weft.embedding.encoders.encoder import Encoder, load_encoder
from weft.embedding.tokens import load_token_counter
from weft.settings import load_settings

SETTINGS = load_settings(environment={}).embedding
TEXTS = [
    "A checkpoint is written in one transaction with its offset.",
    "def fold(events):\n    return sum(event.weight for event in events)",
    "",
    "übergroße Straßen \ud800 und ein loses Surrogat",
    "word " * 1000,
    *(f"Sentence number {number} about topic {number % 7}. " * (number % 23 + 1) for number in range(40)),
]


# Without instructions for it, a processor computes bf16 many times more slowly.
ARITHMETICS = ("int8", pytest.param("bf16", marks=pytest.mark.slow), "fp32")


@pytest.fixture(scope="module", params=ARITHMETICS)
def encoder(request: pytest.FixtureRequest) -> Encoder:
    return load_encoder(SETTINGS.model_copy(update={"precision": request.param}))


def test_vectors_are_unit_rows_in_the_order_of_the_texts(encoder: Encoder) -> None:
    """ING-19: one unit vector per text, whatever the text holds."""
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.dimension)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    question = encoder.encode(["how is a checkpoint stored?"])[0]
    assert int(np.argmax(vectors @ question)) == 0


def test_a_vector_does_not_depend_on_its_company(encoder: Encoder) -> None:
    """ARC-9: alone, shuffled or among others, a text gets the same bits, so retries and caches change nothing."""
    together = encoder.encode(TEXTS)
    order = list(range(len(TEXTS)))
    random.Random(7).shuffle(order)
    assert np.array_equal(encoder.encode([TEXTS[row] for row in order]), together[order])
    for row in (0, 3, 4, 20):
        assert np.array_equal(encoder.encode([TEXTS[row]])[0], together[row])


def test_neither_packs_nor_threads_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """ARC-9, ING-21: how texts share forward passes and threads decides speed alone."""
    settings = SETTINGS.model_copy(update={"precision": "int8"})
    one = load_encoder(settings).encode(TEXTS)
    for tokens, threads in ((1, 1), (100_000, 1), (64, 3)):
        monkeypatch.setattr(int8_models, "PACK_TOKENS", tokens)
        encoder = load_encoder(settings.model_copy(update={"threads": threads}))
        assert np.array_equal(encoder.encode(TEXTS), one), (tokens, threads)


@pytest.mark.parametrize(
    ("precision", "least", "mean"), [pytest.param("bf16", 0.999, 0.9999, marks=pytest.mark.slow), ("int8", 0.99, 0.998)]
)
def test_fast_arithmetic_keeps_the_vectors(precision: str, least: float, mean: float) -> None:
    """ING-21: cosine against fp32; the least is that of the empty text, which retrieval never meets."""
    exact = load_encoder(SETTINGS.model_copy(update={"precision": "fp32"})).encode(TEXTS)
    fast = load_encoder(SETTINGS.model_copy(update={"precision": precision})).encode(TEXTS)
    cosines = (exact * fast).sum(axis=1)
    assert float(cosines.min()) >= least
    assert float(cosines.mean()) >= mean


def test_the_counter_needs_no_model_and_counts_the_same(encoder: Encoder) -> None:
    """ING-12: chunks are measured in the encoder's own tokens."""
    counter = load_token_counter(SETTINGS)
    assert [counter(text) for text in TEXTS] == [encoder.count_tokens(text) for text in TEXTS]
    assert counter.limit == encoder.max_tokens == 256 - 2  # [CLS] and [SEP], of what MiniLM says that it reads
    assert counter("word " * 1000) == 1000


def test_a_window_wider_than_the_model_is_refused() -> None:
    """ING-19: a setting that the model cannot keep is an error, not a silent cut."""
    with pytest.raises(ConfigurationError, match="at most 256"):
        load_encoder(SETTINGS.model_copy(update={"max_tokens": 512}))


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    """ING-19: the reason names the folder."""
    with pytest.raises(ModelUnavailableError, match=r"embedding\.model"):
        load_encoder(SETTINGS.model_copy(update={"model": str(tmp_path)}))
