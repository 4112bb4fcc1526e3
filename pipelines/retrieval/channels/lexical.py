"""The lexical channel: best contents by BM25 over the query's terms."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.retrieval.channels.rankings import Hits
from pipelines.retrieval.channels.run import Among, Ranked
from pipelines.retrieval.snapshot.ports import TextIndex


class LexicalChannel:
    """Searches the text index; a batch of queries shares its threads."""

    def __init__(self, index: TextIndex, threads: int) -> None:
        self._index = index
        self._threads = threads

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        """The `depth` best contents of each text."""
        found = self._index.search_many(texts, depth, self._threads, among)
        return [Ranked(Hits(rows, scores)) for rows, scores in found]
