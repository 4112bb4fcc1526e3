from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from tests.support.examples import examples
from weft.embedding.encoders.bert_files import Bert
from weft.embedding.encoders.compute import computing_with
from weft.embedding.encoders.int8_models import Int8Linear, PackedBert, Scratch, _scale

pytestmark = pytest.mark.integration


def applied(layer: Int8Linear, values: torch.Tensor) -> torch.Tensor:
    scratch = Scratch(len(values), max(layer.inputs, layer.outputs))
    return layer(values, scratch, torch.empty(len(values), layer.outputs))


@given(st.integers(1, 40), st.integers(0, 2**31 - 1), st.floats(-20.0, 20.0))
@settings(max_examples=examples(60), deadline=None)
def test_a_row_is_the_same_bits_among_any_others(rows: int, seed: int, offset: float) -> None:
    """ARC-9: what a token becomes does not depend on the tokens multiplied with it."""
    noise = torch.Generator().manual_seed(seed)
    layer = Int8Linear(torch.randn(48, 64, generator=noise), torch.randn(48, generator=noise))
    values = torch.randn(rows, 64, generator=noise) + offset
    together = applied(layer, values)
    chosen = torch.randperm(rows, generator=noise)[: max(1, rows // 2)]
    assert torch.equal(applied(layer, values[chosen]), together[chosen])
    assert torch.equal(applied(layer, values[:1]), together[:1])


@given(st.integers(0, 2**31 - 1), st.floats(-5.0, 5.0), st.floats(0.01, 100.0))
@settings(max_examples=examples(60), deadline=None)
def test_rounding_costs_no_more_than_its_steps(seed: int, offset: float, scale: float) -> None:
    """ING-21: the error of a product is bounded by half a step of each factor, whatever their range."""
    noise = torch.Generator().manual_seed(seed)
    weight, bias = torch.randn(32, 64, generator=noise), torch.randn(32, generator=noise)
    values = (torch.randn(8, 64, generator=noise) + offset) * scale
    exact = functional.linear(values.double(), weight.double(), bias.double())
    step = (values.amax(1, keepdim=True) - values.amin(1, keepdim=True)) / 255
    of_values = step / 2 * weight.abs().sum(1)
    of_weights = values.abs().sum(1, keepdim=True) * _scale(weight) / 2
    bound = (of_values + of_weights) * 1.02 + 1e-4 * scale
    assert ((applied(Int8Linear(weight, bias), values) - exact).abs() <= bound).all()


@given(st.integers(1, 30), st.integers(0, 2**31 - 1), st.sampled_from([1, 7, 64]), st.sampled_from([34, 64, 384]))
@settings(max_examples=examples(40), deadline=None)
def test_every_processor_comes_to_the_same_bits(rows: int, seed: int, outputs: int, inputs: int) -> None:
    """ARC-9: integers as x86 multiplies them, and the same sums made of floats as others do."""
    noise = torch.Generator().manual_seed(seed)
    weight, bias = torch.randn(outputs, inputs, generator=noise), torch.randn(outputs, generator=noise)
    values = torch.randn(rows, inputs, generator=noise)
    assert torch.equal(*(applied(Int8Linear(weight, bias, x86=x86), values) for x86 in (True, False)))


@given(st.integers(0, 2**31 - 1), st.integers(1, 200))
@settings(max_examples=examples(60), deadline=None)
def test_neighbouring_weights_never_make_more_than_128(seed: int, inputs: int) -> None:
    """ARC-9: however they are spread, and however many there are."""
    weight = torch.randn(64, inputs, generator=torch.Generator().manual_seed(seed)) ** 3
    rounded = functional.pad((weight / _scale(weight)[:, None]).round().abs(), (0, inputs % 2))
    assert rounded.max() <= 127
    assert rounded.view(64, -1, 2).sum(2).max() <= 128


@pytest.mark.parametrize("pair", [(127.0, 1.0), (1.0, 127.0), (-127.0, -1.0), (64.0, 64.0), (127.0, 127.0)])
def test_the_greatest_products_of_two_neighbours_fit_sixteen_bits(pair: tuple[float, float]) -> None:
    """ARC-9: without VNNI x86 adds two of them in 16 bits, and cuts off what does not fit."""
    weight = torch.tensor([pair * 32])
    values = torch.ones(3, 64)
    values[:, 0] = 0.0  # all others are 255 steps above it
    assert (weight / _scale(weight)).round().view(32, 2).abs().sum(1).max() * 255 < 2**15
    exact = functional.linear(values, weight)
    assert torch.allclose(applied(Int8Linear(weight, torch.zeros(1)), values), exact, rtol=0.01)


def test_constant_rows_and_empty_weights_are_exact() -> None:
    """ING-21: a token without spread, and an output without weights, divide by nothing."""
    layer = Int8Linear(torch.zeros(16, 32), torch.arange(16.0))
    assert torch.equal(applied(layer, torch.full((3, 32), 7.0)), torch.arange(16.0).expand(3, 16))
    layer = Int8Linear(torch.ones(16, 32), torch.zeros(16))
    assert torch.allclose(applied(layer, torch.full((3, 32), 0.5)), torch.full((3, 16), 16.0))


def test_a_number_of_threads_holds_for_a_block() -> None:
    """ING-21: and what others asked for holds again behind it."""
    before = torch.get_num_threads()
    with computing_with(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
    with computing_with(0):
        assert torch.get_num_threads() == before


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_the_packed_pass_is_the_models_own(kind: str, pooling: str) -> None:
    """ING-19, ING-21: packed in 8 bits, a model with any weights agrees with its own padded forward pass."""
    model = a_model(kind)
    noise = torch.Generator().manual_seed(11)
    ids = [torch.randint(5, 90, (length,), generator=noise).tolist() for length in (30, 17, 17, 5, 2, 1)]
    config = model.config
    first = 0 if kind == "bert" else config.pad_token_id + 1
    bert = Bert(pooling, "", config.num_attention_heads, config.layer_norm_eps, first, config.pad_token_id, 60)
    vectors, states = PackedBert(model.state_dict(), bert).encode(ids)
    with torch.inference_mode():
        own = [model(input_ids=torch.tensor([item])).last_hidden_state[0] for item in ids]
    expected = torch.stack([states[0] if pooling == "cls" else states.mean(0) for states in own])
    assert functional.cosine_similarity(torch.from_numpy(vectors), expected).min() > 0.998
    for found, of_text in zip(states, own, strict=True):
        assert functional.cosine_similarity(torch.from_numpy(found), of_text).min() > 0.995


def a_model(kind: str) -> torch.nn.Module:
    from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel, XLMRobertaConfig, XLMRobertaModel

    kinds = {
        "bert": (BertConfig, BertModel),
        "roberta": (RobertaConfig, RobertaModel),
        "xlm-roberta": (XLMRobertaConfig, XLMRobertaModel),
    }
    config, build = kinds[kind]
    torch.manual_seed(5)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    return build(config(vocab_size=100, max_position_embeddings=64, **sizes)).eval()
