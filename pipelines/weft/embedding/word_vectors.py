"""Static vectors of short texts, from the input embeddings of the bundled model: no forward pass, no PyTorch.

Tokens are weighted by their rarity (Arora, Liang and Ma, ICLR 2017), which by Zipf's law follows from their place in
the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from weft.domain.errors import ModelUnavailableError
from weft.embedding.models import BUNDLED, locate
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import encodable, read_tokenizer

_TABLE = "embeddings.word_embeddings.weight"
_MOST_FREQUENT = "the"  # the words begin with it; what stands before are signs and single letters
_LONGEST = 4096  # characters of a text that count


class WordVectors:
    """Vectors of texts by the words in them."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = read_tokenizer(folder)
        file = folder / "model.safetensors"
        try:
            with safe_open(file, framework="numpy") as tensors:
                self._table: np.ndarray = tensors.get_tensor(_TABLE)
        except (OSError, SafetensorError) as error:
            raise ModelUnavailableError(f"expected word embeddings {_TABLE} in {file}, found: {error}") from error
        first = self._tokenizer.token_to_id(_MOST_FREQUENT) or 0
        places = np.arange(len(self._table)) - first
        self._weights = np.log1p(np.maximum(places, 0)).astype(np.float32)

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """One vector a text, float32 (n, dimension), of any length; zero for a text without words."""
        vectors = np.zeros((len(texts), self._table.shape[1]), np.float32)
        for row, text in enumerate(texts):
            tokens = self._tokenizer.encode(encodable(text[:_LONGEST]), add_special_tokens=False).ids
            weights = self._weights[tokens]
            if (total := float(weights.sum())) > 0.0:
                vectors[row] = weights @ self._table[tokens] / total
        return vectors


@cache
def load_word_vectors(settings: EmbeddingSettings) -> WordVectors:
    """The bundled model's word vectors, 47 MB once in a process: thresholds are of this measure."""
    return WordVectors(locate(settings.model_copy(update={"model": BUNDLED})))
