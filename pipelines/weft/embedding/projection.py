"""The projection that token embeddings are stored under: trained once per model and kept beside the caches.

It is trained on texts of words drawn from the model's own vocabulary, so that it depends on no corpus: any two stores
project alike, and documents added later fit. On SciFact it ranks as well as one trained on the corpus itself.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from weft.domain.errors import ConfigurationError
from weft.embedding.late_interaction import trained_projection
from weft.embedding.ports import TextEncoder
from weft.embedding.settings import TokenSettings
from weft.runtime.storage.files import write_atomically

_TEXTS, _WORDS = 40, 120  # that a projection is trained on, and of each text


def stored_projection(
    path: Path, encoder: TextEncoder, vocabulary: Callable[[], Sequence[str]], settings: TokenSettings
) -> np.ndarray:
    """The projection at `path`, float32 (width, dimension); trained and put there first where there is none.

    Of several processes that train it at once the first one's stays, and all use that.
    """
    if not path.exists():
        _put_first(path, _trained(encoder, vocabulary(), settings))
    return np.asarray(np.load(path, allow_pickle=False))


def vocabulary_texts(vocabulary: Sequence[str]) -> list[str]:
    """Texts of words drawn from a vocabulary, always the same ones.

    Examples:
        >>> [text.split()[:3] for text in vocabulary_texts(["lock", "queue"])[:2]]
        [['queue', 'queue', 'queue'], ['queue', 'lock', 'queue']]
    """
    drawn = np.random.default_rng(0).integers(0, len(vocabulary), (_TEXTS, _WORDS))
    return [" ".join(vocabulary[word] for word in words) for words in drawn]


def _trained(encoder: TextEncoder, vocabulary: Sequence[str], settings: TokenSettings) -> np.ndarray:
    _, states = encoder.encode_tokens(vocabulary_texts(vocabulary), lambda of_text: of_text)
    sample = np.concatenate(states)
    if sample.shape[1] < settings.dimension:
        raise ConfigurationError(
            f"embedding.tokens.dimension: {encoder.name} gives {sample.shape[1]} numbers for a token, "
            f"found {settings.dimension}"
        )
    return trained_projection(sample, settings.dimension)


def _put_first(path: Path, projection: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        file = Path(folder) / path.name
        np.save(file, projection)
        write_atomically(file, file.read_bytes())
        with contextlib.suppress(FileExistsError):
            os.link(file, path)
