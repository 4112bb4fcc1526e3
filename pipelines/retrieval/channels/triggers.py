"""The trigger channel: documents that say by which phrases they want to be found (RET-7)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipelines.domain.ids import ContentHash
from pipelines.domain.ranking import Channel
from pipelines.indexes.rows import RowSet
from pipelines.learning.observe.triggers import LEARNED, LearnedTriggers
from pipelines.retrieval.channels.rankings import NOTHING, Floats, Hits, Ints, ScoreRows
from pipelines.retrieval.channels.run import Among, Ranked
from pipelines.retrieval.query.plan import Plan

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
