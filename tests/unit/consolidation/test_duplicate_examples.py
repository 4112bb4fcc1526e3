"""CON-2, CON-10: which near-duplicates a person is shown, of all that a night takes for one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.duplicate_bench import PlainMemory
from weft.consolidation.steps.duplicates import find_duplicates, word_lists
from weft.domain.ids import ContentHash, content_hash
from weft.learning.evidence import MICRO, Evidence
from weft.learning.uses import UsageKey
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
TOPICS = 12
ORIGINALS = [f"The {'very ' * at}old scheduler retries a failed task before it tells its owner" for at in range(TOPICS)]
COPIES = [f"{text} of it" for text in ORIGINALS]


def leaning(texts: Iterable[str]) -> NDArray[np.float32]:
    """Unit vectors: topics at right angles, and the further a copy from its original the later its topic comes."""
    rows = []
    for text in texts:
        row = np.zeros(2 * TOPICS, np.float32)
        topic = (COPIES if text in COPIES else ORIGINALS).index(text)
        angle = 0.02 * (topic + 1) if text in COPIES else 0.0
        row[2 * topic : 2 * topic + 2] = np.cos(angle), np.sin(angle)
        rows.append(row)
    return np.stack(rows)


def test_those_that_served_come_first_and_then_those_least_alike() -> None:
    """CON-10: whoever reviews sees what may be wrong, not ten pairs that differ in a blank."""
    served = content_hash(COPIES[3])
    evidence = Evidence({}, {UsageKey(100, served, "positive", "ada", "why"): MICRO})
    memory = PlainMemory([*ORIGINALS, *COPIES])
    found = find_duplicates(memory, leaning, evidence, word_lists(SETTINGS), SETTINGS.consolidation.duplicates)
    assert len(found.aliases) == TOPICS
    first, *others = found.examples
    assert len(others) == 9
    assert first.representative == served
    assert all(before.cosine < after.cosine for before, after in pairwise(others))
    assert others[0].cosine == pytest.approx(np.cos(0.02 * TOPICS), abs=1e-5)
    assert {first.text, first.representative_text} == {ORIGINALS[3], COPIES[3]}
    assert all(ContentHash(content_hash(one.text)) == one.alias for one in found.examples)
