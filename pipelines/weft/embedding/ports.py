"""What is needed of models: texts to vectors, texts to weights of terms, pairs of texts to scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from weft.domain.arrays import TermWeights

Item = TypeVar("Item")


class TextEncoder(Protocol):
    """Turns texts into vectors whose dot product is their similarity."""

    @property
    def name(self) -> str:
        """The model's name, fit for a folder: its vectors are kept in a generation under it."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts, in their order: float32 (n, dimension), unit rows, the same bits for a text always."""

    def encode_tokens(self, texts: Sequence[str], keep: Callable[[np.ndarray], Item]) -> tuple[np.ndarray, list[Item]]:
        """Vectors as `encode` gives them, and from the same forward pass what is kept of each text's tokens.

        Args:
            keep: Takes one text's last token states, float32 (tokens, width), special tokens left out; the states
                themselves are let go.
        """


class TermEncoder(Protocol):
    """Turns texts into weights of terms, whose dot product is how well they match."""

    @property
    def name(self) -> str:
        """The model's name, fit for a folder: a generation names whose weights it keeps."""

    def weigh(self, texts: Sequence[str]) -> list[TermWeights]:
        """The weights of texts, in their order; the same for a text always."""

    def weigh_queries(self, texts: Sequence[str]) -> list[TermWeights]:
        """The weights of queries, in their order; the same for a text always."""


class TermHead(Protocol):
    """Weighs terms by the token states of the forward pass that makes a text's vector."""

    def of_tokens(self, states: np.ndarray) -> np.ndarray:
        """The weights of one text's own tokens, float32 (tokens,), from their last states (tokens, width)."""

    def of_texts(self, texts: Sequence[str], tokens: Sequence[np.ndarray], most: int) -> list[TermWeights]:
        """The weights of texts, in their order: of each the `most` heaviest terms."""


class PairScorer(Protocol):
    """Says how well texts answer a query, reading both together."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One number in [0, 1] per text, in their order; ModelUnavailableError where it fails."""
