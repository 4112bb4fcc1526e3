"""BM25 of texts that an index does not hold, as if it did: by its statistics, in which nothing changes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from weft.indexes.settings import LexicalSettings
from weft.indexes.text.analysis import EXACT, texts_by_field
from weft.indexes.text.build import LexicalDocument
from weft.indexes.text.lexical import LexicalIndex

_EXACT_BELOW = 24  # terms: Lucene stores longer lengths by their four leading bits above it
_LEADING_BITS = 4


class OutsideTexts:
    """Texts scored beside an index; the score of each is what a search of the index would give it."""

    def __init__(self, index: LexicalIndex, documents: Sequence[LexicalDocument], settings: LexicalSettings) -> None:
        """Take texts up."""
        self._index = index
        self._settings = settings
        self._size = len(documents)
        texts = [texts_by_field(each, settings) for each in documents]
        self._weights = {name: weight for name, weight in settings.weights.model_dump().items() if weight}
        names = [*self._weights, *([] if settings.analysis == "english" else [EXACT])]
        self._fields = {
            name: _Field(index, name, [each[name] for each in texts], k1=settings.k1, b=settings.b) for name in names
        }

    def scores(self, text: str) -> np.ndarray:
        """BM25 of each text for the words of a query, float64 (texts,); 0 of those that share none with it."""
        total = np.zeros(self._size)
        for term, times in Counter(self._index.terms(text)).items():
            for name, weight in self._weights.items():
                self._fields[name].add((term,), times * weight, total)
        if (sought := self._index.wanted(text)) is not None:
            words = self._settings.words
            for tokens, weight in sought.weighted(words):
                for token in tokens:
                    self._fields[EXACT].add((token,), weight, total)
            for phrase in sought.phrases:
                self._fields[EXACT].add(phrase, words.phrases, total)
        return total.astype(np.float32).astype(np.float64)  # as Lucene gives them


class _Field:
    """One field of all texts: score(t) = weight · idf · tf / (tf + k1 · (1 − b + b · length / average)).

    Of words side by side tf is how often they stand so, and idf the sum of theirs.
    """

    def __init__(self, index: LexicalIndex, name: str, texts: Sequence[str], *, k1: float, b: float) -> None:
        self._index, self._name = index, name
        self._b, self._k1 = b, k1
        self._places: dict[str, dict[int, list[int]]] = {}
        self._idf: dict[str, float] = {}
        lengths = []
        for text, each in enumerate(texts):
            terms = index.analysed(name, each)
            lengths.append(stored_length(len(terms)))
            for place, term in enumerate(terms):
                self._places.setdefault(term, {}).setdefault(text, []).append(place)
        self._lengths = lengths

    def add(self, terms: Sequence[str], weight: float, total: np.ndarray) -> None:
        """Add what a term of a query, or several side by side, give each text."""
        if any(term not in self._places for term in terms):
            return
        first, *others = (self._places[term] for term in terms)
        rarity = weight * sum(map(self._rarity, terms))
        for text, places in first.items():
            begins = set(places)
            for distance, other in enumerate(others, start=1):
                begins &= {place - distance for place in other.get(text, ())}
            saturation = self._k1 * (1.0 - self._b + self._b * self._lengths[text] / self._average)
            total[text] += rarity * len(begins) / (len(begins) + saturation)

    def _rarity(self, term: str) -> float:
        if term not in self._idf:
            documents, holding = self._counts[0], self._index.document_frequency(self._name, term)
            self._idf[term] = math.log(1.0 + (documents - holding + 0.5) / (holding + 0.5))
        return self._idf[term]

    @cached_property
    def _counts(self) -> tuple[int, int]:
        return self._index.field_counts(self._name)

    @property
    def _average(self) -> float:
        documents, terms = self._counts
        return terms / documents if documents else 1.0


def stored_length(terms: int) -> int:
    """A length as Lucene stores it, in one byte.

    Examples:
        >>> [stored_length(terms) for terms in (23, 39, 41, 1000)]
        [23, 39, 40, 984]
    """
    beyond = terms - _EXACT_BELOW
    if beyond < 0:
        return terms
    lost = max(0, beyond.bit_length() - _LEADING_BITS)
    return _EXACT_BELOW + ((beyond >> lost) << lost)
