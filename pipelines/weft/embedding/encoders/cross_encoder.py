"""Any cross-encoder of sentence-transformers: it reads query and text together (RET-10)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import CrossEncoder

from weft.domain.errors import ModelUnavailableError
from weft.embedding.encoders.compute import computing_with
from weft.embedding.encoders.int8_models import PAIRS_AT_ONCE
from weft.embedding.settings import CrossEncoderSettings


class CrossEncoderModel:
    """A cross-encoder that gives one number per pair; deterministic, shared by threads."""

    def __init__(self, settings: CrossEncoderSettings, device: str, threads: int) -> None:
        """Load a model by path or hub name."""
        self._settings = settings
        self._threads = threads
        self._model = _load(settings, device)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the query, in [0, 1]; longer ones are cut to the model's window."""
        if not texts:
            return []
        # Neighbours in length share a batch: padding is most of what a mixed one computes.
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        scores = np.zeros(len(texts))
        scores[order] = self._predicted([(query, texts[at]) for at in order])
        return [float(score) for score in scores]

    def _predicted(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        try:
            with computing_with(self._threads), torch.inference_mode():
                scores = self._model.predict(
                    pairs,
                    batch_size=PAIRS_AT_ONCE,
                    activation_fn=torch.nn.Sigmoid(),
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
        except Exception as error:  # whatever a foreign model raises
            raise ModelUnavailableError(
                f"{self._settings.model}: expected a number per pair, found: {error}"
            ) from error
        return np.asarray(scores, dtype=np.float64).clip(0.0, 1.0)


def _load(settings: CrossEncoderSettings, device: str) -> Any:
    logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
    try:
        wanted = None if device == "auto" else device
        model = CrossEncoder(settings.model, device=wanted, max_length=settings.max_tokens)
    except Exception as error:  # whatever a foreign model folder or an unreachable hub makes the libraries raise
        raise ModelUnavailableError(
            f"retrieval.rerank.cross_encoder.model: expected a cross-encoder at the path or of the name "
            f"{settings.model!r}, found: {error}; name another one, or none to do without"
        ) from error
    if (labels := model.config.num_labels) != 1:
        raise ModelUnavailableError(
            f"retrieval.rerank.cross_encoder.model: expected one number per pair, {settings.model!r} gives {labels}"
        )
    return model.eval()
