"""Channels that search by themselves: by vector, by words, and by the phrases that documents declare (RET-7)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np

from weft.domain.arrays import Floats, Ints
from weft.domain.ids import ContentHash
from weft.domain.ranking import Channel
from weft.embedding.late_interaction import max_similarities
from weft.embedding.ports import TextEncoder
from weft.indexes.rows import RowSet
from weft.learning.observe.triggers import LEARNED, LearnedTriggers
from weft.retrieval.channels.run import NOTHING, Among, Hits, Ranked, ScoreRows, VectorLookup
from weft.retrieval.query.named import Grade, NamedPlaces
from weft.retrieval.query.understanding import Plan
from weft.retrieval.snapshot.ports import TextIndex, TokenEmbeddings, VectorIndex

_WORD = re.compile(r"\w+")

Words = tuple[str, ...]


class LexicalChannel:
    """Searches the text index."""

    def __init__(self, index: TextIndex) -> None:
        self._index = index

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        """The `depth` best contents of each text."""
        return [Ranked(Hits(*hits)) for hits in self._index.search_many(texts, depth, among)]


class DenseChannel:
    """Searches the vectors of one encoder; queries share encoder and FAISS batches."""

    def __init__(
        self, encoder: TextEncoder, index: VectorIndex, batch: int, *, tokens: TokenEmbeddings | None = None
    ) -> None:
        self._encoder = encoder
        self._index = index
        self._batch = batch
        self._tokens = tokens

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        """The `depth` nearest contents of each text; any other content's cosine can be had as well."""
        rankings: list[Ranked] = []
        for start in range(0, len(texts), self._batch):
            batch = slice(start, start + self._batch)
            vectors, matches = self._encoded(texts[batch])
            near = self._nearest(vectors, among[batch], depth)
            rankings += map(self._ranked, near, vectors, matches)
        return rankings

    def _ranked(self, ranking: Hits, vector: np.ndarray, match: ScoreRows | None) -> Ranked:
        stored = _LastRead(self._index)
        return Ranked(ranking, partial(_cosines, stored, vector), match, vector, partial(_cosines, stored), stored)

    def _nearest(self, vectors: np.ndarray, among: Among, depth: int) -> Iterator[Hits]:
        for rows, group in groupby(range(len(vectors)), key=among.__getitem__):
            for nearest, cosines in zip(*self._index.search(vectors[list(group)], depth, rows), strict=True):
                count = int(np.count_nonzero(nearest >= 0))  # what pads stands last
                yield Hits(nearest[:count], cosines[:count].astype(np.float64))

    def _encoded(self, texts: Sequence[str]) -> tuple[np.ndarray, Sequence[ScoreRows | None]]:
        stored = self._tokens
        if stored is None:
            return self._encoder.encode(texts), [None] * len(texts)
        vectors, tokens = self._encoder.encode_tokens(texts, lambda states: states @ stored.projection)
        return vectors, [_TokenMatches(of_text, stored) for of_text in tokens]


def _cosines(stored: VectorLookup, vector: np.ndarray, rows: Ints) -> Floats:
    return np.asarray(stored(rows) @ vector, dtype=np.float64)


class _LastRead:
    """Stored vectors for one query; those read last are served again without the index."""

    def __init__(self, index: VectorIndex) -> None:
        self._index = index
        self._rows = NOTHING.rows  # ascending
        self._vectors = np.zeros((0, 0), dtype=np.float32)

    def __call__(self, rows: Ints) -> np.ndarray:
        if len(self._rows):
            at = self._rows.searchsorted(rows)
            at[at == len(self._rows)] = 0
            if (self._rows[at] == rows).all():
                return self._vectors[at]
        vectors = self._index.vectors(rows)
        if (rows[1:] > rows[:-1]).all():
            self._rows, self._vectors = rows, vectors
        return vectors


class _TokenMatches:
    """How well contents match the tokens of one query, each compared once: what is reranked is mostly shown."""

    def __init__(self, query: np.ndarray, stored: TokenEmbeddings) -> None:
        self._query = query
        self._stored = stored
        self._matches: dict[int, float] = {}

    def __call__(self, rows: Ints) -> Floats:
        if not len(self._query):  # a text without tokens of its own matches everything equally
            return np.zeros(len(rows))
        asked = rows.tolist()
        new = np.array([row for row in asked if row not in self._matches], dtype=np.int64)
        if len(new):
            matches = max_similarities(self._query, *self._stored.gathered(new)).tolist()
            self._matches.update(zip(new.tolist(), matches, strict=True))
        return np.array([self._matches[row] for row in asked], dtype=np.float64)


class TriggerChannel:
    """Ranks contents whose trigger phrase stands in the query, word by word."""

    def __init__(self, phrases: Iterable[tuple[str, tuple[int, ...]]]) -> None:
        """Take phrases up."""
        self._rows: defaultdict[Words, list[tuple[int, ...]]] = defaultdict(list)
        self._lengths: defaultdict[str, set[int]] = defaultdict(set)  # of the phrases that begin with a word
        for phrase, rows in phrases:
            if words := _words_of(phrase):
                self._rows[words].append(rows)
                self._lengths[words[0]].add(len(words))

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        """The `depth` contents of each text by the share of its words that their longest trigger in it makes up."""
        return [self._ranked(_words_of(text), rows, depth) for text, rows in zip(texts, among, strict=True)]

    def _ranked(self, words: Words, among: RowSet | None, depth: int) -> Ranked:
        scores: dict[int, float] = {}
        heads: set[int] = set()
        for phrase in self._phrases_in(words):
            share = len(phrase) / len(words)
            for rows in self._rows[phrase]:
                heads.add(rows[0])
                scores |= {row: max(share, scores.get(row, 0.0)) for row in rows}
        allowed = ((row, scores[row]) for row in heads if among is None or among.mask[row])
        return Ranked(_best(allowed, depth), partial(_look_up, scores))

    def _phrases_in(self, words: Words) -> set[Words]:
        spans = (words[at : at + length] for at, word in enumerate(words) for length in self._lengths.get(word, ()))
        return {span for span in spans if span in self._rows}


class NamesChannel:
    """Ranks what defines a name that the text holds, and the pieces of a file whose path it holds (RET-22)."""

    def __init__(self, places: NamedPlaces) -> None:
        """Take what looks names up."""
        self._places = places

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        """The `depth` contents of each text that are most what it names."""
        return [self._ranked(text, rows, depth) for text, rows in zip(texts, among, strict=True)]

    def _ranked(self, text: str, among: RowSet | None, depth: int) -> Ranked:
        scores = {row: grade / max(Grade) for row, grade in self._places.of(text).grades.items()}
        allowed = ((row, score) for row, score in scores.items() if among is None or among.mask[row])
        return Ranked(_best(allowed, depth), partial(_look_up, scores))


def _words_of(text: str) -> Words:
    return tuple(word.casefold() for word in _WORD.findall(text))


def _best(scores: Iterable[tuple[int, float]], depth: int) -> Hits:
    return Hits.of(sorted(scores, key=lambda hit: (-hit[1], hit[0]))[:depth])


def _look_up(scores: Mapping[int, float], rows: Ints) -> Floats:
    return np.array([scores.get(row, 0.0) for row in rows.tolist()], dtype=np.float64)


def with_learned_triggers(
    plan: Plan,
    by_channel: Mapping[Channel, Ranked],  # of one query; the trigger channel may be missing
    triggers: LearnedTriggers,
    row_of: Callable[[ContentHash], int | None],  # row of a content; None of one that the generation does not hold
    is_common: Callable[[str], bool],  # whether a word stands in much of the generation
) -> tuple[Plan, dict[Channel, Ranked]]:
    """Rankings and what learned triggers lead to (RET-17); triggers on trial are reported in the plan, and no more.

    A score is the share of the query's words that are triggers of the content, the domain's vocabulary left out.
    """
    if Channel.TRIGGERS not in by_channel or not triggers.count:
        return plan, dict(by_channel)
    words = _words_of(plan.text)
    matched = [each for each in triggers.of(words) if not is_common(each.term)]
    trial: dict[str, str] = {each.content_hash: f"{LEARNED}{each.term}" for each in matched if each.on_trial}
    reported = replace(plan, understanding=replace(plan.understanding, shadowed=trial))
    shares: dict[int, float] = {}
    for trigger in matched:
        row = None if trigger.on_trial else row_of(trigger.content_hash)
        if row is not None and (plan.among is None or plan.among.mask[row]):
            shares[row] = shares.get(row, 0.0) + words.count(trigger.term) / len(words)
    return reported, {**by_channel, Channel.TRIGGERS: _joined(by_channel[Channel.TRIGGERS], shares, plan.depth)}


def _joined(declared: Ranked, learned: Mapping[int, float], depth: int) -> Ranked:
    if not learned:
        return declared
    ranked = dict(declared.ranking)
    scores = {row: max(learned.get(row, 0.0), ranked.get(row, 0.0)) for row in {*learned, *ranked}}
    other = declared.score_rows

    def score_rows(rows: Ints) -> Floats:
        taught = _look_up(learned, rows)
        return taught if other is None else np.maximum(taught, other(rows))

    return replace(declared, ranking=_best(scores.items(), depth), score_rows=score_rows)
