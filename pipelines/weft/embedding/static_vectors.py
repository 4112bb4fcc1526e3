"""Static vectors of texts, distilled from the encoder in use: no forward pass, no download (CON-2).

A text is the mean of its tokens' vectors, each weighted by a / (a + p) (Arora, Liang and Ma, ICLR 2017, eq. 1). The p
of a token is its share of the texts at hand, drawn towards Zipf's law by its place in the vocabulary.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from weft.embedding.encoders.encoder import Encoder, load_encoder
from weft.embedding.models import find_model
from weft.embedding.settings import EmbeddingSettings
from weft.embedding.tokens import encodable, read_tokenizer
from weft.runtime.storage.files import write_atomically
from weft.runtime.storage.sqlite import blob_key

DIMENSION = 128
"""Numbers kept of a vector: neighbours are the same as with all, at a third of the time."""

_FORMAT = "static vectors 2"
_RARITY = 1e-3  # a: a token of that share counts half
_ZIPF_TOKENS = 20_000.0  # that Zipf's law is worth against the texts at hand
_LONGEST = 4096  # characters of a text that count
_BATCH = 2048
_ROWS = 65_536  # texts that are summed at once

Item = TypeVar("Item")
Floats = NDArray[np.float32]


def distilled(encoder: Encoder, folder: Path) -> Floats:
    """A vector per token of an encoder whose tokenizer lies in `folder`; zero for special and empty ones.

    What all tokens have in common is taken off first: it would make any two texts alike.
    """
    tokenizer = read_tokenizer(folder)
    entries = sorted(tokenizer.get_vocab(with_added_tokens=False).items(), key=lambda entry: entry[1])
    special = {str(token) for token in tokenizer.get_added_tokens_decoder().values()}
    texts = {
        number: text
        for entry, number in entries
        if entry not in special
        and (text := tokenizer.decode([number], skip_special_tokens=True).removeprefix("##").strip())
    }
    size = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
    encoded = np.concatenate([encoder.encode(some) for some in _batches(texts.values(), _BATCH)])
    reduced = _reduced(encoded - encoded.mean(axis=0))
    vectors = np.zeros((size, reduced.shape[1]), np.float32)
    vectors[list(texts)] = reduced
    return vectors


def _reduced(vectors: Floats) -> Floats:
    """Rows in the `DIMENSION` directions in which they differ most, in a fixed sign."""
    if vectors.shape[1] <= DIMENSION:
        return vectors
    moments = vectors.astype(np.float64).T @ vectors.astype(np.float64)
    _, directions = np.linalg.eigh(moments)
    first = directions[:, ::-1][:, :DIMENSION]
    first *= np.sign(first[np.abs(first).argmax(axis=0), np.arange(DIMENSION)])
    return np.asarray(vectors @ first, dtype=np.float32)


def static_vectors(settings: EmbeddingSettings) -> StaticVectors:
    """The static vectors of the configured encoder, distilled once and kept by the model's fingerprint."""
    model = find_model(settings)
    key = blob_key(_FORMAT, model.identity, settings.precision, str(settings.dimension), str(DIMENSION))
    path = Path(settings.model_folder).expanduser() / f"static-{model.name}-{key[:16]}.npy"
    table = _read(path)
    if table is None:
        # A token stands for itself: behind a prompt all would be alike.
        plain = settings.model_copy(update={"query_prompt": "", "document_prompt": ""})
        vectors = distilled(load_encoder(plain), model.folder).astype(np.float16)
        written = io.BytesIO()
        np.save(written, vectors)
        write_atomically(path, written.getvalue())
        table = vectors.astype(np.float32)  # the bits that others read
    return StaticVectors(table, model.folder)


def _read(path: Path) -> Floats | None:
    """What was kept; None where nothing was, or something else is there: it is made anew."""
    try:
        stored = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    fits = stored.ndim == 2 and stored.dtype == np.float16
    return stored.astype(np.float32) if fits else None


class StaticVectors:
    """Vectors of texts by the tokens in them."""

    def __init__(self, table: Floats, folder: Path) -> None:
        """Take a vector per token, float32 (vocabulary, dimension), and the folder of the tokenizer."""
        self.table = table
        self._tokenizer = read_tokenizer(folder)

    def __call__(self, texts: Iterable[str]) -> Floats:
        """Unit rows, float32 (n, dimension), a batch at a time; zero for a text without tokens."""
        parts = [
            (np.concatenate([np.zeros(0, np.uint8), *some]), np.array([0, *map(len, some)]))
            for some in _batches(self._tokens(texts), _ROWS)
        ]
        weights = self._weights(tokens for tokens, _ in parts)
        rows = np.zeros((sum(len(ends) - 1 for _, ends in parts), self.table.shape[1]), np.float32)
        stop = 0
        for tokens, lengths in parts:
            start, stop = stop, stop + len(lengths) - 1
            shape = (stop - start, len(self.table))
            matrix = csr_matrix((weights[tokens], tokens.astype(np.int32), np.cumsum(lengths)), shape=shape)
            rows[start:stop] = matrix @ self.table
            norms = np.linalg.norm(rows[start:stop], axis=1, keepdims=True)
            np.divide(rows[start:stop], norms, out=rows[start:stop], where=norms > 0.0)
        return rows

    def _tokens(self, texts: Iterable[str]) -> Iterator[NDArray[np.unsignedinteger[Any]]]:
        """The tokens of each text, in as few bytes as number the vocabulary."""
        number = np.min_scalar_type(len(self.table))
        for some in _batches(texts, _BATCH):
            cut = [encodable(text[:_LONGEST]) for text in some]
            for encoded in self._tokenizer.encode_batch_fast(cut, add_special_tokens=False):
                yield np.array(encoded.ids, number)

    def _weights(self, tokens: Iterable[NDArray[np.unsignedinteger[Any]]]) -> Floats:
        """Of each token: a / (a + p)."""
        size = len(self.table)
        met = sum((np.bincount(some, minlength=size)[:size] for some in tokens), np.zeros(size, np.int64))
        counts = met + _ZIPF_TOKENS * _zipf_shares(size)
        return np.asarray(_RARITY / (_RARITY + counts / counts.sum()), dtype=np.float32)


def _zipf_shares(size: int) -> NDArray[np.float64]:
    zipf = 1.0 / np.arange(1.0, size + 1.0)
    return np.asarray(zipf / zipf.sum())


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    left = iter(items)
    while some := list(islice(left, size)):
        yield some
