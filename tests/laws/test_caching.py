"""EVA-7, EVA-9, ARC-9: what is remembered from one pass over queries to the next is what would be found again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from lab.ablation import features_of
from tests.laws.test_batches import GENERATION, queries, told
from tests.support.examples import examples
from tests.support.retrieval_fakes import NOW, EvenBeliefs, MemorySource, a_query, settings
from weft.domain.ranking import Answer, Channel, Query
from weft.evaluation.replay.caching import CachingEncoder, LruCache
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


class OneSided(EvenBeliefs):
    """Beliefs other than even ones, so that rankings differ."""

    def usage(self, hashes: Sequence[str], question: str) -> np.ndarray:
        return np.array([int(each[:4], 16) / 65535 for each in hashes])


class Passes:
    """Asks one snapshot again and again, by an encoder that remembers."""

    def __init__(self, snapshot: Snapshot, encoder: Any, *, most: int = 100) -> None:
        self.snapshot, self.encoder, self.openings = snapshot, CachingEncoder(encoder, most), OpenedCache()

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


def test_a_channel_that_cannot_be_opened_is_missed_every_time() -> None:
    """RET-7: nor is that remembered."""
    replay = Passes(SNAPSHOT, GENERATION.encoder)
    with_second = settings(channels=[Channel.DENSE, Channel.LEXICAL, Channel.DENSE_2])
    assert [told(answer) for answer in replay([a_query("jam")], with_second)] == fresh(
        [a_query("jam")], with_second, SNAPSHOT
    )


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
