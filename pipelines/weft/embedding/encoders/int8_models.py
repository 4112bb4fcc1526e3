"""BERT-like models in 8-bit integers, read from their files: an encoder, and a scorer of pairs (RET-10, ING-21)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional

from weft.domain.errors import ConfigurationError, ModelUnavailableError
from weft.embedding.encoders.bert_files import WEIGHTS, Bert, read_bert
from weft.embedding.encoders.compute import computing_with, packs, shortened, vector_dimension
from weft.embedding.encoders.packed import PackedBert
from weft.embedding.models import check_window, display_name
from weft.embedding.settings import CrossEncoderSettings, EmbeddingSettings
from weft.embedding.tokens import PairIds, PairReader, TokenCounter, TokenReader

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
        check_window(settings, folder, model.longest)
        with computing_with(1):  # many small steps: two threads would wait for one another at each on a busy machine
            self._bert = PackedBert(read_weights(folder), model)
        self._read = TokenReader(folder, settings.max_tokens, model.pad)
        self._count = TokenCounter(folder, settings.max_tokens)
        threads = settings.threads or torch.get_num_threads()
        self._threads = ThreadPoolExecutor(threads, "encoder", torch.set_num_threads, (1,))
        self._shares = threads
        self.name = display_name(folder, settings)
        self.max_tokens = self._count.limit
        self.dimension = vector_dimension(settings, self._bert.dimension)

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
    """A model's weights by name.

    Raises:
        ModelUnavailableError: The file is damaged.
    """
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
    """A cross-encoder that gives one number per pair, for CPUs that multiply 8-bit integers; shared by threads.

    Its scores stay within some hundredths of those in single precision; more threads change no bit of them.
    """

    def __init__(self, folder: Path, model: Bert, settings: CrossEncoderSettings, threads: int) -> None:
        """Read a model.

        Raises:
            ModelUnavailableError: A file is damaged, or is not that of a classifier.
        """
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

        Longer ones are cut to the model's window, and the longest further where all together have too many tokens: so
        that no query waits much longer than others.
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
