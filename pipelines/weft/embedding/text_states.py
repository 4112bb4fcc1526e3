"""What the bundled encoder makes of a short text: the states of its tokens behind one layer, and its vector (LES-5).

Heads are trained on exactly these numbers, so that the model, its layer and single precision are fixed here.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from safetensors.numpy import load_file

from weft.domain.errors import ModelUnavailableError
from weft.domain.texts import ReadText
from weft.embedding.encoders.bert_files import WEIGHTS, read_bert
from weft.embedding.encoders.numpy_encoder import NumpyBert
from weft.embedding.models import BUNDLED, locate
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import encodable, read_tokenizer

_LAYER = 4  # of six: behind it negation and tense still stand beside the words, which the last one gives up for topics
_LONGEST = 4096  # characters of a text that are looked at
_REMEMBERED = 4096  # texts that are read once


class TextStates:
    """Reads texts, each once; shared by threads."""

    def __init__(self, settings: EmbeddingSettings, *, retained: int = _REMEMBERED) -> None:
        folder = locate(settings.model_copy(update={"model": BUNDLED}))
        if (model := read_bert(folder)) is None:
            raise ModelUnavailableError(f"expected a BERT in {folder}, found another model: remove the folder")
        self._bert = NumpyBert(load_file(folder / WEIGHTS), model, int8=False)
        tokenizer = read_tokenizer(folder)
        begin, end = tokenizer.encode("").ids

        @lru_cache(retained)
        def read(text: str, most: int, from_end: bool) -> ReadText:
            part = text[-_LONGEST:] if from_end else text[:_LONGEST]
            ids = tokenizer.encode(encodable(part), add_special_tokens=False).ids
            if not ids:
                return ReadText(np.zeros((0, self._bert.dimension), np.float32), np.zeros(self._bert.dimension))
            layers = list(self._bert.layers([begin, *(ids[-most:] if from_end else ids[:most]), end]))
            vector = layers[-1].mean(axis=0)
            return ReadText(layers[_LAYER - 1][1:-1], vector / np.linalg.norm(vector))

        self._read = read

    def __call__(self, text: str, most: int, *, from_end: bool = False) -> ReadText:
        """A text's first tokens, or its last ones, at most so many."""
        return self._read(text, most, from_end)


@cache
def load_text_states(settings: EmbeddingSettings) -> TextStates:
    """The reader, 90 MB once in a process."""
    return TextStates(settings)
