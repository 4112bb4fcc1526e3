"""The trigger channel: documents that say by which phrases they want to be found (RET-7)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipelines.indexes.rows import RowSet
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

    def __init__(self, triggers: Iterable[Triggered]) -> None:
        by_start: defaultdict[str, list[tuple[Words, tuple[int, ...]]]] = defaultdict(list)
        for trigger in triggers:
            if words := words_of(trigger.phrase):
                by_start[words[0]].append((words, trigger.rows))
        self._by_start: Mapping[str, Sequence[tuple[Words, tuple[int, ...]]]] = by_start

    def search(self, texts: Sequence[str], among: Among, depth: int) -> list[Ranked]:
        """The `depth` contents of each text by the share of its words that their longest trigger in it makes up."""
        return [self._found(words_of(text), rows, depth) for text, rows in zip(texts, among, strict=True)]

    def _found(self, words: Words, among: RowSet | None, depth: int) -> Ranked:
        scores: dict[int, float] = {}
        heads: set[int] = set()
        for start, word in enumerate(words):
            for phrase, rows in self._by_start.get(word, ()):
                if words[start : start + len(phrase)] == phrase:
                    heads.add(rows[0])
                    share = len(phrase) / len(words)
                    scores |= {row: max(share, scores.get(row, 0.0)) for row in rows}
        ranking = sorted(
            ((row, scores[row]) for row in heads if among is None or among.mask[row]), key=lambda hit: (-hit[1], hit[0])
        )
        return Ranked(ranking[:depth], _look_up(scores))


def words_of(text: str) -> Words:
    """The words of a text, case folded.

    Examples:
        >>> words_of("Disk full, NOW!")
        ('disk', 'full', 'now')
    """
    return tuple(word.casefold() for word in _WORD.findall(text))


def _look_up(scores: Mapping[int, float]) -> Callable[[Sequence[int]], list[float]]:
    return lambda rows: [scores.get(row, 0.0) for row in rows]
