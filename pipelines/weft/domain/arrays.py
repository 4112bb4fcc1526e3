"""Arrays of numbers by what they hold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class TermWeights(NamedTuple):
    """A text as whole-numbered weights of terms of an encoder's vocabulary."""

    terms: NDArray[np.int32]  # int32 (n,), ids of the vocabulary, ascending, each once
    weights: NDArray[np.int32]  # int32 (n,), above 0

    def dot(self, other: TermWeights) -> int:
        """Sum over the terms of both of weight · weight: what a search scores, to the last digit."""
        _, own, others = np.intersect1d(self.terms, other.terms, assume_unique=True, return_indices=True)
        return int(self.weights[own].astype(np.int64) @ other.weights[others].astype(np.int64))

    @classmethod
    def of(cls, weights: dict[int, int]) -> TermWeights:
        """Weights by term."""
        terms = sorted(weights)
        return cls(np.array(terms, dtype=np.int32), np.array([weights[term] for term in terms], dtype=np.int32))
