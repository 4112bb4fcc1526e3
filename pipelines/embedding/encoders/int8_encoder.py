"""A BERT-like model in 8-bit integers as an encoder, read from its files without any other library's model code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from safetensors.torch import load_file

from pipelines.domain.errors import ConfigurationError, ModelUnavailableError
from pipelines.embedding.encoders.bert_files import WEIGHTS, read_bert
from pipelines.embedding.encoders.matryoshka import kept_dimension, shortened
from pipelines.embedding.encoders.packed import PackedBert, packs
from pipelines.embedding.encoders.threads import computing_with
from pipelines.embedding.models import check_window, display_name
from pipelines.embedding.settings import EmbeddingSettings
from pipelines.embedding.tokens import TokenCounter, TokenReader

Kept = TypeVar("Kept")
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
        self._bert = PackedBert(read_weights(folder), model)
        self._read = TokenReader(folder, settings.max_tokens, model.pad)
        self._count = TokenCounter(folder, settings.max_tokens)
        self._pack_tokens = settings.pack_tokens
        threads = settings.threads or torch.get_num_threads()
        self._threads = ThreadPoolExecutor(threads, "encoder", torch.set_num_threads, (1,))
        self._shares = threads
        self.name = display_name(folder, settings)
        self.max_tokens = self._count.limit
        self.dimension = kept_dimension(settings, self._bert.dimension)

    def count_tokens(self, text: str) -> int:
        """Length of a text in the encoder's own tokens, special tokens not counted."""
        return self._count(text)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts, in their order: float32 (n, dimension), unit rows, the same bits for a text always."""
        return self.encode_tokens(texts, lambda _: None)[0]

    def encode_tokens(self, texts: Sequence[str], keep: Callable[[np.ndarray], Kept]) -> tuple[np.ndarray, list[Kept]]:
        """See `encoder.Encoder`."""
        found = self._read(texts)

        def encoded(rows: Sequence[int]) -> tuple[np.ndarray, list[Kept]]:
            whole, states = self._bert.encode([found[row].ids for row in rows])
            return whole, [keep(of_text[found[row].own]) for row, of_text in zip(rows, states, strict=True)]

        vectors = np.zeros((len(found), self.dimension), dtype=np.float32)
        kept: dict[int, Kept] = {}
        lengths = [len(item.ids) for item in found]
        # No thread waits while another has all the texts.
        share = -(-sum(lengths) // self._shares)
        rows_of = list(packs(lengths, min(self._pack_tokens, share)))
        for rows, (whole, of_rows) in zip(rows_of, self._side_by_side(encoded, rows_of), strict=True):
            vectors[rows] = shortened(whole, self.dimension)
            kept |= dict(zip(rows, of_rows, strict=True))
        return vectors, [kept[row] for row in range(len(found))]

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
