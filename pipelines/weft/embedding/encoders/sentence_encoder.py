"""Any sentence-transformers model as an encoder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from transformers.utils.logging import disable_progress_bar

from weft.domain.errors import ModelUnavailableError
from weft.embedding.encoders.compute import computing_with, padded_batches, shortened, vector_dimension
from weft.embedding.models import check_window, display_name, input_of
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import TokenCounter, TokenReader

Item = TypeVar("Item")


_ON_GPU = 8
"""Times the tokens of a batch on a CPU: at 65,536 instead of 8,192 a GPU is twice as fast."""


class SentenceEncoder:
    """Any sentence-transformers model behind `encoder.Encoder`.

    A text is padded to the next multiple of `LENGTH_STEP` and shares a batch only with texts of that length: so its
    vector does not depend on what else is encoded (ARC-9). A GPU may round the last bits otherwise (cosine 1 − 10⁻⁵).
    """

    def __init__(self, folder: Path, settings: EmbeddingSettings, *, device: str, autocast: bool) -> None:
        """Load a model."""
        given = input_of(folder, settings)
        batch_tokens = settings.batch_tokens * (_ON_GPU if device == "cuda" else 1)
        self._settings = settings.model_copy(update={"max_tokens": given.window, "batch_tokens": batch_tokens})
        self._device = device
        self._autocast = autocast
        self._model = _load(folder, device)
        check_window(given.window, folder, self._model.max_seq_length)
        self._count = TokenCounter(folder, given.window, given.document_prompt)
        self._pad = int(self._model.tokenizer.pad_token_id or 0)
        self._read = TokenReader(folder, given.window, self._pad, given.document_prompt)
        self.name = display_name(folder, settings)
        self.max_tokens = self._count.limit
        self.dimension = vector_dimension(settings, self._forward([[self._pad]], 1)["sentence_embedding"].shape[1])
        self._queries: SentenceEncoder | None = None
        if given.query_prompt != given.document_prompt:
            asking = copy(self)
            asking._read = TokenReader(folder, given.window, self._pad, given.query_prompt)
            self._queries = asking

    @property
    def queries(self) -> SentenceEncoder:
        """See `encoder.Encoder`."""
        return self._queries or self

    def count_tokens(self, text: str) -> int:
        """Length of a text in the encoder's own tokens, special tokens not counted."""
        return self._count(text)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts, in their order: float32 (n, dimension), unit rows, the same bits for a text always."""
        read = self._read(texts)
        vectors = np.zeros((len(read), self.dimension), dtype=np.float32)
        for rows, width in padded_batches([len(item.ids) for item in read], self._settings):
            # States of tokens stay where they are: taking them off a GPU takes longer than computing them.
            whole = self._forward([read[row].ids for row in rows], width)["sentence_embedding"]
            vectors[rows] = shortened(_numbers(whole), self.dimension)
        return vectors

    def encode_tokens(self, texts: Sequence[str], keep: Callable[[np.ndarray], Item]) -> tuple[np.ndarray, list[Item]]:
        """See `encoder.Encoder`."""
        read = self._read(texts)
        vectors = np.zeros((len(read), self.dimension), dtype=np.float32)
        per_text: dict[int, Item] = {}
        for rows, width in padded_batches([len(item.ids) for item in read], self._settings):
            output = self._forward([read[row].ids for row in rows], width)
            vectors[rows] = shortened(_numbers(output["sentence_embedding"]), self.dimension)
            states = _numbers(output["token_embeddings"])
            per_text |= {row: keep(states[at, read[row].own]) for at, row in enumerate(rows)}
        return vectors, [per_text[row] for row in range(len(read))]

    def _forward(self, ids: Sequence[Sequence[int]], width: int) -> dict[str, torch.Tensor]:
        tokens = np.full((len(ids), width), self._pad, dtype=np.int64)
        mask = np.zeros((len(ids), width), dtype=np.int64)
        for row, item in enumerate(ids):
            tokens[row, : len(item)] = item
            mask[row, : len(item)] = 1
        read = {"input_ids": tokens, "attention_mask": mask}
        features: dict[str, Any] = {name: torch.from_numpy(values).to(self._device) for name, values in read.items()}
        if self._read.prompt_tokens:
            features["prompt_length"] = self._read.prompt_tokens
        with (
            computing_with(self._settings.threads),
            torch.inference_mode(),
            torch.autocast(self._device, torch.bfloat16, enabled=self._autocast),
        ):
            return dict(self._model(features))


def _numbers(values: torch.Tensor) -> np.ndarray:
    return values.float().cpu().numpy()


def _load(folder: Path, device: str) -> Any:
    logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
    disable_progress_bar()  # type: ignore[no-untyped-call]  # a bar for a hundred small tensors tells nobody anything
    try:
        return SentenceTransformer(str(folder), device=device, local_files_only=True).eval()
    except Exception as error:  # whatever a foreign model folder makes the libraries raise
        raise ModelUnavailableError(
            f"embedding.model: expected a sentence-transformers model in {folder}, found: {error}"
        ) from error
