"""RET-6: changes of topic within a session, and what follows from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.retrieval_fakes import (
    MemoryGeneration,
    a_query,
    a_searcher,
    having_said,
    settings,
)
from tests.support.words_spoken import a_word
from weft.domain.reasons import CONTENT
from weft.domain.understanding import SessionMemory, Shift
from weft.retrieval.query.understanding import (
    DEVIATIONS,
    LEAST_RECENT,
    RECENT,
    remembered,
    shift_of,
    usage_share,
)

TUNED = settings().understanding
FRUIT = MemoryGeneration(
    {"a": ["red apple pie"], "b": ["green apple tart"], "c": ["yellow banana bread"], "f": ["a tart is baked"]}
)


def unit(*numbers: float) -> np.ndarray:
    vector = np.array(numbers, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def test_a_topic_has_changed_where_a_query_lies_far_from_the_recent_ones() -> None:
    """RET-6: 1 − cosine to the centroid of the last five; none before there are two."""
    memory = SessionMemory()
    for vector in (unit(1, 0), unit(1, 0.1), unit(1, -0.1)):
        memory = remembered(vector, memory, TUNED.shift)
    near, far = shift_of(unit(1, 0.05), memory, TUNED.shift), shift_of(unit(0, 1), memory, TUNED.shift)
    assert near is not None
    assert far is not None
    assert (near.happened, far.happened) == (False, True)
    assert far.distance == pytest.approx(1.0)
    assert shift_of(unit(0, 1), SessionMemory(), TUNED.shift) is None


def test_who_jumps_about_anyway_changes_no_topic_by_jumping() -> None:
    """RET-6: the threshold is learned from the session's own distances, within bounds."""
    memory = SessionMemory(shift=(0.74, 0.74, 0.62), queries=((1.0, 0.0),) * 3)
    found = shift_of(unit(0.2, 1), memory, TUNED.shift)
    assert found is not None
    assert found.threshold == pytest.approx(0.7 + DEVIATIONS * np.std([0.74, 0.74, 0.62]))
    assert not found.happened
    restless = shift_of(unit(0, 1), replace(memory, shift=(0.2, 1.1, 0.2)), TUNED.shift)
    assert restless is not None
    assert (restless.threshold, restless.happened) == (TUNED.shift.most_distance, True)


def test_every_later_change_of_topic_is_told_too() -> None:
    """RET-6: a leap is no distance that the threshold is learned from; topics at right angles, three queries each."""
    memory, happened = SessionMemory(), []
    for topic in np.eye(8, dtype=np.float32):
        for _ in range(3):
            shift = shift_of(topic, memory, TUNED.shift)
            happened.append(shift is not None and shift.happened)
            memory = remembered(topic, memory, TUNED.shift)
    assert happened == [False] * 3 + [True, False, False] * 7


def test_dampening_lasts_until_the_new_topic_has_a_history_of_its_own() -> None:
    """RET-6: of `least` queries; then the session is as it was, whatever lay before."""
    memory, shares = SessionMemory(), []
    for vector in [unit(1, 0)] * 3 + [unit(0, 1)] * (LEAST_RECENT + 2):
        shares.append(usage_share(shift_of(vector, memory, TUNED.shift), TUNED.shift))
        memory = remembered(vector, memory, TUNED.shift)
    assert shares == [1.0] * 3 + [TUNED.shift.usage_share] * LEAST_RECENT + [1.0] * 2
    assert memory.queries == (tuple(unit(0, 1).tolist()),) * (LEAST_RECENT + 2)


def test_a_change_of_topic_survives_in_what_a_session_remembers() -> None:
    """RET-6, LRN-15: dampening goes on in another process."""
    memory = SessionMemory()
    for vector in [unit(1, 0)] * 3 + [unit(0, 1)]:
        memory = remembered(vector, memory, TUNED.shift)
    assert memory.changed
    assert SessionMemory.from_json(memory.to_json()) == memory


def test_the_memory_keeps_the_last_queries_alone() -> None:
    """RET-6: and of another encoder's vectors none is compared."""
    memory = SessionMemory()
    for step in range(8):
        memory = remembered(unit(1, step), memory, TUNED.shift)
    assert len(memory.queries) == RECENT
    assert shift_of(unit(1, 0, 0), memory, TUNED.shift) is None


def test_after_a_change_of_topic_what_came_of_contents_counts_less_and_the_search_widens() -> None:
    """RET-6: through the whole search; the same query within its topic is as it was."""
    tuned = TUNED.shift.model_copy(update={"distance": 0.5, "usage_share": 0.25, "widening": 2.0})
    said = [a_word(each, "what else is there", "ada") for each in FRUIT.contents]
    searcher = having_said(
        a_searcher(FRUIT, depth=2, understanding={**TUNED.model_dump(), "shift": tuned.model_dump()}), *said
    )
    memory = SessionMemory()
    for text in ("apple pie", "apple tart", "apple"):
        memory = searcher.search(a_query(text, memory=memory)).memory or memory
    assert len(memory.queries) == 3
    same, other = (searcher.search(a_query(text, memory=memory)) for text in ("red apple pie", "banana bread"))
    assert [answer.understanding.shift.happened for answer in (same, other)] == [False, True]  # type: ignore[union-attr]
    second = searcher.search(a_query("banana bread", memory=other.memory))
    before, *after = (
        [part.value for result in answer.results for part in result.contributions if part.name == CONTENT][:2]
        for answer in (same, other, second)
    )
    assert after == [pytest.approx([0.25 * value for value in before])] * 2
    assert min(before) > 0.0
    assert len(other.results) > len(searcher.search(a_query("banana bread")).results)


def test_without_a_memory_nothing_shifts_and_nothing_is_remembered() -> None:
    """RET-6, ARC-8: a search remembers nothing of its own."""
    answer = a_searcher(FRUIT).search(a_query("banana"))
    assert answer.memory is None
    assert answer.understanding is not None
    assert answer.understanding.shift is None
    assert usage_share(Shift(1.0, 0.5), TUNED.shift) == TUNED.shift.usage_share
    assert usage_share(None, TUNED.shift) == 1.0
