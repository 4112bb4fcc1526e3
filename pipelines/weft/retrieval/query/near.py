"""Which past questions ask the same, in other words (LRN-19).

"Enable the cache" and "disable the cache" lie near. So nothing passes between questions whose names, numbers,
negations, directions or question words disagree, or where each has a content word that the other lacks: the encoders at
hand do not tell a synonym from an opposite. Of the rest the cosine and the share of common words say how much does.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from weft.domain.ids import question_of
from weft.learning.observe.precedents import Precedents
from weft.learning.priors import NearPrior
from weft.wording.questions import Question


class QuestionSimilarity:
    """How near two questions are, by meaning and by what both name.

    cosine + overlap · Σ idf(content words of both) / Σ idf(content words of either), where
    idf = ln((n + 1) / (questions with the word + ½)) over n past questions: a word that half of them hold says little.
    """

    def __init__(self, past: Sequence[Question], overlap: float) -> None:
        """Count words."""
        self._overlap = overlap
        self._asked = len(past)
        holding: defaultdict[str, list[int]] = defaultdict(list)
        for at, each in enumerate(past):
            for stem in each.content:
                holding[stem].append(at)
        self._holding = {stem: np.array(places, dtype=np.int64) for stem, places in holding.items()}
        self._weights = np.array([self._weight(each.content) for each in past], dtype=np.float64)

    def of(self, ours: Question, theirs: Question, cosine: float) -> float:
        """Of two questions with some cosine, in [−1, 1 + overlap]."""
        both = self._weight(ours.content & theirs.content)
        either = self._weight(ours.content) + self._weight(theirs.content) - both
        return cosine + self._overlap * both / either if either > 0.0 else cosine

    def of_past(self, ours: Question, cosines: np.ndarray) -> np.ndarray:
        """Of a question and each past one, to the bit what `of` says, float64 (past questions,)."""
        both = np.zeros(self._asked)
        for stem in sorted(ours.content & self._holding.keys()):
            both[self._holding[stem]] += self._idf(stem)
        either = self._weight(ours.content) + self._weights - both
        shared = np.divide(self._overlap * both, either, out=np.zeros_like(both), where=either > 0.0)
        return np.asarray(cosines.astype(np.float64) + shared)

    def _weight(self, stems: frozenset[str]) -> float:
        """Sum over stems, in one order wherever it is made: a set's order differs between processes."""
        return sum(map(self._idf, sorted(stems)), start=0.0)

    def _idf(self, stem: str) -> float:
        return math.log((self._asked + 1.0) / (len(self._holding.get(stem, ())) + 0.5))


class Factors(NamedTuple):
    """How far outcomes under one question count for another, by bins of similarity (LRN-19)."""

    similarity: Sequence[float]  # where each bin begins
    by_similarity: Sequence[float]  # in [0, 1], of each bin
    same_words: float  # where the content words are the same, but for slips

    @classmethod
    def of(cls, prior: NearPrior) -> Factors:
        """What holds before there were verdicts under near questions."""
        return cls(prior.likeness, prior.factors, prior.same_words)

    def bin(self, ours: Question, theirs: Question, similarity: float) -> int | None:
        """The bin of two questions, counted from 0, the last one for the same words; None where nothing counts."""
        same = bool(ours.content) and ours.says_the_same(theirs)
        if (similarity < self.similarity[0] and not same) or ours.contradicts(theirs):
            return None
        return len(self.similarity) if same else bisect_right(self.similarity, similarity) - 1

    def factor(self, ours: Question, theirs: Question, similarity: float) -> float:
        """How far outcomes under one count for the other, in [0, 1]."""
        at = self.bin(ours, theirs, similarity)
        return 0.0 if at is None else (*self.by_similarity, self.same_words)[at]


def learned_factors(
    asked: Sequence[PastQuestion], similarity: QuestionSimilarity, precedents: Precedents, prior: NearPrior
) -> Factors:
    """Factors as verdicts under near questions show them.

    A bin's factor is the mean of its prior, worth `strength` pairs, and of its pairs; it never falls with the
    similarity.
    """
    factors, verdicts = Factors.of(prior), [_verdicts(precedents, each.fingerprint) for each in asked]
    before = np.array([*prior.factors, prior.same_words])
    sums, counts = np.zeros_like(before), np.zeros_like(before)
    for one, other in dict.fromkeys([*_pairs(verdicts), *_nearest(asked, verdicts)]):
        first, second = asked[one], asked[other]
        near = similarity.of(first.wording, second.wording, float(first.vector @ second.vector))
        at = factors.bin(first.wording, second.wording, near)
        if at is not None:
            both = verdicts[one].keys() & verdicts[other].keys()
            for ours, theirs in ((verdicts[one][content], verdicts[other][content]) for content in both):
                sums[at] += ours.held * theirs.held * (counted := ours.weight * theirs.weight)
                counts[at] += counted
            if not both:
                counts[at] += _best_weight(verdicts[one]) * _best_weight(verdicts[other])
    learned = np.clip((prior.strength * before + sums) / (prior.strength + counts), 0.0, 1.0)
    *by_similarity, same = np.maximum.accumulate(learned).tolist()
    return Factors(prior.likeness, by_similarity, same)


_PAIRS = 20_000  # of questions that are compared; more say the same and take longer
_COMPARED = 500  # questions of which the nearest is looked for; more say the same and take longer


def _nearest(asked: Sequence[PastQuestion], verdicts: Sequence[Mapping[int, _Held]]) -> Iterator[tuple[int, int]]:
    """Of questions that something answers, each with the nearest other one by meaning, the lower number first."""
    answered = [at for at, each in enumerate(verdicts) if any(one.held > 0.0 for one in each.values())][:_COMPARED]
    if len(answered) > 1:
        vectors = np.array([asked[at].vector for at in answered], dtype=np.float32)
        cosines = vectors @ vectors.T
        np.fill_diagonal(cosines, -np.inf)
        for at, nearest in zip(answered, cosines.argmax(axis=1).tolist(), strict=True):
            one, other = sorted((at, answered[nearest]))
            yield one, other


class _Held(NamedTuple):
    """What people hold of a content under a question, from −1 to 1, and what that counts, in [0, 1]."""

    held: float
    weight: float


def _verdicts(precedents: Precedents, fingerprint: str) -> dict[int, _Held]:
    """What people hold of contents under a question."""
    words = precedents.verdicts.take(precedents.under(fingerprint))
    contents, of = np.unique(words.content, return_inverse=True)
    total = np.bincount(of, weights=words.weight, minlength=len(contents))
    net = np.bincount(of, weights=words.weight * (2.0 * words.good - 1.0), minlength=len(contents))
    held = net / np.maximum(total, np.finfo(np.float64).tiny)
    lines = zip(contents.tolist(), held.tolist(), np.minimum(total, 1.0).tolist(), strict=True)
    return {content: _Held(each, weight) for content, each, weight in lines}


def _best_weight(verdicts: Mapping[int, _Held]) -> float:
    """What the answer of a question counts that counts most, in [0, 1]."""
    return max((each.weight for each in verdicts.values() if each.held > 0.0), default=0.0)


def _pairs(verdicts: Sequence[Mapping[int, _Held]]) -> Iterator[tuple[int, int]]:
    """Pairs of questions under which people spoke of the same content, each once."""
    by_content: defaultdict[int, list[int]] = defaultdict(list)
    for at, contents in enumerate(verdicts):
        for content in contents:
            by_content[content].append(at)
    pairs = ((one, other) for some in by_content.values() for one, other in combinations(some, 2))
    return islice(iter(dict.fromkeys(islice(pairs, _PAIRS))), _PAIRS)


Encode = Callable[[Sequence[str]], np.ndarray]
"""From texts to unit rows, float32 (n, dimension)."""


class PastQuestion(NamedTuple):
    """A past question."""

    fingerprint: str
    wording: Question
    vector: np.ndarray  # a unit vector, float32 (dimension,)


@dataclass(frozen=True, slots=True)
class _Indexed:
    asked: Sequence[PastQuestion]
    vectors: np.ndarray
    by_content: Mapping[frozenset[str], Sequence[int]]
    similarity: QuestionSimilarity
    factors: Factors


class QuestionIndex:
    """Past questions by meaning, each encoded and taken apart once; shared by threads."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._by_text: dict[str, tuple[Question, np.ndarray]] = {}
        self._lock = threading.Lock()
        self._indexed: WeakKeyDictionary[Precedents, _Indexed] = WeakKeyDictionary()

    def near(self, text: str, vector: np.ndarray | None, precedents: Precedents, prior: NearPrior) -> dict[str, float]:
        """Past questions that count for one, by fingerprint, with the factor; itself, where it was asked, with 1."""
        own = question_of(text)
        near = {own: 1.0} if len(precedents.under(own)) else {}
        if vector is None or not precedents.texts:
            return near
        indexed = self._read(precedents, prior)
        if not indexed.asked:
            return near
        ours = Question(text)
        similarity = indexed.similarity.of_past(ours, indexed.vectors @ vector)
        near_enough = np.flatnonzero(similarity >= prior.likeness[0]).tolist()
        for at in dict.fromkeys([*near_enough, *indexed.by_content.get(ours.content, ())]):
            theirs = indexed.asked[at]
            factor = indexed.factors.factor(ours, theirs.wording, float(similarity[at]))
            if factor > 0.0 and theirs.fingerprint != own:
                near[theirs.fingerprint] = factor
        return near

    def _read(self, precedents: Precedents, prior: NearPrior) -> _Indexed:
        with self._lock:
            indexed = self._indexed.get(precedents)
            if indexed is None:
                indexed = self._indexed[precedents] = self._index(precedents, prior)
            return indexed

    def _index(self, precedents: Precedents, prior: NearPrior) -> _Indexed:
        some = [each for each in sorted(precedents.texts) if len(precedents.under(each))][: prior.held]
        texts, encoded = [precedents.texts[each] for each in some], self._by_text
        if new := [text for text in dict.fromkeys(texts) if text not in encoded]:
            wordings = [Question(text) for text in new]
            encoded = encoded | dict(zip(new, zip(wordings, self._encode(new), strict=True), strict=True))
        self._by_text = {text: encoded[text] for text in texts}
        asked = [PastQuestion(each, *encoded[text]) for each, text in zip(some, texts, strict=True)]
        vectors = np.array([each.vector for each in asked], dtype=np.float32)
        by_content: defaultdict[frozenset[str], list[int]] = defaultdict(list)
        for at, each in enumerate(asked):
            by_content[each.wording.content].append(at)
        similarity = QuestionSimilarity([each.wording for each in asked], prior.overlap)
        factors = learned_factors(asked, similarity, precedents, prior)
        return _Indexed(asked, vectors, by_content, similarity, factors)
