"""CON-2, RET-12: representatives in the place of their aliases."""

from __future__ import annotations

import numpy as np

from weft.domain.ids import ContentHash
from weft.learning.aliases import ContentAliases
from weft.retrieval.channels.run import Hits
from weft.retrieval.snapshot.places import ContentLocator

A, B, C, GONE = (ContentHash(letter * 64) for letter in "abcf")


class Contents:
    """A generation of three contents."""

    def rows_of(self, hashes: list[str]) -> np.ndarray:
        return np.array([{A: 0, B: 1, C: 2}.get(ContentHash(one), -1) for one in hashes], dtype=np.int64)

    def chunks_of_document(self, uri: str) -> list[object]:
        return []


def test_a_class_stands_where_its_best_stood() -> None:
    """CON-2: an alias found first gives its place and score to the representative, which is ranked once."""
    hits = Hits.of([(5, 0.9), (2, 0.8), (7, 0.7), (3, 0.6)])
    assert list(hits.collapsed({5: 3, 7: 3})) == [(3, 0.9), (2, 0.8)]
    assert hits.collapsed({8: 9}) is hits


def test_only_aliases_that_are_here_give_way() -> None:
    """CON-6: a content stands for itself where its representative is gone."""
    places = ContentLocator(Contents())  # type: ignore[arg-type]
    assert dict(places.representatives(ContentAliases({B: A, C: GONE}))) == {1: 0}
    led = ContentAliases({B: GONE, C: GONE}).led_by(lambda content: content != GONE)
    assert dict(places.representatives(led)) == {2: 1}
