"""A Lucene index whose document order is the contents' row order, opened for searches (ING-24)."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from weft.domain.errors import CorruptionError
from weft.indexes.parts import Hits
from weft.indexes.rows import RowSet
from weft.indexes.shards import Numbering
from weft.indexes.text.analysis import by_blanks, delimited, json_mapper
from weft.indexes.text.jvm import JAVA, java_cast, java_class, java_error
from weft.indexes.text.statistics import FieldCounts, Joined, Sought, Term, Words

ROW = "row"
"""Doc value that carries what `row_value` says; an index is sorted by it."""

_SEARCH = "org.apache.lucene.search."
_INDEX = "org.apache.lucene.index."
_DOCUMENT = "org.apache.lucene.document."

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

    def __init__(self, folders: Sequence[Path], similarity: Any, *, rows: int, first_shard: int = 0) -> None:
        """Open the merged index of each shard, which hold so many rows together, numbered from the first one's on."""
        # Handing thousands of rows to Java takes milliseconds: once per set, as long as anyone holds it.
        self._clauses: weakref.WeakKeyDictionary[RowSet, Any] = weakref.WeakKeyDictionary()
        self._shards = [self._reader_of(folder) for folder in folders]
        self._numbers = Numbering([int(reader.maxDoc()) for reader in self._shards])
        if len(self._numbers) != rows:
            raise CorruptionError(f"{folders[0]}: expected {rows} documents, found {len(self._numbers)}; rebuild")
        for number, (folder, reader) in enumerate(zip(folders, self._shards, strict=True), start=first_shard):
            check_order(reader, folder, number, int(reader.maxDoc()))
        self._first_shard = first_shard
        self.reader = self._shards[0] if len(self._shards) == 1 else _as_one(self._shards)
        self._similarity = similarity
        self._searcher = self._searcher_of(self.reader)
        self._mapper = json_mapper()

    def _searcher_of(self, reader: Any) -> Any:
        searcher = java_class(_SEARCH + "IndexSearcher")(java_cast(_INDEX + "IndexReader", reader))
        searcher.setSimilarity(self._similarity)
        return searcher

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
                values[places] = row_value(self._first_shard + shard, 0) + own
            clause = self._clauses[among] = field.newSlowSetQuery(ROW, *values.tolist())
        occur = java_class(_SEARCH + "BooleanClause$Occur")
        builder = java_class(_SEARCH + "BooleanQuery$Builder")()
        builder.add(query, occur.MUST)
        builder.add(clause, occur.FILTER)
        return builder.build()


class OpenedTexts(OpenedIndex):
    """The text index of some shards, searched for terms that are made already."""

    def __init__(self, folders: Sequence[Path], similarity: Any, *, rows: int, first_shard: int = 0) -> None:
        with JAVA:
            super().__init__(folders, similarity, rows=rows, first_shard=first_shard)
            builder = java_class("org.apache.lucene.util.QueryBuilder")
            self._plain = builder(java_cast(_ANALYZER, by_blanks()))
            self._boosted = builder(java_cast(_ANALYZER, delimited("delimitedBoost", _BOOST)))
            self._filled: Mapping[str, FieldCounts] = {}
            fields = java_class(_INDEX + "FieldInfos").getIndexedFields(java_cast(_INDEX + "IndexReader", self.reader))
            self.fields = sorted(map(str, fields.toArray()))
            # Java loads its classes at the first search, which may take a second that a user's search has not.
            for field in self.fields[:1]:
                words = Words(field, tuple(self.first_terms(field, count=8)))
                boosted = replace(words, weight=0.5, boosts=(0.5,) * len(words.terms))
                self.search(Joined((words, boosted, replace(words, side_by_side=True))), 8)

    def counts(self) -> dict[str, FieldCounts]:
        """How many contents have each field, and how many terms all of them have in it."""
        with JAVA:
            return {
                field: FieldCounts(int(self.reader.getDocCount(field)), int(self.reader.getSumTotalTermFreq(field)))
                for field in self.fields
            }

    def frequencies(self, terms: Sequence[Term]) -> list[int]:
        """How many contents hold each term."""
        with JAVA:
            named = java_class(_INDEX + "Term")
            return [int(self.reader.docFreq(named(*term))) for term in terms]

    def search(
        self, sought: Sought, k: int, among: RowSet | None = None, filled: Mapping[str, FieldCounts] | None = None
    ) -> Hits:
        """The k contents with the highest BM25 score, among some.

        Args:
            filled: Beside how many texts, and their terms, by field; None for those of the search before.
        """
        with JAVA:
            query = self._query(sought)
            if query is None or k < 1:
                return NO_HITS
            if filled is not None and filled != self._filled:
                self._filled, self._searcher = filled, self._searcher_of(_as_one([*self._shards, _texts_of(filled)]))
            rows, scores = self.find(query, k, among)
        # What weighs alike in two parts differs there in the last digit: without it, ties are ties in all of them.
        mantissas, exponents = np.frexp(scores)
        return rows, np.ldexp(np.rint(mantissas * _DIGITS) / _DIGITS, exponents)

    def _query(self, sought: Sought) -> Any | None:
        """A query of Lucene's; None where nothing is looked for. Java takes terms apart, at one call for all."""
        if isinstance(sought, Words):
            query = self._query_of_words(sought)
            return query if query is None or sought.weight == 1.0 else _boosted(query, sought.weight)
        parts = [query for part in sought.parts if (query := self._query(part)) is not None]
        if len(parts) < 2:
            return parts[0] if parts else None
        occur = getattr(java_class(_SEARCH + "BooleanClause$Occur"), "MUST" if sought.all_of_them else "SHOULD")
        builder = java_class(_SEARCH + "BooleanQuery$Builder")()
        for part in parts:
            builder.add(part, occur)
        return builder.build()

    def _query_of_words(self, words: Words) -> Any | None:
        if words.side_by_side:
            return self._plain.createPhraseQuery(words.field, " ".join(words.terms))
        if not words.boosts:
            return self._plain.createBooleanQuery(words.field, " ".join(words.terms))
        pairs = zip(words.terms, words.boosts, strict=True)
        return self._boosted.createBooleanQuery(
            words.field, " ".join(f"{term}{_BOOST}{boost}" for term, boost in pairs)
        )


_ANALYZER = "org.apache.lucene.analysis.Analyzer"
_DIGITS = 2.0**21  # of a score: single precision has eight times as many, and two neighbours are within a millionth
_BOOST = "\x01"  # between a term and its boost: no text that is analysed has it


def _boosted(query: Any, weight: float) -> Any:
    return java_class(_SEARCH + "BoostQuery")(query, weight)


def _as_one(readers: Sequence[Any]) -> Any:
    every = [java_cast(_INDEX + "IndexReader", reader) for reader in readers]
    return java_class(_INDEX + "MultiReader")(*every)


def _texts_of(counts: Mapping[str, FieldCounts]) -> Any:
    """A reader, in memory, of so many texts with so many terms by field; they hold no word that anybody asks for."""
    folder, stored = java_class("org.apache.lucene.store.ByteBuffersDirectory")(), java_class(_DOCUMENT + "Field$Store")
    config = java_class(_INDEX + "IndexWriterConfig")(java_cast(_ANALYZER, by_blanks()))
    writer = java_class(_INDEX + "IndexWriter")(folder, config)
    for field, (texts, terms) in counts.items():
        for times, copies in ((terms - texts + 1, min(1, texts)), (1, texts - 1)):  # all but one have one term
            document = java_class(_DOCUMENT + "Document")()
            document.add(java_class(_DOCUMENT + "TextField")(field, f"{_BOOST} " * times, stored.NO))
            for _ in range(copies):
                writer.addDocument(document)
    writer.close()
    return java_class(_INDEX + "DirectoryReader").open(folder)


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
