"""A BERT that scores pairs, in 8-bit integers: over packed tokens, as the encoder of the same kind (RET-10, ING-21)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from pipelines.domain.errors import ModelUnavailableError
from pipelines.embedding.encoders.bert_files import Bert
from pipelines.embedding.encoders.int8_encoder import read_weights
from pipelines.embedding.encoders.packed import PackedBert
from pipelines.embedding.settings import CrossEncoderSettings
from pipelines.embedding.tokens import PairIds, PairReader

_NEEDED = ("pooler.dense.weight", "pooler.dense.bias")


class Int8CrossEncoder:
    """A cross-encoder that gives one number per pair, for CPUs that multiply 8-bit integers; shared by threads.

    Its scores stay within some hundredths of those in single precision; more threads change no bit of them.
    """

    def __init__(self, folder: Path, model: Bert, settings: CrossEncoderSettings) -> None:
        """Read a model.

        Raises:
            ModelUnavailableError: A file is damaged, or is not that of a classifier.
        """
        weights = read_weights(folder)
        try:
            self._pooler = [weights[f"{model.prefix}{name}"].float() for name in _NEEDED]
            self._classifier = [weights[f"classifier.{name}"].float() for name in ("weight", "bias")]
        except KeyError as error:
            raise ModelUnavailableError(f"{folder}: expected the weights of a classifier, found no {error}") from error
        self._bert = PackedBert(weights, model)
        self._read = PairReader(folder, min(settings.max_tokens, model.longest), settings.most_tokens)
        self._batch = settings.batch
        threads = settings.threads or torch.get_num_threads()
        self._threads = ThreadPoolExecutor(threads, "cross-encoder", torch.set_num_threads, (1,))

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the query, in [0, 1].

        Longer ones are cut to the model's window, and the longest further where all together have too many tokens: so
        that no query waits much longer than others.
        """
        pairs = self._read(query, texts)
        order = sorted(range(len(pairs)), key=lambda at: -len(pairs[at].ids))
        count = -(-len(order) // self._batch)
        # Every so many of the sorted ones: packs that run side by side take equally long.
        packs = [order[start::count] for start in range(count)]
        scores = np.zeros(len(pairs))
        encoded = self._threads.map(lambda rows: self._scored([pairs[row] for row in rows]), packs)
        for rows, found in zip(packs, encoded, strict=True):
            scores[rows] = found
        return [float(score) for score in scores]

    def _scored(self, pairs: Sequence[PairIds]) -> np.ndarray:
        with torch.inference_mode():
            first = self._bert.first_states([pair.ids for pair in pairs], [pair.types for pair in pairs])
            logits = functional.linear(torch.tanh(functional.linear(first, *self._pooler)), *self._classifier)
            return np.asarray(torch.sigmoid(logits[:, 0].double()).numpy())
