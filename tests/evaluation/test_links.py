"""CON-3: how often what is linked as similar is, on pairs planted in real texts."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pipelines.consolidation.tending.links import Joined, find_links
from pipelines.domain.ids import ContentHash, content_hash
from pipelines.embedding.encoders.encoder import load_encoder
from pipelines.learning.evidence import Evidence
from pipelines.settings import load_settings
from tests.support.duplicate_bench import collection

SETTINGS = load_settings(environment={})
TEXTS, PLANTED = 600, 200
PRECISION = 0.95


class Memory:
    """Texts, each in a document of its own."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._text_of = {content_hash(text): text for text in texts}
        self.contents: Sequence[ContentHash] = sorted(self._text_of)

    def texts(self) -> Sequence[str]:
        return [self._text_of[content] for content in self.contents]

    def apart(self, pairs: np.ndarray) -> np.ndarray:
        return np.ones(len(pairs), dtype=bool)


def retold(text: str, rng: random.Random) -> str:
    """The same sentences in another order, without every fifth word: less than a near-duplicate has in common."""
    sentences = [part for part in text.split(". ") if part]
    rng.shuffle(sentences)
    words = ". ".join(sentences).split()
    return " ".join(word for at, word in enumerate(words) if at % 5 != 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scifact", "cacm"])
def test_what_is_linked_as_similar_is(name: str, data_root: Path) -> None:
    """CON-3: of the links among 600 texts and 200 retold ones, 95 % at least join a text and its own."""
    rng = random.Random(3)
    texts = rng.sample(collection(name, data_root), TEXTS)
    again = [retold(text, rng) for text in texts[:PLANTED]]
    planted = {frozenset(map(content_hash, pair)) for pair in zip(texts, again, strict=False)}
    memory, encoder = Memory([*texts, *again]), load_encoder(SETTINGS.embedding)
    vectors = encoder.encode(memory.texts())
    for least in (0.8, 0.85, SETTINGS.consolidation.links.least_cosine, 0.95):
        rules = SETTINGS.consolidation.links.model_copy(update={"least_cosine": least})
        none = Joined(np.zeros((0, 2), np.int64))
        edges = find_links(memory, lambda: vectors, none, Evidence(), rules, today=0).edges.edges
        right = sum(frozenset((each.content, each.target)) in planted for each in edges)
        precision, recall = right / max(1, len(edges)), right / PLANTED
        sys.stderr.write(f"\n{name} at {least}: {len(edges)} links, precision {precision:.3f}, recall {recall:.3f}")
        if least == SETTINGS.consolidation.links.least_cosine:
            assert precision >= PRECISION
            assert recall >= 0.5
