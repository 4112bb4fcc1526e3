"""The encoder: texts to unit vectors; the one importer of sentence_transformers and transformers."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from transformers.utils.logging import disable_progress_bar

from pipelines.domain.errors import ConfigurationError, ModelUnavailableError
from pipelines.embedding.matryoshka import kept_dimension, shortened
from pipelines.embedding.models import display_name, locate
from pipelines.embedding.packed import PackedBert, packs
from pipelines.embedding.precision import pooling_of, resolve_precision
from pipelines.embedding.settings import EmbeddingSettings
from pipelines.embedding.tokens import TokenCounter, TokenReader

Kept = TypeVar("Kept")


class Encoder(Protocol):
    """Turns texts into vectors whose dot product is their similarity.

    Attributes:
        name: The model's name, fit for a folder.
        dimension: Length of a vector.
        max_tokens: The longest text that is read whole, in `count_tokens`; of longer ones the end is left out.
    """

    name: str
    dimension: int
    max_tokens: int

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts, in their order: float32 (n, dimension), unit rows, the same bits for a text always."""
        ...

    def encode_tokens(self, texts: Sequence[str], keep: Callable[[np.ndarray], Kept]) -> tuple[np.ndarray, list[Kept]]:
        """Vectors as `encode` gives them, and from the same forward pass what is kept of each text's tokens.

        Args:
            keep: Takes one text's last token states, float32 (tokens, width), special tokens left out; the states
                themselves are let go.
        """
        ...

    def count_tokens(self, text: str) -> int:
        """Length of a text in the encoder's own tokens, special tokens not counted."""
        ...


class SentenceEncoder:
    """Any sentence-transformers model behind `Encoder`.

    A text is padded to the next multiple of `length_step`, never to its longest batch mate, and shares a batch only
    with texts of that padded length: so its vector does not depend on what else is encoded (ARC-9).
    """

    def __init__(self, folder: Path, settings: EmbeddingSettings, *, autocast: bool) -> None:
        """Load a model.

        Args:
            autocast: Multiply in bf16.
        """
        self._settings = settings
        self._device = _device(settings.device)
        self._autocast = autocast
        if settings.threads:
            torch.set_num_threads(settings.threads)
        self._model = _load(folder, self._device, settings)
        self._count = TokenCounter(folder, settings.max_tokens)
        self._pad = int(self._model.tokenizer.pad_token_id or 0)
        self._read = TokenReader(folder, settings.max_tokens, self._pad)
        self.name = display_name(folder, settings)
        self.max_tokens = self._count.limit
        self.dimension = kept_dimension(settings, len(self._forward([[self._pad]], 1)[0][0]))

    def count_tokens(self, text: str) -> int:
        """Length of a text in the encoder's own tokens, special tokens not counted."""
        return self._count(text)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts, in their order: float32 (n, dimension), unit rows, the same bits for a text always."""
        return self.encode_tokens(texts, lambda _: None)[0]

    def encode_tokens(self, texts: Sequence[str], keep: Callable[[np.ndarray], Kept]) -> tuple[np.ndarray, list[Kept]]:
        """See `Encoder`."""
        found = self._read(texts)
        vectors = np.zeros((len(found), self.dimension), dtype=np.float32)
        kept: dict[int, Kept] = {}
        for rows, width in _batches([len(item.ids) for item in found], self._settings):
            whole, states = self._forward([found[row].ids for row in rows], width)
            vectors[rows] = shortened(whole, self.dimension)
            kept |= {row: keep(states[at, found[row].own]) for at, row in enumerate(rows)}
        return vectors, [kept[row] for row in range(len(found))]

    def _forward(self, ids: Sequence[Sequence[int]], width: int) -> tuple[np.ndarray, np.ndarray]:
        tokens = torch.full((len(ids), width), self._pad, dtype=torch.long)
        mask = torch.zeros((len(ids), width), dtype=torch.long)
        for row, item in enumerate(ids):
            tokens[row, : len(item)] = torch.tensor(item, dtype=torch.long)
            mask[row, : len(item)] = 1
        features = {"input_ids": tokens.to(self._device), "attention_mask": mask.to(self._device)}
        with torch.inference_mode(), torch.autocast(self._device, torch.bfloat16, enabled=self._autocast):
            found = self._model(features)
        return found["sentence_embedding"].float().cpu().numpy(), found["token_embeddings"].float().cpu().numpy()


class Int8Encoder:
    """A BERT-like sentence-transformers model in 8-bit integers behind `Encoder`, for CPUs that multiply those.

    Packs of texts are spread over threads of its own, each of which computes alone: more threads change no bit.
    """

    def __init__(self, folder: Path, settings: EmbeddingSettings) -> None:
        pooling = pooling_of(folder)
        if pooling is None:
            raise ConfigurationError(
                f"embedding.precision: int8 takes BERT, RoBERTa and XLM-RoBERTa with mean or first-token pooling, "
                f"found another model in {folder}: use auto, bf16 or fp32"
            )
        model = _load(folder, "cpu", settings)
        self._bert = PackedBert(model[0].model, pooling)
        self._read = TokenReader(folder, settings.max_tokens, int(model.tokenizer.pad_token_id or 0))
        self._count = TokenCounter(folder, settings.max_tokens)
        self._pack_tokens = settings.pack_tokens
        threads = settings.threads or torch.get_num_threads()
        self._threads = ThreadPoolExecutor(threads, "encoder", torch.set_num_threads, (1,))
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
        """See `Encoder`."""
        found = self._read(texts)

        def encoded(rows: Sequence[int]) -> tuple[np.ndarray, list[Kept]]:
            whole, states = self._bert.encode([found[row].ids for row in rows])
            return whole, [keep(of_text[found[row].own]) for row, of_text in zip(rows, states, strict=True)]

        vectors = np.zeros((len(found), self.dimension), dtype=np.float32)
        kept: dict[int, Kept] = {}
        rows_of = list(packs([len(item.ids) for item in found], self._pack_tokens))
        for rows, (whole, of_rows) in zip(rows_of, self._threads.map(encoded, rows_of), strict=True):
            vectors[rows] = shortened(whole, self.dimension)
            kept |= dict(zip(rows, of_rows, strict=True))
        return vectors, [kept[row] for row in range(len(found))]


def load_encoder(settings: EmbeddingSettings) -> Encoder:
    """The configured encoder, ready to encode.

    Raises:
        ModelUnavailableError: The model cannot be found or loaded.
        ConfigurationError: The model cannot do what the settings ask for.
    """
    folder = locate(settings)
    device = _device(settings.device)
    precision = resolve_precision(settings.precision, folder, device)
    if precision == "int8":
        if device != "cpu":
            raise ConfigurationError("embedding.precision: int8 is for the CPU: use auto, or set embedding.device=cpu")
        return Int8Encoder(folder, settings)
    return SentenceEncoder(folder, settings, autocast=precision == "bf16")


def _batches(lengths: Sequence[int], settings: EmbeddingSettings) -> Iterator[tuple[list[int], int]]:
    """Rows to encode together and their padded width, longest first so that memory peaks at once."""
    by_width: defaultdict[int, list[int]] = defaultdict(list)
    for row, length in enumerate(lengths):
        steps = max(1, -(-length // settings.length_step))
        by_width[min(settings.max_tokens, steps * settings.length_step)].append(row)
    for width in sorted(by_width, reverse=True):
        size = max(1, settings.batch_tokens // width)
        rows = by_width[width]
        for start in range(0, len(rows), size):
            yield rows[start : start + size], width


def _device(wanted: str) -> str:
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ModelUnavailableError("embedding.device: cuda is wanted, but PyTorch finds none here: use auto or cpu")
    return wanted


def _load(folder: Path, device: str, settings: EmbeddingSettings) -> Any:
    logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
    disable_progress_bar()  # type: ignore[no-untyped-call]  # a bar for a hundred small tensors tells nobody anything
    try:
        model = SentenceTransformer(str(folder), device=device, local_files_only=True).eval()
    except Exception as error:  # whatever a foreign model folder makes the libraries raise
        raise ModelUnavailableError(
            f"embedding.model: expected a sentence-transformers model in {folder}, found: {error}"
        ) from error
    if model.max_seq_length is not None and settings.max_tokens > model.max_seq_length:
        raise ConfigurationError(
            f"embedding.max_tokens: {folder.name} reads at most {model.max_seq_length} tokens, "
            f"found {settings.max_tokens}"
        )
    return model
