"""A BERT-like encoder in NumPy alone: what a small install reads questions with (RET-10, OPS-8a).

It computes what `int8_models` computes by PyTorch: the same weights and the same sums of integers, exactly. What lies
between them is rounded by other instructions, as from one processor to the next: vectors differ a little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf

from weft.domain.errors import ModelUnavailableError
from weft.embedding.encoders.bert_files import WEIGHTS, Bert
from weft.embedding.encoders.compute import shortened, vector_dimension
from weft.embedding.encoders.precision import resolve_precision
from weft.embedding.models import check_window, display_name, input_of
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import TokenCounter, TokenReader

Item = TypeVar("Item")
Function: TypeAlias = Callable[[np.ndarray], np.ndarray]

# As `int8_models` rounds, and why: two neighbours' weights never sum above 128.
_LEVELS, _WEIGHT_LEVELS, _PAIR_LEVELS = np.float32(255.0), np.float32(127.0), np.float32(127.9999)
_TINY = np.finfo(np.float32).tiny
_EXACT = 512  # inputs whose products of 8 bits, 255 · 127 each, sum up below 2²⁴: singles hold those exactly


@dataclass(frozen=True, slots=True)
class _Layer:
    attend: Function
    attended: Function
    attention_norm: Function
    widen: Function
    narrow: Function
    norm: Function


class NumpyBert:
    """The weights of a BERT, RoBERTa or XLM-RoBERTa, and its forward pass over one text."""

    def __init__(self, weights: Mapping[str, np.ndarray], model: Bert, *, int8: bool) -> None:
        """Take the weights by the names that transformers gives them, in 8 bits or as they are."""
        self._weights, self._model = weights, model
        self._linear = int8_linear if int8 else _linear
        types = self._of("embeddings", "token_type_embeddings.weight")
        self._words = self._of("embeddings", "word_embeddings.weight")
        self._positions = (self._of("embeddings", "position_embeddings.weight") + types[0])[model.first_position :]
        self._norm = self._norm_of("embeddings")
        start = f"{model.prefix}encoder.layer."
        numbers = {name.removeprefix(start).partition(".")[0] for name in weights if name.startswith(start)}
        self._layers = [self._layer(f"encoder.layer.{number}") for number in range(len(numbers))]
        self.dimension = self._words.shape[1]
        self._weights = {}

    def encode(self, ids: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """The vector of a text's token ids, float32 (dimension,), and their last states, (tokens, dimension)."""
        *_, states = self.layers(ids)
        return states[0] if self._model.pooling == "cls" else states.mean(axis=0), states

    def layers(self, ids: Sequence[int]) -> Iterator[np.ndarray]:
        """The states of a text's tokens behind each layer, float32 (tokens, dimension)."""
        states = self._norm(self._words[np.asarray(ids)] + self._positions[: len(ids)])
        for layer in self._layers:
            states = layer.attention_norm(layer.attended(self._attention(layer.attend(states))) + states)
            states = layer.norm(layer.narrow(_gelu(layer.widen(states))) + states)
            yield states

    def _attention(self, projected: np.ndarray) -> np.ndarray:
        """What each token takes from all of them."""
        tokens = len(projected)
        queries, keys, values = projected.reshape(tokens, 3, self._model.heads, -1).transpose(1, 2, 0, 3)
        scores = queries @ keys.transpose(0, 2, 1) / np.float32(math.sqrt(queries.shape[-1]))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed: np.ndarray = (shares / shares.sum(axis=-1, keepdims=True)) @ values
        return mixed.transpose(1, 0, 2).reshape(tokens, -1)

    def _of(self, *names: str) -> np.ndarray:
        return self._weights[self._model.prefix + ".".join(names)].astype(np.float32, copy=False)

    def _norm_of(self, place: str) -> Function:
        weight, bias = (self._of(place, "LayerNorm", part) for part in ("weight", "bias"))
        epsilon = np.float32(self._model.epsilon)

        def norm(values: np.ndarray) -> np.ndarray:
            centred = values - values.mean(axis=1, keepdims=True)
            variance = (centred * centred).mean(axis=1, keepdims=True)
            return np.asarray(centred / np.sqrt(variance + epsilon) * weight + bias)

        return norm

    def _layer(self, place: str) -> _Layer:
        def linear(*names: str) -> Function:
            """Layers that read the same input, as one."""
            return self._linear(*(np.concatenate([self._of(place, n, part) for n in names]) for part in _PARTS))

        return _Layer(
            attend=linear("attention.self.query", "attention.self.key", "attention.self.value"),
            attended=linear("attention.output.dense"),
            attention_norm=self._norm_of(f"{place}.attention.output"),
            widen=linear("intermediate.dense"),
            narrow=linear("output.dense"),
            norm=self._norm_of(f"{place}.output"),
        )


_PARTS = ("weight", "bias")


def _linear(weight: np.ndarray, bias: np.ndarray) -> Function:
    return lambda values: np.asarray(values @ weight.T + bias)


def int8_linear(weight: np.ndarray, bias: np.ndarray) -> Function:
    """`int8_models.Int8Linear`: y = x Wᵀ + b with both factors in 8 bits, and their products summed exactly."""
    sizes = np.pad(np.abs(weight), ((0, 0), (0, weight.shape[1] % 2)))
    pairs = sizes.reshape(len(sizes), -1, 2).sum(axis=2)
    scale = np.maximum(np.maximum(sizes.max(axis=1) / _WEIGHT_LEVELS, pairs.max(axis=1) / _PAIR_LEVELS), _TINY)
    rounded = np.rint(weight / scale[:, None])
    row_sums = rounded.sum(axis=1) * scale
    blocks = [np.ascontiguousarray(rounded[:, at : at + _EXACT].T) for at in range(0, weight.shape[1], _EXACT)]

    def apply(values: np.ndarray) -> np.ndarray:
        low = values.min(axis=1, keepdims=True)
        step = np.maximum((values.max(axis=1, keepdims=True) - low) / _LEVELS, _TINY)
        levels = np.clip(np.rint((values - low) * (1 / step)), 0, _LEVELS)
        products = sum(levels[:, at * _EXACT : (at + 1) * _EXACT] @ block for at, block in enumerate(blocks))
        return np.asarray(bias + products * scale * step + low * row_sums)

    return apply


def _gelu(values: np.ndarray) -> np.ndarray:
    return np.asarray(values * (0.5 + 0.5 * erf(values * np.float32(math.sqrt(0.5)))))


class NumpyEncoder:
    """A BERT-like sentence-transformers model behind `encoder.Encoder`, one text at a time, on the CPU.

    A store whose vectors are in 8 bits is asked in 8 bits, any other one in single precision.
    """

    def __init__(self, folder: Path, model: Bert, settings: EmbeddingSettings) -> None:
        given = input_of(folder, settings)
        check_window(given.window, folder, model.longest)
        try:
            weights = load_file(folder / WEIGHTS)
        except Exception as error:  # the library raises errors of its own for damaged files
            raise ModelUnavailableError(
                f"embedding.model: expected weights in {folder / WEIGHTS}, found: {error}"
            ) from error
        self._bert = NumpyBert(weights, model, int8=resolve_precision(settings.precision, folder) == "int8")
        self._read = TokenReader(folder, given.window, model.pad, given.document_prompt)
        self._count = TokenCounter(folder, given.window, given.document_prompt)
        self.name = display_name(folder, settings)
        self.max_tokens = self._count.limit
        self.dimension = vector_dimension(settings, self._bert.dimension)
        self._queries: NumpyEncoder | None = None
        if given.query_prompt != given.document_prompt:
            self._queries = copy(self)
            self._queries._read = TokenReader(folder, given.window, model.pad, given.query_prompt)

    @property
    def queries(self) -> NumpyEncoder:
        """See `encoder.Encoder`."""
        return self._queries or self

    def count_tokens(self, text: str) -> int:
        """Length of a text in the encoder's own tokens, special tokens not counted."""
        return self._count(text)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts, in their order: float32 (n, dimension), unit rows, the same bits for a text always."""
        return self.encode_tokens(texts, lambda _: None)[0]

    def encode_tokens(self, texts: Sequence[str], keep: Callable[[np.ndarray], Item]) -> tuple[np.ndarray, list[Item]]:
        """See `encoder.Encoder`."""
        vectors = np.zeros((len(texts), self._bert.dimension), dtype=np.float32)
        items: list[Item] = []
        for row, read in enumerate(self._read(texts)):
            vectors[row], states = self._bert.encode(read.ids)
            items.append(keep(states[read.own]))
        return shortened(vectors, self.dimension), items
