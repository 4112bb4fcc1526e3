"""BERT-like models in 8-bit integers, read from their files: an encoder, and a scorer of pairs (RET-10, ING-21)."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional

from weft.domain.errors import ConfigurationError, ModelUnavailableError
from weft.embedding.encoders.bert_files import WEIGHTS, Bert, read_bert
from weft.embedding.encoders.compute import computing_with, packs, shortened, vector_dimension
from weft.embedding.models import check_window, display_name, input_of
from weft.embedding.settings import CrossEncoderSettings, EmbeddingSettings
from weft.embedding.tokens import PairIds, PairReader, TokenCounter, TokenReader

# A BERT-like encoder over packed tokens: no padding, 8-bit products, the same bits in any company (ING-21, ARC-9).
#
# The texts of a batch lie end to end in one matrix of tokens, so linear layers never work on padding; attention runs on
# each text alone, or on several of equal length at once.
#
# A token's own smallest and largest value decide how it is rounded, and products are summed as integers, which is
# exact: so its result is the same whatever tokens are multiplied along with it, bit for bit. It is also the same
# integer on every processor. Without VNNI, x86 adds two neighbouring products in 16 bits, and cuts off what does not
# fit. Weights are therefore rounded so coarsely that two neighbours never sum above 128 in size: 255 · 128 fits.
#
# Dettmers et al., LLM.int8() (NeurIPS 2022), quantise rows so; the offset that keeps one-sided outliers cheap is that
# of Jacob et al., Quantization and Training of Neural Networks (CVPR 2018).

_LEVELS = 255.0  # steps between the least and the greatest value of 8 bits
_WEIGHT_LEVELS = 127.0  # weights are symmetric: the value −128 is left out
_PAIR_LEVELS = 127.9999  # of two neighbours' sizes: below 128 by more than division errs, so rounded they make 128
_TINY = torch.finfo(torch.float32).tiny
# Named down to its overload: choosing it anew at each call costs a query's product a tenth of its time.
_MULTIPLY = torch.ops.onednn.qlinear_pointwise.default
_X86 = platform.machine().lower() in {"x86_64", "amd64"}


class Scratch:
    """Memory that the layers of one forward pass share; made for its number of tokens and its widest layer."""

    def __init__(self, tokens: int, width: int) -> None:
        self._levels = torch.empty(tokens * width, dtype=torch.uint8)
        self._values = torch.empty(tokens * width)

    def levels(self, rows: int, columns: int) -> torch.Tensor:
        """Room for rounded activations, (rows, columns)."""
        return self._levels[: rows * columns].view(rows, columns)

    def values(self, rows: int, columns: int) -> torch.Tensor:
        """Room for activations before they are rounded, (rows, columns)."""
        return self._values[: rows * columns].view(rows, columns)


class Int8Linear:
    """y = x Wᵀ + b with W in 8 bits.

    With x ≈ low + step · q, q in 0 … 255, and W ≈ scale · V, V in −127 … 127:
    y ≈ step · scale · (q Vᵀ) + low · scale · ΣV + b.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor, *, x86: bool = _X86) -> None:
        """Take float weights (outputs, inputs) and a bias (outputs)."""
        weight = weight.detach().float()
        self._scale = _scale(weight)
        rounded = (weight / self._scale[:, None]).round_()
        self._weight = _packed(rounded) if x86 else rounded.double().t()
        self._x86 = x86
        self._zeros = torch.zeros(len(weight), dtype=torch.long)
        self._row_sums = rounded.sum(dim=1) * self._scale
        self._bias = bias.detach().float().clone()
        self.outputs, self.inputs = weight.shape

    def __call__(self, values: torch.Tensor, scratch: Scratch, out: torch.Tensor) -> torch.Tensor:
        """The layer's result for tokens (n, inputs), written to `out` (n, outputs), float32."""
        levels, step, low = _rounded(values, scratch)
        torch.addcmul(self._bias, self._products(levels), step, out=out)
        return out.addcmul_(low, self._row_sums)

    def _products(self, levels: torch.Tensor) -> torch.Tensor:
        """Scale · (q Vᵀ), float32 (n, outputs)."""
        if not self._x86:
            # Doubles hold these sums exactly: the same integers as in 8 bits, in whatever order they are added.
            return (levels.double() @ self._weight).float().mul_(self._scale)
        products: torch.Tensor = _MULTIPLY(
            levels, 1.0, 0, self._weight, self._scale, self._zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return products


def _scale(weight: torch.Tensor) -> torch.Tensor:
    """What a step of each output's weights stands for: as little as their bound and that of neighbours allow."""
    sizes = functional.pad(weight.abs(), (0, weight.shape[1] % 2))
    pairs = sizes.view(len(sizes), -1, 2).sum(dim=2)
    return torch.maximum(sizes.amax(dim=1) / _WEIGHT_LEVELS, pairs.amax(dim=1) / _PAIR_LEVELS).clamp_(min=_TINY)


def _packed(rounded: torch.Tensor) -> torch.Tensor:
    """Integer weights in the order in which the processor at hand multiplies them."""
    packed: torch.Tensor = torch.ops.onednn.qlinear_prepack(rounded.to(torch.int8).contiguous(), None)
    return packed


def _rounded(values: torch.Tensor, scratch: Scratch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Each row in 8 bits: q uint8 (n, width), step (n, 1) and low (n, 1), values ≈ low + step · q."""
    low = values.amin(dim=1, keepdim=True)
    step = values.amax(dim=1, keepdim=True).sub_(low).div_(_LEVELS).clamp_(min=_TINY)
    scaled = torch.sub(values, low, out=scratch.values(*values.shape)).mul_(step.reciprocal())
    # None is above 255.5: a row's greatest value is 255 steps above its least, within a rounding.
    return scratch.levels(*values.shape).copy_(scaled.round_()), step, low


@dataclass(frozen=True, slots=True)
class _Norm:
    weight: torch.Tensor
    bias: torch.Tensor
    epsilon: float

    def __call__(self, values: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(values, self.weight.shape, self.weight, self.bias, self.epsilon)


@dataclass(frozen=True, slots=True)
class _Layer:
    attend: Int8Linear
    attended: Int8Linear
    attention_norm: _Norm
    widen: Int8Linear
    narrow: Int8Linear
    norm: _Norm


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring texts of one length: `texts` of them, `length` tokens each, from row `start` of the pack."""

    start: int
    texts: int
    length: int

    @property
    def rows(self) -> slice:
        return slice(self.start, self.start + self.texts * self.length)


class PackedBert:
    """The weights of a BERT, RoBERTa or XLM-RoBERTa, rounded to 8 bits, and its forward pass over packs of texts."""

    def __init__(self, weights: Mapping[str, torch.Tensor], model: Bert) -> None:
        """Take the weights by the names that transformers gives them."""
        embeddings = _Named(weights, f"{model.prefix}embeddings")
        self._pooling = model.pooling
        self._heads = model.heads
        self._words = embeddings["word_embeddings.weight"]
        # Only pairs have tokens of the second type, so the first one goes with every position.
        types = embeddings["token_type_embeddings.weight"]
        self._positions = embeddings["position_embeddings.weight"] + types[0]
        self._second = types[-1] - types[0]
        self._first_position = model.first_position
        self._norm = _norm(embeddings, model.epsilon)
        names = {name.removeprefix(f"{model.prefix}encoder.layer.") for name in weights}
        count = 1 + max(int(name.partition(".")[0]) for name in names if name[:1].isdigit())
        layers = (_Named(weights, f"{model.prefix}encoder.layer.{number}") for number in range(count))
        self._layers = [_layer(layer, model.epsilon) for layer in layers]
        self._widest = max(max(one.attend.outputs, one.widen.outputs) for one in self._layers)
        self.dimension = self._words.shape[1]

    def encode(self, ids: Sequence[Sequence[int]]) -> tuple[np.ndarray, list[np.ndarray]]:
        """Vectors, float32 (n, dimension), of token ids, and the last states of each, (tokens, dimension)."""
        with torch.inference_mode():
            states, runs = self._states(ids)
            pooled = torch.cat([self._pooled(states[run.rows], run) for run in runs])
        bounds = np.cumsum([len(item) for item in ids])[:-1]
        return pooled.numpy(), np.split(states.numpy(), bounds)

    def first_states(self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]]) -> torch.Tensor:
        """The first token's last state of each pair of texts, (n, dimension); best with equal lengths side by side."""
        # What the last layer makes of the other tokens nobody reads.
        states, runs = self._states(ids, types, layers=len(self._layers) - 1)
        last = self._layers[-1]
        scratch, wide = Scratch(len(states), self._widest), torch.empty(len(states) * self._widest)
        projected = last.attend(states, scratch, wide[: len(states) * last.attend.outputs].view(len(states), -1))
        # Keys and values are those of all tokens, and queries those of the first ones: all that follows is per text.
        context = torch.cat([self._attention(projected[run.rows], run, queries=1) for run in runs])
        own = torch.cat([states[run.rows].view(run.texts, run.length, -1)[:, 0] for run in runs])
        out = torch.empty_like(own)
        own = last.attention_norm(last.attended(context, scratch, out).add_(own))
        widened = last.widen(own, scratch, wide[: len(own) * last.widen.outputs].view(len(own), -1))
        torch.ops.aten.gelu_(widened)
        return last.norm(last.narrow(widened, scratch, out).add_(own))

    def _states(
        self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None = None, layers: int | None = None
    ) -> tuple[torch.Tensor, list[_Run]]:
        """The states after so many layers, (tokens, dimension), None for all, and where each text's are."""
        runs = list(_runs([len(item) for item in ids]))
        tokens = torch.tensor([token for item in ids for token in item])
        places = torch.cat([torch.arange(run.length).repeat(run.texts) for run in runs])
        embedded = self._words[tokens].add_(self._positions[places + self._first_position])
        if types is not None:
            second = torch.tensor([kind for item in types for kind in item], dtype=embedded.dtype)
            embedded.addcmul_(second[:, None], self._second)
        states = self._norm(embedded)
        scratch = Scratch(len(tokens), self._widest)
        wide = torch.empty(len(tokens) * self._widest)
        narrow = torch.empty_like(states)
        for layer in self._layers[:layers]:
            states = self._passed(layer, states, runs, scratch=scratch, wide=wide, narrow=narrow)
        return states, runs

    def _passed(
        self,
        layer: _Layer,
        states: torch.Tensor,
        runs: Sequence[_Run],
        *,
        scratch: Scratch,
        wide: torch.Tensor,
        narrow: torch.Tensor,
    ) -> torch.Tensor:
        count = len(states)
        projected = layer.attend(states, scratch, wide[: count * layer.attend.outputs].view(count, -1))
        context = torch.empty_like(states)
        for run in runs:
            context[run.rows] = self._attention(projected[run.rows], run)
        # `narrow` serves twice: the norm makes a tensor of its own, after which nobody reads the first product.
        states = layer.attention_norm(layer.attended(context, scratch, narrow).add_(states))
        widened = layer.widen(states, scratch, wide[: count * layer.widen.outputs].view(count, -1))
        torch.ops.aten.gelu_(widened)
        return layer.norm(layer.narrow(widened, scratch, narrow).add_(states))

    def _attention(self, projected: torch.Tensor, run: _Run, queries: int | None = None) -> torch.Tensor:
        """What each text's first `queries` tokens, None for all, take from all of its tokens."""
        parts = projected.view(run.texts, run.length, 3, self._heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(parts[0][:, :, :queries], parts[1], parts[2])
        return mixed.transpose(1, 2).reshape(run.texts * mixed.shape[2], -1)

    def _pooled(self, states: torch.Tensor, run: _Run) -> torch.Tensor:
        by_text = states.view(run.texts, run.length, -1)
        return by_text[:, 0] if self._pooling == "cls" else by_text.mean(dim=1)


def _runs(lengths: Sequence[int]) -> Iterator[_Run]:
    start = 0
    for length, same in groupby(lengths):
        texts = len(list(same))
        yield _Run(start, texts, length)
        start += texts * length


@dataclass(frozen=True, slots=True)
class _Named:
    """Some of a model's weights, by the end of their names."""

    weights: Mapping[str, torch.Tensor]
    start: str

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.weights[f"{self.start}.{name}"].detach().float()

    def linear(self, *names: str) -> Int8Linear:
        """Layers that read the same input, as one."""
        both = [torch.cat([self[f"{name}.{part}"] for name in names]) for part in ("weight", "bias")]
        return Int8Linear(*both)

    def within(self, name: str) -> _Named:
        return _Named(self.weights, f"{self.start}.{name}")


def _norm(named: _Named, epsilon: float) -> _Norm:
    return _Norm(named["LayerNorm.weight"], named["LayerNorm.bias"], epsilon)


def _layer(layer: _Named, epsilon: float) -> _Layer:
    return _Layer(
        attend=layer.linear("attention.self.query", "attention.self.key", "attention.self.value"),
        attended=layer.linear("attention.output.dense"),
        attention_norm=_norm(layer.within("attention.output"), epsilon),
        widen=layer.linear("intermediate.dense"),
        narrow=layer.linear("output.dense"),
        norm=_norm(layer.within("output"), epsilon),
    )


Item = TypeVar("Item")
Pack = TypeVar("Pack")
Encoded = TypeVar("Encoded")


class Int8Encoder:
    """A BERT-like sentence-transformers model in 8-bit integers behind `encoder.Encoder`, for CPUs that multiply those.

    Packs of texts are spread over threads of its own, each of which computes alone: more threads change no bit.
    """

    def __init__(self, folder: Path, settings: EmbeddingSettings) -> None:
        model = read_bert(folder)
        if model is None:
            raise ConfigurationError(
                f"embedding.precision: int8 takes BERT, RoBERTa and XLM-RoBERTa with mean or first-token pooling and "
                f"weights in model.safetensors, found another model in {folder}: use auto, bf16 or fp32"
            )
        given = input_of(folder, settings)
        check_window(given.window, folder, model.longest)
        with computing_with(1):  # many small steps: two threads would wait for one another at each on a busy machine
            self._bert = PackedBert(read_weights(folder), model)
        self._read = TokenReader(folder, given.window, model.pad, given.document_prompt)
        self._count = TokenCounter(folder, given.window, given.document_prompt)
        threads = settings.threads or torch.get_num_threads()
        self._threads = ThreadPoolExecutor(threads, "encoder", torch.set_num_threads, (1,))
        self._shares = threads
        self.name = display_name(folder, settings)
        self.max_tokens = self._count.limit
        self.dimension = vector_dimension(settings, self._bert.dimension)
        self._queries: Int8Encoder | None = None
        if given.query_prompt != given.document_prompt:
            asking = copy(self)
            asking._read = TokenReader(folder, given.window, model.pad, given.query_prompt)
            self._queries = asking

    @property
    def queries(self) -> Int8Encoder:
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
        read = self._read(texts)

        def encoded(rows: Sequence[int]) -> tuple[np.ndarray, list[Item]]:
            whole, states = self._bert.encode([read[row].ids for row in rows])
            return whole, [keep(of_text[read[row].own]) for row, of_text in zip(rows, states, strict=True)]

        vectors = np.zeros((len(read), self.dimension), dtype=np.float32)
        per_text: dict[int, Item] = {}
        lengths = [len(item.ids) for item in read]
        # No thread waits while another has all the texts.
        share = -(-sum(lengths) // self._shares)
        rows_of = list(packs(lengths, min(PACK_TOKENS, share)))
        for rows, (whole, of_rows) in zip(rows_of, self._side_by_side(encoded, rows_of), strict=True):
            vectors[rows] = shortened(whole, self.dimension)
            per_text |= dict(zip(rows, of_rows, strict=True))
        return vectors, [per_text[row] for row in range(len(read))]

    def _side_by_side(self, encoded: Callable[[Pack], Encoded], rows_of: Sequence[Pack]) -> Iterable[Encoded]:
        """What becomes of each pack; one alone, as a query is, is not worth waking another thread."""
        if len(rows_of) != 1:
            return self._threads.map(encoded, rows_of)
        with computing_with(1):
            return [encoded(rows_of[0])]


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    """A model's weights by name."""
    try:
        return load_file(folder / WEIGHTS)
    except Exception as error:  # the library raises errors of its own for damaged files
        raise ModelUnavailableError(
            f"embedding.model: expected weights in {folder / WEIGHTS}, found: {error}"
        ) from error


PACK_TOKENS = 512
"""In one forward pass, where nothing is padded: what the processor's caches hold."""

PAIRS_AT_ONCE = 2
"""Pairs in one forward pass, of which as many run side by side as there are threads: what the caches hold."""

_NEEDED = ("pooler.dense.weight", "pooler.dense.bias")


class Int8CrossEncoder:
    """A cross-encoder of one number per pair, within some hundredths of single precision; shared by threads."""

    def __init__(self, folder: Path, model: Bert, settings: CrossEncoderSettings, threads: int) -> None:
        """Read a model."""
        weights = read_weights(folder)
        try:
            self._pooler = [weights[f"{model.prefix}{name}"].float() for name in _NEEDED]
            self._classifier = [weights[f"classifier.{name}"].float() for name in ("weight", "bias")]
        except KeyError as error:
            raise ModelUnavailableError(f"{folder}: expected the weights of a classifier, found no {error}") from error
        with computing_with(1):  # as above
            self._bert = PackedBert(weights, model)
        self._read = PairReader(folder, min(settings.max_tokens, model.longest), settings.most_tokens)
        threads = threads or torch.get_num_threads()
        self._threads = ThreadPoolExecutor(threads, "cross-encoder", torch.set_num_threads, (1,))

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the query, in [0, 1].

        The longest are cut further where all together have too many tokens, so that no query waits much longer than
        others.
        """
        pairs = self._read(query, texts)
        order = sorted(range(len(pairs)), key=lambda at: -len(pairs[at].ids))
        count = -(-len(order) // PAIRS_AT_ONCE)
        # Every so many of the sorted ones: packs that run side by side take equally long.
        packs = [order[start::count] for start in range(count)]
        scores = np.zeros(len(pairs))
        encoded = self._threads.map(lambda rows: self._scored([pairs[row] for row in rows]), packs)
        for rows, of_rows in zip(packs, encoded, strict=True):
            scores[rows] = of_rows
        return [float(score) for score in scores]

    def _scored(self, pairs: Sequence[PairIds]) -> np.ndarray:
        with torch.inference_mode():
            first = self._bert.first_states([pair.ids for pair in pairs], [pair.types for pair in pairs])
            logits = functional.linear(torch.tanh(functional.linear(first, *self._pooler)), *self._classifier)
            return np.asarray(torch.sigmoid(logits[:, 0].double()).numpy())
