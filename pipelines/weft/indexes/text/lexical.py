"""Lexical search: BM25 over the Lucene indexes of all shards, whose order is the contents' row order (ING-23)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.domain.ranking import QUERY_BYTES, QUERY_TERMS
from weft.indexes.rows import RowSet
from weft.indexes.settings import LexicalSettings
from weft.indexes.text.analysis import EXACT, FIELDS, by_blanks, english, terms_by, terms_of_script
from weft.indexes.text.jvm import JAVA, java_cast, java_class
from weft.indexes.text.opened import NO_HITS, Hits, OpenedIndex
from weft.indexes.text.words import ExactQuery, lone_operators, marked_names, normalised, side_by_side, wanted
from weft.wording.words import in_full

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]+")
_WORD = re.compile(r"[^\W_][\w.+#/'-]*")
_SEARCH = "org.apache.lucene.search."
_INDEX = "org.apache.lucene.index."
_ANALYZER = "org.apache.lucene.analysis.Analyzer"


def similarity(settings: LexicalSettings) -> Any:
    """Lucene's BM25 with the configured k1 and b."""
    return java_class(_SEARCH + "similarities.BM25Similarity")(settings.k1, settings.b)


def cleaned(text: str, max_bytes: int) -> str:
    """A query without control characters and lone surrogates, cut to whole characters within a length (RET-21)."""
    encoded = _CONTROL.sub(" ", text).encode("utf-8", "replace")[:max_bytes]
    return encoded.decode("utf-8", "ignore")


class LexicalIndex:
    """Bag-of-words BM25; immutable and safe to share between threads."""

    def __init__(self, folders: Sequence[Path], settings: LexicalSettings, *, rows: int) -> None:
        """Open the merged index of each shard, which hold so many rows together."""
        self._settings = settings
        self._weights = [(name, getattr(settings.weights, name)) for name in FIELDS if getattr(settings.weights, name)]
        with JAVA:
            self._opened = OpenedIndex(folders, similarity(settings), rows=rows)
            self._reader = self._opened.reader
            self._analyzer = english()
            limited = java_class("org.apache.lucene.analysis.miscellaneous.LimitTokenCountAnalyzer")(
                java_cast(_ANALYZER, self._analyzer), QUERY_TERMS
            )
            builder = java_class("org.apache.lucene.util.QueryBuilder")
            self._parser = builder(java_cast(_ANALYZER, limited))
            self._exact_parser = builder(java_cast(_ANALYZER, by_blanks()))
        self._searched_once()

    def search(self, text: str, k: int, among: RowSet | None = None) -> list[tuple[int, float]]:
        """The k contents with the highest BM25 score for the words of a text: (row, score), best first, ties by row.

        Nothing in the text is an operator; text and terms beyond the limits are left out.
        """
        ((rows, scores),) = self.search_many([text], k, [among])
        return list(zip(rows.tolist(), scores.tolist(), strict=True))

    def search_many(self, texts: Sequence[str], k: int, among: Sequence[RowSet | None] | None = None) -> list[Hits]:
        """`search` for many texts, in their order, as arrays."""
        sets = [None] * len(texts) if among is None else among
        return [self._search_one(text, k, rows) for text, rows in zip(texts, sets, strict=True)]

    def terms(self, text: str) -> list[str]:
        """The analysed terms of a text that a search would use, in order, repeats kept."""
        return terms_by(self._analyzer, self._cleaned(text))[:QUERY_TERMS]

    def share_of(self, word: str) -> float:
        """Share of contents that hold a word, in whatever form, in [0, 1]; 1 of one that no search would use."""
        terms, contents = self.terms(word), len(self)
        return self.holding_all(terms) / contents if terms and contents else 1.0

    def unknown_words(self, query: str) -> tuple[str, ...]:
        """The words of a query that a search uses and no content holds, each once (RET-15); short forms are none."""
        words = list(dict.fromkeys(_WORD.findall(self._cleaned(query))))[:QUERY_TERMS]
        return tuple(
            word for word in words if in_full(word.casefold()) == (word.casefold(),) and self._is_unknown(word)
        )

    def _is_unknown(self, word: str) -> bool:
        terms = self.terms(word)
        return bool(terms) and not (self.holding_all(terms) or self._holding_otherwise(word))

    def _holding_otherwise(self, word: str) -> int:
        """How many contents hold a word in no form of the analyser: as a part of a name, with or without accents."""
        mask, sought = self.holding(word, phrase=False), self.wanted(word)
        forms = () if sought is None else sought.weak
        counts = [self.document_frequency(EXACT, form) for form in forms]
        return max([0 if mask is None else int(mask.sum()), *counts])

    def holding_all(self, terms: Sequence[str]) -> int:
        """How many contents hold the rarest of some terms, at least one."""
        with JAVA:
            named = java_class(_INDEX + "Term")
            return min(int(self._reader.docFreq(named(FIELDS[0], term))) for term in terms)

    def term_set(self, text: str) -> frozenset[str]:
        """The terms of a text."""
        return frozenset(self.analysed(FIELDS[0], self._cleaned_text(text)))

    def __len__(self) -> int:
        with JAVA:
            return int(self._reader.numDocs())

    def analysed(self, field: str, text: str) -> list[str]:
        """The terms that a text is indexed by in a field, in order, repeats kept."""
        return text.split() if field == EXACT else terms_by(self._analyzer, text)

    def wanted(self, text: str) -> ExactQuery | None:
        """What a search looks for beside the analysed terms of a text; None where the generation has no such field."""
        if self._settings.analysis == "english":
            return None
        phrase_words = self._settings.words.phrase_words
        return wanted(self._cleaned(text), terms_of_script, most=QUERY_TERMS // 4, phrase_words=phrase_words)

    def document_frequency(self, field: str, term: str) -> int:
        """How many contents hold a term in a field."""
        with JAVA:
            return int(self._reader.docFreq(java_class(_INDEX + "Term")(field, term)))

    def field_counts(self, field: str) -> tuple[int, int]:
        """How many contents have a field, and how many terms all of them have in it."""
        with JAVA:
            return int(self._reader.getDocCount(field)), int(self._reader.getSumTotalTermFreq(field))

    def holding(self, words: str, phrase: bool) -> np.ndarray | None:
        """Which contents hold words, side by side as typed, or in any form; None where that cannot be told."""
        text = self._cleaned(words)
        sides, marked = side_by_side(text), [*marked_names(text), *lone_operators(text)]
        if self._settings.analysis == "english" or not sides:
            return None
        with JAVA:
            exact = [self._exact_parser.createPhraseQuery(EXACT, " ".join(sides))]
            exact += [self._exact_parser.createBooleanQuery(EXACT, name) for name in marked]
            query = _joined(exact, "MUST")
            if not phrase and not marked:
                others = [self._exact_parser.createBooleanQuery(EXACT, "".join(sides))]
                others += [self._parser.createBooleanQuery(FIELDS[0], text)] if len(sides) == 1 else []
                query = _joined([query, *(each for each in others if each is not None)], "SHOULD")
            rows = int(self._reader.maxDoc())
            holders, _ = self._opened.find(query, max(1, rows))
        mask = np.zeros(rows, dtype=bool)
        mask[holders] = True
        return mask

    def close(self) -> None:
        """Release the files; closing twice is allowed."""
        self._opened.close()

    def _searched_once(self) -> None:
        """Search once: Java loads its classes then, which may take a second that a user's search has not."""
        words = self._opened.first_terms(FIELDS[0], count=8)
        self.search(" ".join(words), len(words))

    def _search_one(self, text: str, k: int, among: RowSet | None) -> Hits:
        with JAVA:  # taken anew for each text, so that nobody waits for a whole batch
            query = self._query(text)
            return NO_HITS if query is None or k < 1 else self._opened.find(query, k, among)

    def _cleaned(self, text: str) -> str:
        return self._cleaned_text(cleaned(text, QUERY_BYTES))

    def _cleaned_text(self, text: str) -> str:
        return text if self._settings.analysis == "english" else normalised(text)

    def _query(self, text: str) -> Any | None:
        """A query for the terms of a text in every weighted field; Java takes it apart, at one call per field."""
        queries = [
            (self._parser.createBooleanQuery(field, self._cleaned(text)), weight) for field, weight in self._weights
        ]
        queries += self._exact_queries(text)
        boost = java_class(_SEARCH + "BoostQuery")
        clauses = [part if weight == 1.0 else boost(part, weight) for part, weight in queries if part is not None]
        if len(clauses) < 2:
            return clauses[0] if clauses else None
        return _joined(clauses, "SHOULD")

    def _exact_queries(self, text: str) -> list[tuple[Any, float]]:
        """What is looked for in the field `exact`, with weights."""
        sought = self.wanted(text)
        if sought is None:
            return []
        parser = self._exact_parser
        queries = [
            (parser.createBooleanQuery(EXACT, " ".join(tokens)), weight)
            for tokens, weight in sought.weighted(self._settings.words)
            if tokens and weight
        ]
        weight = self._settings.words.phrases
        phrases = sought.phrases if weight else ()
        return queries + [(parser.createPhraseQuery(EXACT, " ".join(words)), weight) for words in phrases]


def _joined(queries: Sequence[Any], occur: str) -> Any:
    """A query for what matches any of some (SHOULD), or all (MUST), by the sum of their scores."""
    builder = java_class(_SEARCH + "BooleanQuery$Builder")()
    for part in queries:
        builder.add(part, getattr(java_class(_SEARCH + "BooleanClause$Occur"), occur))
    return builder.build()
