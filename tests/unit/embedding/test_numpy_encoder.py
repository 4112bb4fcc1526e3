"""OPS-8a: what a small install reads questions with computes what PyTorch computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from weft.embedding.encoders.bert_files import read_bert
from weft.embedding.encoders.encoder import Encoder, load_encoder
from weft.embedding.encoders.int8_models import Int8Linear, Scratch
from weft.embedding.encoders.numpy_encoder import NumpyEncoder, int8_linear
from weft.embedding.models import locate
from weft.settings import load_settings

pytestmark = pytest.mark.integration

TOPICS = ("a lock", "the broker", "yellow fruit", "an index of vectors", "the night's report", "a belief", "a key")
TEXTS = [
    "A checkpoint is written in one transaction with its offset.",
    "def fold(events):\n    return sum(event.weight for event in events)",
    "übergroße Straßen \ud800 und ein loses Surrogat",
    "short",
    "word " * 700,
    *(f"{topic.capitalize()} is {what}." for topic in TOPICS for what in ("opened", "read again", "sold by the pound")),
    *(f"How do I open {topic}, and what does it cost? " * 4 for topic in TOPICS),
]
# Where one value is rounded to another level, all that follows is: 8 bits computed twice differ by half of what 8 bits
# differ from single precision. So do those of two processors.
LEAST, MEAN, DRIFT = {"int8": 0.997, "fp32": 0.99999}, {"int8": 0.999, "fp32": 0.99999}, {"int8": 0.02, "fp32": 1e-4}


@pytest.fixture(scope="module", params=["int8", "fp32"])
def precision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def both(precision: str) -> tuple[NumpyEncoder, Encoder]:
    wanted = load_settings(environment={}).embedding.model_copy(update={"precision": precision, "device": "cpu"})
    folder = locate(wanted)
    model = read_bert(folder)
    assert model is not None
    return NumpyEncoder(folder, model, wanted), load_encoder(wanted)


def test_vectors_are_those_of_pytorch(both: tuple[NumpyEncoder, Encoder], precision: str) -> None:
    """OPS-8a, RET-10: cosine of each text; unit rows, the same tokens counted, the same neighbours first."""
    ours, theirs = (each.encode(TEXTS) for each in both)
    assert ours.shape == theirs.shape
    assert ours.dtype == np.float32
    assert np.allclose(np.linalg.norm(ours, axis=1), 1.0, atol=1e-5)
    cosines = (ours * theirs).sum(axis=1)
    assert float(cosines.min()) >= LEAST[precision]
    assert float(cosines.mean()) >= MEAN[precision]
    assert [both[0].count_tokens(text) for text in TEXTS] == [both[1].count_tokens(text) for text in TEXTS]
    mine, expected = ours @ theirs.T, theirs @ theirs.T
    np.fill_diagonal(mine, -1.0)
    np.fill_diagonal(expected, -1.0)
    drift = float(np.abs(mine - expected).max())
    for row, first in enumerate(expected.argmax(axis=1)):  # neighbours told apart by more than rounding stay in order
        assert mine[row].max() - mine[row, first] <= 2 * drift
    assert drift < DRIFT[precision]


def test_a_text_has_the_same_bits_among_any_others(both: tuple[NumpyEncoder, Encoder]) -> None:
    """ARC-9: the small install too gives a text one vector."""
    together = both[0].encode(TEXTS[:8])
    assert np.array_equal(both[0].encode(TEXTS[7::-1]), together[::-1])


def test_an_empty_text_has_a_vector(both: tuple[NumpyEncoder, Encoder]) -> None:
    """ING-19: whatever a text holds; and no texts have none."""
    assert np.linalg.norm(both[0].encode([""])[0]) == pytest.approx(1.0, abs=1e-5)
    assert both[0].encode([]).shape == (0, both[0].dimension)


@given(st.integers(1, 20), st.integers(0, 2**31 - 1), st.sampled_from([1, 7, 64]), st.sampled_from([34, 64, 384, 1536]))
@settings(max_examples=examples(40), deadline=None)
def test_products_of_eight_bits_are_those_of_pytorch(rows: int, seed: int, outputs: int, inputs: int) -> None:
    """RET-10: the same integers, summed exactly; what is left is the rounding of single precision."""
    noise = torch.Generator().manual_seed(seed)
    weight, bias = torch.randn(outputs, inputs, generator=noise), torch.randn(outputs, generator=noise)
    values = torch.randn(rows, inputs, generator=noise)
    layer = Int8Linear(weight, bias)
    theirs = layer(values, Scratch(rows, max(inputs, outputs)), torch.empty(rows, outputs)).numpy()
    ours = int8_linear(weight.numpy(), bias.numpy())(values.numpy())
    step = float((values.amax(1) - values.amin(1)).max()) / 255
    # Where a value lies half between two levels, the two may take different ones: one step of one weight.
    assert np.abs(ours - theirs).max() <= 1.01 * step * float(weight.abs().max()) + 1e-3
