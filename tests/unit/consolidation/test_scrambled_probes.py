"""RET-15: probes made of a store's own words."""

from __future__ import annotations

import random

from weft.consolidation.probes import Scramble, scrambled

TUNED = Scramble(texts=100, words=3, shortest=4, least=2, most=0.1)
TEXTS = [
    f"common word{chr(97 + number % 20)} once{'abcdefghij'[number % 10] * (1 + number // 10)} ox"
    for number in range(100)
]


def test_probes_hold_words_that_some_texts_hold_and_not_many() -> None:
    """RET-15: and none of them twice."""
    found = scrambled(TEXTS, TUNED, random.Random(1), count=50)
    assert len(found) == 50
    for probe in found:
        words = probe.split()
        assert len(words) == len(set(words)) == TUNED.words
        for word in words:
            assert TUNED.least <= sum(word in text.split() for text in TEXTS) <= TUNED.most * len(TEXTS)
            assert len(word) >= TUNED.shortest


def test_the_same_seed_gives_the_same_probes() -> None:
    """ARC-9: whatever order words were met in."""
    one, other = (scrambled(order, TUNED, random.Random(7), count=50) for order in (TEXTS, TEXTS[::-1]))
    assert one == other


def test_a_store_of_too_few_words_gives_none() -> None:
    """RET-15: rather than the same words again and again."""
    assert scrambled(["one text", "two texts"], TUNED, random.Random(1), count=50) == []
    assert scrambled([], TUNED, random.Random(1), count=50) == []
