"""Lexical search: BM25 over the Lucene indexes of all parts, whose order is the contents' row order (ING-23)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from weft.domain.ranking import QUERY_BYTES, QUERY_TERMS
from weft.indexes.parts import Allowed, Hits, IndexPart, LocalPart, PartFacts, allowed_of, ask_all, merged_hits, row_set
from weft.indexes.rows import RowSet
from weft.indexes.settings import LexicalSettings
from weft.indexes.text.analysis import EXACT, FIELDS, english, terms_by, terms_of_script
from weft.indexes.text.jvm import JAVA, java_class
from weft.indexes.text.opened import OpenedTexts
from weft.indexes.text.statistics import CorpusStatistics, FieldCounts, Joined, Sought, Term, Words, terms_of
from weft.indexes.text.words import ExactQuery, lone_operators, marked_names, normalised, side_by_side, wanted
from weft.wording.words import in_full

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]+")
_WORD = re.compile(r"[^\W_][\w.+#/'-]*")
_SEARCH = "org.apache.lucene.search."
_REMEMBERED = 65_536  # terms whose frequencies are kept, of parts that are asked for them over a network


def similarity(settings: LexicalSettings) -> Any:
    """Lucene's BM25 with the configured k1 and b."""
    return java_class(_SEARCH + "similarities.BM25Similarity")(settings.k1, settings.b)


def cleaned(text: str, max_bytes: int) -> str:
    """A query without control characters and lone surrogates, cut to whole characters within a length (RET-21)."""
    encoded = _CONTROL.sub(" ", text).encode("utf-8", "replace")[:max_bytes]
    return encoded.decode("utf-8", "ignore")


def open_lexical(folders: Sequence[Path], settings: LexicalSettings, *, rows: int) -> LexicalIndex:
    """Open the merged index of each shard here; they hold so many rows together."""
    with JAVA:
        texts = OpenedTexts(folders, similarity(settings), rows=rows)
    return LexicalIndex([text_part(texts, range(rows))], settings)


@dataclass(frozen=True, slots=True)
class _Alone:
    text: OpenedTexts

    def close(self) -> None:
        self.text.close()


def text_part(texts: OpenedTexts, rows: range, name: str = "here") -> LocalPart:
    """A part that is searched by words alone."""
    return LocalPart(_Alone(texts), rows, PartFacts(texts.counts()), name)


class LexicalIndex:
    """Bag-of-words BM25; immutable and safe to share between threads.

    One part counts for itself. Several are told the corpus's statistics, of which the frequencies of a query's terms
    are asked for first (SCL-8).
    """

    def __init__(self, parts: Sequence[IndexPart], settings: LexicalSettings) -> None:
        self._parts = parts
        self._settings = settings
        self._weights = [(name, getattr(settings.weights, name)) for name in FIELDS if getattr(settings.weights, name)]
        counts = [{name: FieldCounts(*each) for name, each in part.facts.counts.items()} for part in parts]
        self._statistics = CorpusStatistics(counts)
        self._frequencies: dict[Term, tuple[int, ...]] = {}
        with JAVA:
            self._analyzer = english()
        self.search("what Java loads to analyse a question", 1)  # a user's search has no time for it

    def search(self, text: str, k: int, among: RowSet | None = None) -> list[tuple[int, float]]:
        """The k contents with the highest BM25 score for the words of a text: (row, score), best first, ties by row.

        Nothing in the text is an operator; text and terms beyond the limits are left out.
        """
        ((rows, scores),) = self.search_many([text], k, [among])
        return list(zip(rows.tolist(), scores.tolist(), strict=True))

    def search_many(self, texts: Sequence[str], k: int, among: Sequence[RowSet | None] | None = None) -> list[Hits]:
        """`search` for many texts, in their order, as arrays."""
        sets = [None] * len(texts) if among is None else among
        return self._searched([self._sought(text) for text in texts], k, sets)

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
        return min(map(sum, self._frequencies_of((FIELDS[0], term) for term in terms).values()))

    def term_set(self, text: str) -> frozenset[str]:
        """The terms of a text."""
        return frozenset(self.analysed(FIELDS[0], self._cleaned_text(text)))

    def __len__(self) -> int:
        return sum(len(part.rows) for part in self._parts)

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
        return sum(self._frequencies_of([(field, term)])[field, term])

    def field_counts(self, field: str) -> FieldCounts:
        """How many contents have a field, and how many terms all of them have in it."""
        return self._statistics.corpus[field]

    def holding(self, words: str, phrase: bool) -> np.ndarray | None:
        """Which contents hold words, side by side as typed, or in any form; None where that cannot be told."""
        text = self._cleaned(words)
        sides, marked = side_by_side(text), [*marked_names(text), *lone_operators(text)]
        if self._settings.analysis == "english" or not sides:
            return None
        exact = Joined((Words(EXACT, sides, side_by_side=True), *(Words(EXACT, (name,)) for name in marked)), True)
        query: Sought = exact
        if not phrase and not marked:
            others = [Words(EXACT, ("".join(sides),))]
            others += [Words(FIELDS[0], tuple(self.terms(text)))] if len(sides) == 1 else []
            query = Joined((exact, *others))
        mask = np.zeros(len(self), dtype=bool)
        for part, rows in ask_all(self._parts, _holders, [(query, len(part.rows)) for part in self._parts]):
            mask[part.rows.start + rows] = True
        return mask

    def close(self) -> None:
        """Release what is open here; closing twice is allowed."""
        for part in self._parts:
            part.close()

    def _searched(self, sought: Sequence[Sought], k: int, among: Sequence[RowSet | None]) -> list[Hits]:
        asked: list[tuple[Any, ...]] = [(sought, k, [allowed_of(part, each) for each in among]) for part in self._parts]
        if len(self._parts) > 1:
            frequencies = self._frequencies_of(term for each in sought for term in terms_of(each))
            for at, (_, _, allowed) in enumerate(asked):
                weighed = [self._statistics.weighed(each, at, frequencies) for each in sought]
                asked[at] = (weighed, k, allowed, self._statistics.filled[at])
        return merged_hits(ask_all(self._parts, _search, asked), k)

    def _frequencies_of(self, terms: Iterable[Term]) -> Mapping[Term, Sequence[int]]:
        """How many contents of each part hold each term; of one that does not reply none do."""
        wanted = list(dict.fromkeys(terms))
        counted = {term: held for term in wanted if (held := self._frequencies.get(term)) is not None}
        if new := [term for term in wanted if term not in counted]:
            replies = {part.name: held for part, held in ask_all(self._parts, _held, [(new,)] * len(self._parts))}
            rows = zip(*(replies.get(part.name, [0] * len(new)) for part in self._parts), strict=True)
            counted |= dict(zip(new, rows, strict=True))
            # What is here is found faster than remembered; an incomplete reply is none to remember.
            if len(replies) == len(self._parts) > 1:
                if len(self._frequencies) > _REMEMBERED:
                    self._frequencies = {}
                self._frequencies |= {term: counted[term] for term in new}
        return counted

    def _cleaned(self, text: str) -> str:
        return self._cleaned_text(cleaned(text, QUERY_BYTES))

    def _cleaned_text(self, text: str) -> str:
        return text if self._settings.analysis == "english" else normalised(text)

    def _sought(self, text: str) -> Joined:
        """The terms of a text in every weighted field, and what is looked for beside them in the field `exact`."""
        terms = tuple(self.terms(text))
        clauses = [Words(field, terms, weight) for field, weight in self._weights] if terms else []
        if (exact := self.wanted(text)) is not None:
            rules = self._settings.words
            some = exact.weighted(rules)
            clauses += [Words(EXACT, tokens, weight) for tokens, weight in some if tokens and weight]
            sides = exact.phrases if rules.phrases else ()
            clauses += [Words(EXACT, words, rules.phrases, side_by_side=True) for words in sides]
        return Joined(tuple(clauses))


class _HasTexts(Protocol):
    @property
    def text(self) -> OpenedTexts: ...


def _held(indexes: _HasTexts, terms: Sequence[Term]) -> list[int]:
    return indexes.text.frequencies(terms)


def _holders(indexes: _HasTexts, sought: Sought, rows: int) -> np.ndarray:
    return indexes.text.search(sought, max(1, rows))[0]


def _search(
    indexes: _HasTexts,
    sought: Sequence[Sought],
    k: int,
    allowed: Sequence[Allowed],
    filled: Mapping[str, FieldCounts] | None = None,
) -> list[Hits]:
    return [indexes.text.search(each, k, row_set(rows), filled) for each, rows in zip(sought, allowed, strict=True)]
