"""Learned weights of terms, by a sparse encoder or by the sparse head of the encoder of vectors (RET-7, RET-22).

Nothing imports this module: it is loaded by its name where `embedding.sparse.model` names a model.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from sentence_transformers import SparseEncoder
from transformers.utils.logging import disable_progress_bar

from weft.domain.arrays import TermWeights
from weft.domain.errors import ModelUnavailableError
from weft.embedding.encoders.compute import computing_with
from weft.embedding.encoders.encoder import Encoder
from weft.embedding.models import Model, Weighing, input_of, locate, model_at
from weft.embedding.ports import TermEncoder, TextEncoder
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import TokenReader
from weft.runtime.storage.sqlite import blob_key

_SAME = "same"  # as the model: the sparse head of `embedding.model`, in the forward pass that makes the vector
_HEAD_FILE = "sparse_linear.pt"  # as BGE-M3 names it
_SETTING = "embedding.sparse.model"
_HELD = 256  # texts whose forward passes are held for the other channel: two batches of queries

Item = TypeVar("Item")


def weighing_of(settings: EmbeddingSettings, encoder: Model, made_with: str) -> Weighing:
    """How terms are weighed, beside the default encoder and what decides its vectors."""
    shared = settings.sparse.model == _SAME
    read = {"most_terms", "scale"} if shared else {"max_tokens", "most_terms", "scale"}
    facts = json.dumps(settings.sparse.model_dump(mode="json", include=read), sort_keys=True)
    if shared:
        _head_in(encoder.folder)
        return Weighing(encoder, blob_key(made_with, facts), shared)
    model = model_at(settings.sparse.model, _SETTING)
    return Weighing(model, blob_key(model.identity, facts), shared)


def load_for_queries(settings: EmbeddingSettings, encoder: Encoder) -> tuple[TextEncoder, TermEncoder]:
    """The default encoder as queries are to be read by from now on, and what weighs terms."""
    if settings.sparse.model == _SAME:
        both = OnePassEncoder(encoder, SparseHead(settings))
        if encoder.queries is not encoder:
            both = OnePassEncoder(encoder.queries, SparseHead(settings, queries=True), both)
        return both, both
    return encoder.queries, load_sparse_encoder(settings)


def load_sparse_encoder(settings: EmbeddingSettings) -> TermEncoder:
    """The configured sparse encoder."""
    return SparseEncoderModel(model_at(settings.sparse.model, _SETTING), settings)


def _head_in(folder: Path) -> Path:
    file = folder / _HEAD_FILE
    if not file.is_file():
        raise ModelUnavailableError(
            f"{_SETTING}: {_SAME!r} expects {_HEAD_FILE} in the folder of embedding.model, as BGE-M3 has it, found "
            f"none in {folder}: name a sparse encoder, or none to do without"
        )
    return file


class SparseEncoderModel:
    """A sparse encoder with whole numbers as weights: round(weight · scale); each text is encoded alone (ARC-9)."""

    def __init__(self, model: Model, settings: EmbeddingSettings) -> None:
        """Load a model."""
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


class SparseHead:
    """A linear layer from a token's last state to its weight, read from the encoder's folder.

    Lexical retrieval of Chen, Xiao, Zhang, Luo, Lian and Liu, M3-Embedding (Findings of ACL 2024): a token with last
    hidden state h weighs relu(w · h + b). A term weighs as much as the heaviest of its tokens.
    """

    def __init__(self, settings: EmbeddingSettings, *, queries: bool = False) -> None:
        """Read the head; its texts are contents, or queries, behind the prompt of these."""
        folder = locate(settings)
        file = _head_in(folder)
        try:
            layer = torch.load(file, map_location="cpu", weights_only=True)
            (self._weight,), (self._bias,) = layer["weight"].float().numpy(), layer["bias"].float().numpy()
        except Exception as error:  # the library raises errors of its own for damaged files
            raise ModelUnavailableError(
                f"embedding.sparse.model: expected the weight and bias of a layer with one output in {file}, found: "
                f"{error}; name a sparse encoder, or none to do without"
            ) from error
        given = input_of(folder, settings)
        prompt = given.query_prompt if queries else given.document_prompt
        self._read = TokenReader(folder, given.window, pad=0, prompt=prompt)
        self.settings = settings.sparse

    def of_tokens(self, states: np.ndarray) -> np.ndarray:
        """The weights of one text's own tokens, float32 (tokens,), from their last states (tokens, width)."""
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
    """An encoder and its sparse head: who asks for a query's vector and for its weights causes one forward pass.

    Shared by threads. What is held of the newest texts takes some 5 MB of questions at a width of 1,024.
    """

    def __init__(self, encoder: TextEncoder, head: SparseHead, contents: OnePassEncoder | None = None) -> None:
        self.name = encoder.name
        self._contents = contents  # what reads contents, where that is another one than reads queries
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
        return (self._contents or self)._weighed(texts, self._head.settings.most_terms)

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


def whole_weights(weights: tuple[np.ndarray, np.ndarray], *, scale: float, most: int) -> TermWeights:
    """Term ids and weights as whole numbers: the `most` heaviest, of equals the lower ids; none below one half.

    Examples:
        >>> read = np.array([9, 4, 7]), np.array([0.5, 2.0, 0.001])
        >>> weighed = whole_weights(read, scale=100, most=2)
        >>> weighed.terms.tolist(), weighed.weights.tolist()
        ([4, 9], [200, 50])
    """
    terms, values = weights
    whole = np.rint(np.asarray(values, dtype=np.float64) * scale).astype(np.int32)
    heaviest = np.lexsort((terms, -whole))[:most]
    heaviest = heaviest[whole[heaviest] > 0]
    ordered = heaviest[np.argsort(terms[heaviest])]
    return TermWeights(terms[ordered].astype(np.int32), whole[ordered])
