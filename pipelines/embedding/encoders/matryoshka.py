"""Shorter vectors by leaving out their ends, for models trained so that the first numbers say most.

Kusupati et al., Matryoshka Representation Learning (NeurIPS 2022).
"""

from __future__ import annotations

import numpy as np

from pipelines.domain.errors import ConfigurationError
from pipelines.embedding.settings import EmbeddingSettings


def kept_dimension(settings: EmbeddingSettings, width: int) -> int:
    """How many of a model's `width` numbers are kept.

    Raises:
        ConfigurationError: More are wanted than the model gives.
    """
    if settings.dimension > width:
        raise ConfigurationError(
            f"embedding.dimension: {settings.model} gives {width} numbers, found {settings.dimension}: "
            f"use {width} or less, or 0 for all"
        )
    return settings.dimension or width


def shortened(vectors: np.ndarray, dimension: int) -> np.ndarray:
    """The first numbers of each vector, of length 1 again: float32 (n, dimension); zeros stay zeros.

    Examples:
        >>> shortened(np.array([[3.0, 4.0, 12.0]]), 2).tolist()
        [[0.6000000238418579, 0.800000011920929]]
    """
    kept = np.asarray(vectors[:, :dimension], dtype=np.float32)
    # Each row by itself and in double precision: a vector's bits must not depend on how many rows there are.
    lengths = np.sqrt((kept.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return (kept / np.where(lengths > 0.0, lengths, 1.0)).astype(np.float32)
