"""Any sparse encoder of sentence-transformers: texts to weights of terms of its vocabulary (RET-7, RET-22)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SparseEncoder
from transformers.utils.logging import disable_progress_bar

from weft.domain.errors import ModelUnavailableError
from weft.domain.matching import TermWeights
from weft.embedding.encoders.compute import computing_with, whole_weights
from weft.embedding.models import Model
from weft.embedding.settings import EmbeddingSettings


class SparseEncoderModel:
    """A sparse encoder whose weights are whole numbers: round(weight · scale).

    Each text is encoded by itself, so that its weights never depend on its batch (ARC-9). A model that looks up the
    weights of a query's tokens does that; others read a query as they read a text.
    """

    def __init__(self, model: Model, settings: EmbeddingSettings) -> None:
        """Load a model.

        Raises:
            ModelUnavailableError: It cannot be loaded, or makes no weights of terms.
        """
        self._settings = settings.sparse
        self._threads = settings.threads
        self._model = _load(model.folder, settings)
        self.name = model.name
        self.weigh_queries(["a"])  # what makes no weights is found out now

    def weigh(self, texts: Sequence[str]) -> list[TermWeights]:
        """The weights of texts, in their order: of each the `most_terms` heaviest terms."""
        return self._weighed(self._model.encode_document, texts, self._settings.most_terms)

    def weigh_queries(self, texts: Sequence[str]) -> list[TermWeights]:
        """The weights of queries, in their order: of each the `most_query_terms` heaviest terms."""
        return self._weighed(self._model.encode_query, texts, self._settings.most_query_terms)

    def _weighed(self, encode: Callable[..., Any], texts: Sequence[str], most: int) -> list[TermWeights]:
        if not texts:
            return []
        try:
            with computing_with(self._threads), torch.inference_mode():
                rows = encode(list(texts), batch_size=1, show_progress_bar=False, convert_to_tensor=False)
                read = [_read(row) for row in rows]
        except Exception as error:  # whatever a foreign model raises
            raise ModelUnavailableError(
                f"embedding.sparse.model: expected weights of terms from {self.name}, found: {error}"
            ) from error
        return [whole_weights(one, scale=self._settings.scale, most=most) for one in read]


def _read(row: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    row = (row if row.is_sparse else row.to_sparse()).coalesce().cpu()
    return row.indices()[0].numpy(), row.values().float().numpy()


def _load(folder: Path, settings: EmbeddingSettings) -> Any:
    logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
    disable_progress_bar()  # type: ignore[no-untyped-call]  # a bar for a hundred small tensors tells nobody anything
    device = None if settings.device == "auto" else settings.device
    try:
        model = SparseEncoder(str(folder), device=device, local_files_only=True).eval()
        longest = settings.sparse.max_tokens
        model.max_seq_length = min(longest, model.max_seq_length or longest)
    except Exception as error:  # whatever a foreign model folder makes the libraries raise
        raise ModelUnavailableError(
            f"embedding.sparse.model: expected a sparse encoder of sentence-transformers in {folder}, found: {error}; "
            "name another one, or none to do without"
        ) from error
    return model
