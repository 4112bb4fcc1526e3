"""The trigger channel: documents that say by which phrases they want to be found (RET-7)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.indexes.rows import RowSet
from pipelines.retrieval.channels.rankings import NOTHING, Floats, Hits, Ints, ScoreRows
from pipelines.retrieval.channels.run import Among, Ranked

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
