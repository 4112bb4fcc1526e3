"""EVA-7, EVA-9, ARC-9: what is remembered from one pass over queries to the next is what would be found again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from lab.ablation import features_of
from lab.study.run import CachingSource
from tests.laws.test_batches import GENERATION, queries, told
from tests.support.examples import examples
from tests.support.retrieval_fakes import NOW, EvenBeliefs, MemoryGeneration, MemorySource, a_query, settings
from weft.domain.ranking import Answer, Channel, Query
from weft.evaluation.replay.caching import CachingEncoder, LruCache, remembered
from weft.indexes.rows import RowSet
from weft.retrieval.channels.open import OpenedCache
from weft.retrieval.searcher import Searcher
from weft.retrieval.settings import RetrievalSettings
from weft.retrieval.snapshot.snapshot import OneSnapshot, Snapshot

BASE = settings()
WAYS = {
    "as configured": BASE,
    **{feature.name: feature.without(BASE) for feature in features_of(BASE)},
    "shallow": settings(depth=2, encode_batch=2),
}
SNAPSHOT = MemorySource(GENERATION).take(None)


class Counting:
    """Passes on what an index is asked, and counts the texts or vectors."""

    def __init__(self, index: Any) -> None:
        self.index, self.asked, self.broken = index, 0, False

    def search(self, vectors: np.ndarray, *more: Any) -> Any:
        self.asked += len(vectors)
        return self.index.search(vectors, *more)

    def search_many(self, texts: Sequence[str], *more: Any) -> Any:
        self.asked += len(texts)
        if self.broken:
            raise OSError("the index is gone")
        return self.index.search_many(texts, *more)

    def vectors(self, rows: np.ndarray) -> Any:
        return self.index.vectors(rows)

    @property
    def isolation(self) -> Any:
        return self.index.isolation


class AlarmInput(MemoryGeneration):
    """A generation whose indexes are counted."""

    def __init__(self, documents: dict[str, list[str]]) -> None:
        super().__init__(documents)
        self.vectors = Counting(super().dense("words"))
        self.lexical = self.texts = Counting(self.lexical)

    def dense(self, encoder: str) -> Any:
        return self.vectors


class OneSided(EvenBeliefs):
    """Beliefs other than even ones, so that rankings differ."""

    def usage(self, hashes: Sequence[str], question: str) -> np.ndarray:
        return np.array([int(each[:4], 16) / 65535 for each in hashes])


class Passes:
    """Asks one snapshot that remembers, again and again."""

    def __init__(self, snapshot: Snapshot, encoder: Any, *, most: int = 100) -> None:
        self.snapshot, self.encoder, self.openings = (
            remembered(snapshot, most),
            CachingEncoder(encoder, most),
            OpenedCache(),
        )

    def __call__(
        self, asked: Sequence[Query], rules: RetrievalSettings = BASE, beliefs: EvenBeliefs | None = None
    ) -> list[Answer]:
        snapshot = self.snapshot if beliefs is None else replace(self.snapshot, beliefs=beliefs)
        source = OneSnapshot(snapshot)
        with Searcher(source, self.encoder, rules, clock=lambda: NOW, openings=self.openings) as searcher:
            return [
                answer for start in range(0, len(asked), 3) for answer in searcher.search_many(asked[start : start + 3])
            ]


def fresh(asked: Sequence[Query], rules: RetrievalSettings, snapshot: Snapshot) -> list[Answer]:
    """What a searcher answers that was opened for nothing else."""
    with Searcher(OneSnapshot(snapshot), GENERATION.encoder, rules, clock=lambda: NOW) as searcher:
        return [told(searcher.search(query)) for query in asked]


@budget(deadline=None, max_examples=examples(40))
@given(
    asked=queries(),
    passes=st.lists(st.tuples(st.sampled_from(sorted(WAYS)), st.booleans()), min_size=1, max_size=5),
    most=st.sampled_from([1, 3, 1000]),
)
def test_what_is_remembered_is_what_a_fresh_search_finds(
    asked: list[Query], passes: list[tuple[str, bool]], most: int
) -> None:
    """EVA-9, ARC-9: to the last bit, under every feature off in turn, under other beliefs, after whatever else."""
    replay = Passes(SNAPSHOT, GENERATION.encoder, most=most)
    for name, otherwise in passes:
        beliefs = OneSided() if otherwise else EvenBeliefs()
        again = replay(asked, WAYS[name], beliefs)
        assert [told(answer) for answer in again] == fresh(asked, WAYS[name], replace(SNAPSHOT, beliefs=beliefs))


def test_only_the_first_pass_asks_the_engines() -> None:
    """EVA-7: other beliefs and other weights ask them nothing; other depths and other contents do."""
    generation = AlarmInput({"a": ["red apple"], "b": ["red pear"], "c": ["green apple pie"], "d": ["plum"]})
    replay = Passes(MemorySource(generation).take(None), generation.encoder)
    asked = [a_query("red apple"), a_query("plum"), a_query("red apple")]

    def counted(**changes: Any) -> tuple[int, int]:
        before = generation.vectors.asked, generation.texts.asked
        replay(asked, settings(**changes))
        return generation.vectors.asked - before[0], generation.texts.asked - before[1]

    first = counted()
    assert min(first) >= 2
    assert counted() == counted(fusion="rrf") == counted(without_signals=["vector"]) == (0, 0)
    assert min(counted(depth=2)) >= 2
    assert counted(depth=2) == (0, 0)


def test_more_queries_than_are_remembered_are_asked_anew() -> None:
    """EVA-7: what is kept is bounded, and what fell out is found again."""
    generation = AlarmInput({"a": ["red apple"], "b": ["red pear"], "c": ["green apple pie"]})
    snapshot = remembered(MemorySource(generation).take(None), 2)
    assert remembered(snapshot, 9) is snapshot
    index = snapshot.generation.lexical
    texts = ["red", "apple", "pie"]
    found = [index.search_many(texts, 3, [None] * 3) for _ in range(2)]
    assert [[rows.tolist() for rows, _ in each] for each in found] == [
        [rows.tolist() for rows, _ in generation.texts.index.search_many(texts, 3, [None] * 3)]
    ] * 2
    assert generation.texts.asked == 4  # of three texts the last two were kept
    with pytest.raises(ValueError, match="read-only"):
        found[0][0][0][:] = 0  # what others will read


def test_what_may_be_found_is_part_of_the_question() -> None:
    """RET-4: a filtered search is another one, and so is one through another filter."""
    generation = AlarmInput({"a": ["red apple"], "b": ["red pear"]})
    snapshot = remembered(MemorySource(generation).take(None), 100)
    some, others = (RowSet(np.array(mask)) for mask in ([True, False], [False, True]))
    for index, question in (
        (
            snapshot.generation.lexical,
            lambda rows: snapshot.generation.lexical.search_many(["red"], 2, [rows])[0][0],
        ),
        (snapshot.generation.dense("words"), lambda rows: _nearest(snapshot, generation, rows)),
    ):
        assert index is not None
        found = [[row for row in question(rows).tolist() if row >= 0] for rows in (None, some, others) * 2]
        assert found == [[0, 1], [0], [1]] * 2
    assert (generation.texts.asked, generation.vectors.asked) == (3, 3)


def _nearest(snapshot: Snapshot, generation: AlarmInput, rows: RowSet | None) -> np.ndarray:
    return np.sort(snapshot.generation.dense("words").search(generation.encoder.encode(["red"]), 2, rows)[0][0])


def test_a_failure_is_not_remembered() -> None:
    """RET-7: the channel is named as failed as long as it fails, and found again once it answers."""
    generation = AlarmInput({"a": ["red apple"], "b": ["red pear"]})
    replay = Passes(MemorySource(generation).take(None), generation.encoder)
    asked = [a_query("red"), a_query("pear")]
    generation.texts.broken = True
    gone = {Channel.LEXICAL.value: "OSError: the index is gone"}
    assert [answer.failed_channels for _ in range(2) for answer in replay(asked)] == [gone] * 4
    generation.texts.broken = False
    whole = [told(answer) for answer in replay(asked)]
    assert whole == fresh_of(generation, asked)
    generation.texts.broken = True  # what was found stays found, as in the generation that it was found in
    assert [told(answer) for answer in replay(asked)] == whole


def fresh_of(generation: AlarmInput, asked: Sequence[Query]) -> list[Answer]:
    with Searcher(MemorySource(generation), generation.encoder, BASE, clock=lambda: NOW) as searcher:
        return [told(searcher.search(query)) for query in asked]


def test_a_channel_that_cannot_be_opened_is_missed_every_time() -> None:
    """RET-7: nor is that remembered."""
    replay = Passes(SNAPSHOT, GENERATION.encoder)
    with_second = settings(channels=[Channel.DENSE, Channel.LEXICAL, Channel.DENSE_2])
    assert [told(answer) for answer in replay([a_query("jam")], with_second)] == fresh(
        [a_query("jam")], with_second, SNAPSHOT
    )


def test_snapshots_of_one_generation_remember_together() -> None:
    """EVA-6: users of a study ask the same under beliefs that change, until another generation is live."""
    generation, other = AlarmInput({"a": ["red apple"]}), AlarmInput({"a": ["red pear"]})
    source = MemorySource(generation, generation, other)
    watched = CachingSource(source, 100)
    with Searcher(watched, generation.encoder, BASE, clock=lambda: NOW) as searcher:
        searcher.search(a_query("red"))
        once = generation.texts.asked
        source.version = 1  # other beliefs
        searcher.refresh()
        searcher.search(a_query("red"))
        assert generation.texts.asked == once > 0
        source.version = 2
        searcher.refresh()
        assert [result.text for result in searcher.search(a_query("red")).results] == ["red pear"]
    assert (watched.token(), generation.texts.asked) == (2, once)


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=8), st.integers(1, 12))
def test_a_memory_holds_at_most_so_many_and_tells_what_it_was_told(asked: list[list[int]], most: int) -> None:
    """EVA-7: whatever fell out of it meanwhile, each key has its value, and is asked for once at a time."""
    memory = LruCache[int, int](most)

    def ask(new: Sequence[int]) -> list[int]:
        assert len(set(new)) == len(new)
        return [each * each for each in new]

    for keys in asked:
        assert memory.of(keys, ask) == [key * key for key in keys]
        assert len(memory) <= most
