"""The sparse head of an encoder: weights of terms from the forward pass that makes the vector (RET-7).

Lexical retrieval of Chen, Xiao, Zhang, Luo, Lian and Liu, M3-Embedding (Findings of ACL 2024): a token with last hidden
state h weighs relu(w · h + b). A term weighs as much as the heaviest of its tokens.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

import numpy as np
import torch

from weft.domain.errors import ModelUnavailableError
from weft.domain.matching import TermWeights
from weft.embedding.encoders.compute import whole_weights
from weft.embedding.models import locate, sparse_head_in
from weft.embedding.ports import TextEncoder
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import TokenReader

_HELD = 256  # texts whose forward passes are held for the other channel: two batches of queries

Item = TypeVar("Item")


class SparseHead:
    """A linear layer from a token's last state to its weight, read from the encoder's folder."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        """Read the head.

        Raises:
            ModelUnavailableError: There is none, or it is no layer with one output.
        """
        folder = locate(settings)
        file = sparse_head_in(folder)
        try:
            layer = torch.load(file, map_location="cpu", weights_only=True)
            (self._weight,), (self._bias,) = layer["weight"].float().numpy(), layer["bias"].float().numpy()
        except Exception as error:  # the library raises errors of its own for damaged files
            raise ModelUnavailableError(
                f"embedding.sparse.model: expected the weight and bias of a layer with one output in {file}, found: "
                f"{error}; name a sparse encoder, or none to do without"
            ) from error
        self._read = TokenReader(folder, settings.max_tokens, pad=0)
        self.settings = settings.sparse

    def of_tokens(self, states: np.ndarray) -> np.ndarray:
        """The weights of one text's own tokens, float32 (tokens,), from their last states (tokens, width).

        Raises:
            ModelUnavailableError: The head is that of a model of another width.
        """
        if states.shape[1] != len(self._weight):
            raise ModelUnavailableError(
                f"embedding.sparse.model: expected a head for token states of {states.shape[1]} numbers, found one "
                f"for {len(self._weight)}: take the file that belongs to embedding.model"
            )
        return np.asarray(np.maximum(states @ self._weight + self._bias, 0.0))

    def of_texts(self, texts: Sequence[str], tokens: Sequence[np.ndarray], most: int) -> list[TermWeights]:
        """The weights of texts, in their order: each with its `most` heaviest; special and unknown tokens are none."""
        special = self._read.special
        weighed: list[TermWeights] = []
        for read, of_text in zip(self._read(texts), tokens, strict=True):
            ids = np.array(read.ids)[read.own]
            meant = ~np.isin(ids, special)
            terms, place = np.unique(ids[meant], return_inverse=True)
            heaviest = np.zeros(len(terms))
            np.maximum.at(heaviest, place, of_text[meant])
            weighed.append(whole_weights((terms, heaviest), scale=self.settings.scale, most=most))
        return weighed


class OnePassEncoder:
    """An encoder and its sparse head: whoever asks for a query's vector and for its weights causes one forward pass.

    Shared by threads: who asks first computes, and who asks for the same text meanwhile waits for that. Vectors and
    token states of the newest texts are held, some 5 MB of questions at a width of 1,024; what fails is not held.
    """

    def __init__(self, encoder: TextEncoder, head: SparseHead) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._head = head
        self._held: dict[str, Future[tuple[np.ndarray, np.ndarray]]] = {}
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts, in their order: float32 (n, dimension), unit rows."""
        return self.encode_tokens(texts, lambda _: None)[0]

    def encode_tokens(self, texts: Sequence[str], keep: Callable[[np.ndarray], Item]) -> tuple[np.ndarray, list[Item]]:
        """The same vectors, and what is kept of each text's token states; more texts than are held share nothing."""
        if not 0 < len(texts) <= _HELD:
            return self._encoder.encode_tokens(texts, keep)
        passes = self._passes(texts)
        return np.stack([vector for vector, _ in passes]), [keep(states) for _, states in passes]

    def weigh(self, texts: Sequence[str]) -> list[TermWeights]:
        """The weights of texts, in their order: of each the `most_terms` heaviest terms."""
        return self._weighed(texts, self._head.settings.most_terms)

    def weigh_queries(self, texts: Sequence[str]) -> list[TermWeights]:
        """The weights of queries, in their order: of each the `most_query_terms` heaviest terms."""
        return self._weighed(texts, self._head.settings.most_query_terms)

    def _weighed(self, texts: Sequence[str], most: int) -> list[TermWeights]:
        return self._head.of_texts(texts, self.encode_tokens(texts, self._head.of_tokens)[1], most)

    def _passes(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        with self._lock:
            new = [text for text in dict.fromkeys(texts) if text not in self._held]
            self._held |= {text: Future() for text in new}
            asked = [self._held[text] for text in texts]
            own = [self._held[text] for text in new]
            for oldest in list(self._held)[: max(0, len(self._held) - _HELD)]:
                del self._held[oldest]
        if new:
            try:
                for future, *made in zip(own, *self._encoder.encode_tokens(new, np.copy), strict=True):
                    future.set_result((made[0], made[1]))
            except BaseException as error:
                with self._lock:
                    self._held = {text: future for text, future in self._held.items() if future not in own}
                for future in own:
                    future.set_exception(error)
                raise
        return [future.result() for future in asked]
