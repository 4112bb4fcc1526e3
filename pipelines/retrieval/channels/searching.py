"""Channels that search by themselves: by vector, by words, and by the phrases that documents declare (RET-7)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import numpy as np

from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Channel
from pipelines.embedding.late_interaction import max_similarities
from pipelines.indexes.rows import RowSet
from pipelines.learning.observe.triggers import LEARNED, LearnedTriggers
from pipelines.retrieval.channels.run import NOTHING, Among, Floats, Hits, Ints, Ranked, ScoreRows, VectorsOf
from pipelines.retrieval.query.plan import Plan
from pipelines.retrieval.snapshot.ports import QueryEncoder, TokenEmbeddings, VectorIndex


class DenseChannel:
    """Searches the vectors of one encoder; queries share encoder and FAISS batches.

    Where the contents' token embeddings are kept, a query's own come from the forward pass that gives its vector.
    """

    def __init__(
        self, encoder: QueryEncoder, index: VectorIndex, batch: int, *, tokens: TokenEmbeddings | None = None
    ) -> None:
        self._encoder = encoder
        self._index = index
        self._batch = batch
        self._tokens = tokens

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        """The `depth` nearest contents of each text; any other content's cosine can be had as well."""
        found: list[Ranked] = []
        for start in range(0, len(texts), self._batch):
            batch = slice(start, start + self._batch)
            vectors, matches = self._encoded(texts[batch])
            near = self._nearest(vectors, among[batch], depth)
            found += (
                self._ranked(ranking, vector, match)
                for ranking, vector, match in zip(near, vectors, matches, strict=True)
            )
        return found

    def _ranked(self, ranking: Hits, vector: np.ndarray, match: ScoreRows | None) -> Ranked:
        stored = _ReadOnce(self._index)
        return Ranked(ranking, partial(_cosines, stored, vector), match, vector, partial(_cosines, stored), stored)

    def _nearest(self, vectors: np.ndarray, among: Among, depth: int) -> Iterator[Hits]:
        for rows, alike in groupby(range(len(vectors)), key=among.__getitem__):
            found = self._index.search(vectors[list(alike)], depth, rows)
            yield from (_hits(*of_text) for of_text in zip(*found, strict=True))

    def _encoded(self, texts: Sequence[str]) -> tuple[np.ndarray, Sequence[ScoreRows | None]]:
        stored = self._tokens
        if stored is None:
            return self._encoder.encode(texts), [None] * len(texts)
        vectors, tokens = self._encoder.encode_tokens(texts, lambda states: states @ stored.projection)
        return vectors, [_Matches(of_text, stored) for of_text in tokens]


def _cosines(stored: VectorsOf, vector: np.ndarray, rows: Ints) -> Floats:
    return np.asarray(stored(rows) @ vector, dtype=np.float64)


class _ReadOnce:
    """Stored vectors for one query: who asks again for some of those that were read last gets what was read."""

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


class _Matches:
    """How well contents match the tokens of one query, each compared once: what is looked at again is mostly shown."""

    def __init__(self, query: np.ndarray, stored: TokenEmbeddings) -> None:
        self._query = query
        self._stored = stored
        self._known: dict[int, float] = {}

    def __call__(self, rows: Ints) -> Floats:
        if not len(self._query):  # a text without tokens of its own matches everything alike
            return np.zeros(len(rows))
        asked = rows.tolist()
        new = np.array([row for row in asked if row not in self._known], dtype=np.int64)
        if len(new):
            found = max_similarities(self._query, *self._stored.gathered(new)).tolist()
            self._known.update(zip(new.tolist(), found, strict=True))
        return np.array([self._known[row] for row in asked], dtype=np.float64)


def _hits(rows: np.ndarray, cosines: np.ndarray) -> Hits:
    # Best first, and ties by row, is how the index gives them; what pads stands last.
    found = int(np.count_nonzero(rows >= 0))
    return Hits(rows[:found], cosines[:found].astype(np.float64))


_WORD = re.compile(r"\w+")

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Triggered:
    """A phrase, and what it wants to be found.

    Attributes:
        rows: Rows of the contents it speaks for; the first one is found, the others are scored alike where another
            channel finds them.
    """

    phrase: str
    rows: tuple[int, ...]


class TriggerChannel:
    """Finds contents whose trigger phrase stands in the query, word by word."""

    def __init__(self, triggers: Iterable[Triggered], *, most_words: int) -> None:
        """Take triggers up.

        Args:
            most_words: Words of a query that are looked at.
        """
        self._most_words = most_words
        wanted: defaultdict[Words, list[tuple[int, ...]]] = defaultdict(list)
        for trigger in triggers:
            if words := words_of(trigger.phrase):
                wanted[words].append(trigger.rows)
        self._wanted: Mapping[Words, Sequence[tuple[int, ...]]] = dict(wanted)
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for phrase in wanted:
            lengths[phrase[0]].add(len(phrase))
        self._lengths: Mapping[str, set[int]] = dict(lengths)

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        """The `depth` contents of each text by the share of its words that their longest trigger in it makes up."""
        return [
            self._found(words_of(text)[: self._most_words], rows, depth)
            for text, rows in zip(texts, among, strict=True)
        ]

    def _found(self, words: Words, among: RowSet | None, depth: int) -> Ranked:
        scores: dict[int, float] = {}
        heads: set[int] = set()
        for phrase in self._phrases_in(words):
            share = len(phrase) / len(words)
            for rows in self._wanted[phrase]:
                heads.add(rows[0])
                scores |= {row: max(share, scores.get(row, 0.0)) for row in rows}
        if not scores:
            return Ranked(NOTHING, _none)
        ranking = sorted(
            ((row, scores[row]) for row in heads if among is None or among.mask[row]), key=lambda hit: (-hit[1], hit[0])
        )
        return Ranked(Hits.of(ranking[:depth]), _look_up(scores))

    def _phrases_in(self, words: Words) -> set[Words]:
        spans = (words[at : at + length] for at, word in enumerate(words) for length in self._lengths.get(word, ()))
        return {span for span in spans if span in self._wanted}


def words_of(text: str) -> Words:
    """The words of a text, case folded.

    Examples:
        >>> words_of("Disk full, NOW!")
        ('disk', 'full', 'now')
    """
    return tuple(word.casefold() for word in _WORD.findall(text))


def _look_up(scores: Mapping[int, float]) -> ScoreRows:
    return lambda rows: np.array([scores.get(row, 0.0) for row in rows.tolist()], dtype=np.float64)


def _none(rows: Ints) -> Floats:
    return np.zeros(len(rows))


def with_learned_triggers(
    plan: Plan,
    found: Mapping[Channel, Ranked],
    triggers: LearnedTriggers,
    row_of: Callable[[ContentHash], int | None],
    is_name: Callable[[str], bool],
) -> tuple[Plan, dict[Channel, Ranked]]:
    """What the channels found and what learned triggers lead to; triggers on trial are told in the plan, and no more.

    A content counts as found by the share of the query's words that are its triggers. Names that the generation knows
    trigger nothing: they belong to its vocabulary, and lead to everything that bears them.

    Args:
        found: Of one query, by channel; the trigger channel may be missing.
        row_of: Row of a content; None of one that the generation does not hold.
        is_name: Whether the generation knows an entity of that name.
    """
    if Channel.TRIGGERS not in found:
        return plan, dict(found)
    if not triggers.count:
        return plan, dict(found)
    words = words_of(plan.text)
    matched = [each for each in triggers.of(words) if not is_name(each.term)]
    trial: dict[str, str] = {each.content_hash: f"{LEARNED}{each.term}" for each in matched if each.on_trial}
    told = replace(plan, understanding=replace(plan.understanding, shadowed=trial))
    shares: dict[int, float] = {}
    for trigger in matched:
        row = None if trigger.on_trial else row_of(trigger.content_hash)
        if row is not None and (plan.among is None or plan.among.mask[row]):
            shares[row] = shares.get(row, 0.0) + words.count(trigger.term) / len(words)
    return told, {**found, Channel.TRIGGERS: _joined(found[Channel.TRIGGERS], shares, plan.depth)}


def _joined(declared: Ranked, learned: Mapping[int, float], depth: int) -> Ranked:
    if not learned:
        return declared
    known = dict(declared.ranking)
    scores = {row: max(learned.get(row, 0.0), known.get(row, 0.0)) for row in {*learned, *known}}
    ranking = Hits.of(sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))[:depth])
    other = declared.score_rows

    def score_rows(rows: Ints) -> Floats:
        taught = np.array([learned.get(row, 0.0) for row in rows.tolist()], dtype=np.float64)
        return taught if other is None else np.maximum(taught, other(rows))

    return replace(declared, ranking=ranking, score_rows=score_rows)
