"""What retrieval needs of encoders and indexes: there are several of each, plain ones and ones that remember."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from weft.domain.arrays import TermWeights
from weft.domain.ids import ContentHash, GenerationId, SessionId
from weft.domain.understanding import SessionMemory
from weft.indexes.chunk_store import ChunkStore
from weft.indexes.graph.graph import Graph
from weft.indexes.manifest import Manifest
from weft.indexes.parts import IndexPart
from weft.indexes.rows import RowSet


class SessionMemories(Protocol):
    """Keeps what sessions remember from one search to the next, whichever process answers it (LRN-15)."""

    def update(self, session_id: SessionId, step: Callable[[SessionMemory], SessionMemory]) -> None:
        """Replace a session's memory by what `step` makes of it, alone; StoreError, before it is called, where that
        cannot be had.
        """


class Fleet(Protocol):
    """Where the shards of generations are searched, outside this process."""

    def holds(self, generation: GenerationId) -> bool:
        """Whether all of it can be searched now; what cannot is fetched and opened from here on."""

    def parts(self, manifest: Manifest) -> Sequence[IndexPart]:
        """Where the shards of a generation that it holds are searched; StoreError where it holds none of it in time."""


class VectorIndex(Protocol):
    """Nearest contents by cosine, of one encoder."""

    @property
    def isolation(self) -> np.ndarray | None:
        """How much alone each content stands, float32 (contents,) in [0, 1]; None where that is not known."""

    def search(self, vectors: np.ndarray, k: int, among: RowSet | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows, int64 (n, k), and cosines, float32 (n, k), best first; row −1 pads. `among`: all that may match."""

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Stored vectors, float32 (n_rows, dimension), unit rows."""


class TokenEmbeddings(Protocol):
    """Stored token embeddings of contents, of one encoder."""

    @property
    def projection(self) -> np.ndarray:
        """What a query's token states are multiplied by, float32 (width, width stored)."""

    def gathered(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The tokens of contents, one content's after the other's, int8 (tokens, width stored), directions of any
        length; and how many each has, int64 (n_rows,).
        """


class TermIndex(Protocol):
    """Best contents by dot product of term weights."""

    def search_many(
        self, queries: Sequence[TermWeights], k: int, among: Sequence[RowSet | None]
    ) -> Sequence[tuple[np.ndarray, np.ndarray]]:
        """Rows, int64, and products, float64, per query, best first, ties by row. `among`: all that each may match."""


class TextIndex(Protocol):
    """Best contents by BM25."""

    def search_many(
        self, texts: Sequence[str], k: int, among: Sequence[RowSet | None]
    ) -> Sequence[tuple[np.ndarray, np.ndarray]]:
        """Rows, int64, and scores, float64, per text, best first, ties by row. `among`: all that each may match."""

    def share_of(self, word: str) -> float:
        """Share of contents that hold a word, in [0, 1]."""

    def unknown_words(self, query: str) -> tuple[str, ...]:
        """The words of a query that no content holds, as they were typed."""

    def holding(self, words: str, phrase: bool) -> np.ndarray | None:
        """Which contents hold words, bool (contents,): side by side as they are, or in whatever form they have; None
        where there are no words, or where that cannot be told.
        """


class OpenGeneration(Protocol):
    """An opened, immutable set of indexes; shared by threads."""

    @property
    def created_at(self) -> float:
        """When it was made, seconds since the epoch."""

    @property
    def contents(self) -> Sequence[ContentHash]:
        """Content hash by row, ascending."""

    @property
    def lexical(self) -> TextIndex:
        """The text index."""

    @property
    def chunks(self) -> ChunkStore:
        """The texts and where they stand."""

    @property
    def graph(self) -> Graph:
        """The graph; StoreError where the generation was built without one."""

    def dense(self, encoder: str) -> VectorIndex:
        """The vectors of one encoder; StoreError where the generation has none."""

    def impacts(self, encoder: str) -> TermIndex:
        """The term weights of one encoder; StoreError where the generation has none."""

    def tokens(self, encoder: str) -> TokenEmbeddings | None:
        """The token embeddings of one encoder; None where none are kept."""
