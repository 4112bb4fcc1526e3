"""The channel that searches learned weights of terms; it is loaded by its name (RET-7)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.embedding.ports import TermEncoder
from weft.retrieval.channels.run import Among, Hits, Ranked
from weft.retrieval.snapshot.ports import TermIndex


class SparseChannel:
    """Searches the term weights of one sparse encoder."""

    def __init__(self, encoder: TermEncoder, index: TermIndex) -> None:
        self._encoder = encoder
        self._index = index

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        """The `depth` contents of each text with the highest dot product."""
        queries = self._encoder.weigh_queries(texts)
        return [Ranked(Hits(*hits)) for hits in self._index.search_many(queries, depth, among)]
