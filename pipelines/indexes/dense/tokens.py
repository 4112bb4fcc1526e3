"""The token store: each content's token embeddings, in row order in one memory-mapped file (ING-19, RET-10)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipelines.domain.errors import CorruptionError

TOKENS_FILE = "tokens.npy"
OFFSETS_FILE = "token_offsets.npy"
PROJECTION_FILE = "projection.npy"


class TokenStore:
    """Token embeddings of a generation's contents under one encoder; immutable, shared by threads.

    Attributes:
        projection: float32 (width of the encoder's tokens, width stored): queries' tokens are multiplied by it.
    """

    def __init__(self, folder: Path) -> None:
        """Open the files.

        Raises:
            CorruptionError: The files do not belong together.
        """
        # Mapped, but as plain arrays: a slice of numpy's own class for mapped files costs fifty times as much.
        self._tokens = np.asarray(np.load(folder / TOKENS_FILE, mmap_mode="r", allow_pickle=False))
        self._offsets = np.asarray(np.load(folder / OFFSETS_FILE, mmap_mode="r", allow_pickle=False))
        self.projection: np.ndarray = np.load(folder / PROJECTION_FILE, allow_pickle=False)
        found = (int(self._offsets[-1]), self.projection.shape[1])
        if self._tokens.shape != found:
            raise CorruptionError(f"{folder}: expected tokens of shape {found}, found {self._tokens.shape}; rebuild")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @property
    def bytes_per_content(self) -> float:
        """Bytes stored for a content on average, offsets included."""
        return float(self._tokens.nbytes + self._offsets.nbytes) / max(1, len(self))

    def span(self, first: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows [first, stop): how many tokens each has, and all their tokens, int8 (tokens, width), not copied."""
        offsets = self._offsets[first : stop + 1]
        return np.diff(offsets), self._tokens[offsets[0] : offsets[-1]]

    def tokens(self, rows: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """Stored tokens of some contents, by row: int8 (tokens, width) each, directions of any length."""
        wanted = np.asarray(rows, dtype=np.int64)
        bounds = zip(self._offsets[wanted].tolist(), self._offsets[wanted + 1].tolist(), strict=True)
        return [self._tokens[start:end] for start, end in bounds]

    def gathered(self, rows: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same as one array, copied: all tokens, one content's after the other's, and how many each content has."""
        wanted = np.asarray(rows, dtype=np.int64)
        starts = self._offsets[wanted].astype(np.int64)
        counts = self._offsets[wanted + 1].astype(np.int64) - starts
        places = np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        return self._tokens[places], counts


def has_tokens(folder: Path) -> bool:
    """Whether an encoder's folder holds token embeddings."""
    return (folder / TOKENS_FILE).is_file()
