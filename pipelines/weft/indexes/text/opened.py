"""A Lucene index whose document order is the contents' row order, opened for searches (ING-24)."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from weft.domain.errors import CorruptionError
from weft.indexes.rows import RowSet
from weft.indexes.shards import Numbering
from weft.indexes.text.analysis import json_mapper
from weft.indexes.text.jvm import JAVA, java_cast, java_class, java_error

ROW = "row"
"""Doc value that carries what `row_value` says; an index is sorted by it."""

_SEARCH = "org.apache.lucene.search."
_INDEX = "org.apache.lucene.index."

Hits = tuple[np.ndarray, np.ndarray]
"""Rows, int64 (n,), and scores, float64 (n,), best first, ties by row."""

NO_HITS: Hits = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float64))


class _Hit(msgspec.Struct):
    doc: int
    score: float


class _TopDocs(msgspec.Struct):
    scoreDocs: list[_Hit]  # noqa: N815  as Lucene names it


_TOP_DOCS = msgspec.json.Decoder(_TopDocs)


_SHARD_BITS = 40


def row_value(shard: int, row: int) -> int:
    """What tells a document: the shard and the row in it, so that a shard may stay while those before it change."""
    return (shard << _SHARD_BITS) + row


def directory(folder: Path) -> Any:
    """A folder as Lucene sees it."""
    path = java_class("java.nio.file.Paths").get(str(folder.absolute()))
    return java_class("org.apache.lucene.store.FSDirectory").open(path)


class OpenedIndex:
    """Reader and searcher over the indexes of all shards; immutable, shared by threads that hold `jvm.JAVA`.

    Lucene reads them as one: statistics are those of all, and documents are numbered one index after the other (SCL-8).
    """

    def __init__(self, folders: Sequence[Path], similarity: Any, *, rows: int) -> None:
        """Open the merged index of each shard, which hold so many rows together."""
        # Handing thousands of rows to Java takes milliseconds: once per set, as long as anyone holds it.
        self._clauses: weakref.WeakKeyDictionary[RowSet, Any] = weakref.WeakKeyDictionary()
        self._shards = [self._reader_of(folder) for folder in folders]
        self._numbers = Numbering([int(reader.maxDoc()) for reader in self._shards])
        if len(self._numbers) != rows:
            raise CorruptionError(f"{folders[0]}: expected {rows} documents, found {len(self._numbers)}; rebuild")
        for number, (folder, reader) in enumerate(zip(folders, self._shards, strict=True)):
            check_order(reader, folder, number, int(reader.maxDoc()))
        self.reader = self._shards[0]
        if len(self._shards) > 1:
            every = [java_cast(_INDEX + "IndexReader", reader) for reader in self._shards]
            self.reader = java_class(_INDEX + "MultiReader")(*every)
        self._searcher = java_class(_SEARCH + "IndexSearcher")(java_cast(_INDEX + "IndexReader", self.reader))
        self._searcher.setSimilarity(similarity)
        self._mapper = json_mapper()

    @staticmethod
    def _reader_of(folder: Path) -> Any:
        try:
            return java_class(_INDEX + "DirectoryReader").open(directory(folder))
        except java_error() as error:
            raise CorruptionError(f"{folder}: expected a Lucene index, found: {error}; rebuild") from error

    def find(self, query: Any, k: int, among: RowSet | None = None) -> Hits:
        """The k contents with the highest scores by a query of Lucene's."""
        searched = query if among is None else self._restricted(query, among)
        answer = str(self._mapper.writeValueAsString(self._searcher.search(searched, k)))
        return _hits(_TOP_DOCS.decode(answer).scoreDocs)

    def first_terms(self, field: str, *, count: int) -> list[str]:
        """The first terms of a field in their order; fewer where it has fewer."""
        terms = java_class(_INDEX + "MultiTerms").getTerms(java_cast(_INDEX + "IndexReader", self.reader), field)
        if terms is None:
            return []
        listed = terms.iterator()
        first: list[str] = []
        while len(first) < count and (term := listed.next()) is not None:
            first.append(str(term.utf8ToString()))
        return first

    def close(self) -> None:
        """Release the files; closing twice is allowed."""
        with JAVA:
            self.reader.close()

    def _restricted(self, query: Any, among: RowSet) -> Any:
        """A query that finds some rows only; a clause that filters adds nothing to the score."""
        clause = self._clauses.get(among)
        if clause is None:
            field = java_class("org.apache.lucene.document.NumericDocValuesField")
            values = np.zeros(len(among), dtype=np.int64)
            for shard, places, own in self._numbers.apart(among.rows):
                values[places] = row_value(shard, 0) + own
            clause = self._clauses[among] = field.newSlowSetQuery(ROW, *values.tolist())
        occur = java_class(_SEARCH + "BooleanClause$Occur")
        builder = java_class(_SEARCH + "BooleanQuery$Builder")()
        builder.add(query, occur.MUST)
        builder.add(clause, occur.FILTER)
        return builder.build()


def _hits(hits: Sequence[_Hit]) -> Hits:
    """What Java writes of its hits: scores are of single precision, and so are they read."""
    scores = np.array([hit.score for hit in hits], dtype=np.float32).astype(np.float64)
    return np.array([hit.doc for hit in hits], dtype=np.int64), scores


def check_order(reader: Any, folder: Path, shard: int, rows: int, *, probes: int = 64) -> None:
    """Check that document i of a shard's index is its row i, at the ends and at `probes` places between."""
    leaves = reader.leaves()
    if reader.numDocs() != rows or reader.maxDoc() != rows or leaves.size() > 1:
        counted = f"{reader.numDocs()} of {reader.maxDoc()} documents in {leaves.size()} segments"
        raise CorruptionError(f"{folder}: expected {rows} documents in one segment, found {counted}; rebuild")
    if not rows:
        return
    values = leaves.get(0).reader().getNumericDocValues(ROW)
    step = max(1, (rows - 1) // probes)
    for document in sorted({*range(0, rows, step), rows - 1}):
        if not values.advanceExact(document) or values.longValue() != row_value(shard, document):
            raise CorruptionError(f"{folder}: expected document {document} to be row {document}, it is not; rebuild")
