"""EVA-1, RET-18: why the right result stands where it does, from what the scores are made of."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from lab.errors import MISSED, RIGHT, changed_queries, deficit, diagnose, diagnoses, reasons
from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
from weft.domain.ids import QueryId
from weft.domain.ranking import Answer

TEXTS = {"a": ["red apple"], "b": ["red pear"], "c": ["green apple pie"]}
SEARCHER = a_searcher(MemoryGeneration(TEXTS, {"b": {"trust_level": 100}}))


def answer(name: str) -> Answer:
    found = SEARCHER.search(a_query("red apple"))
    return replace(found, query=replace(found.query, query_id=QueryId(name)))


def same(uri: str) -> str:
    return uri


def test_a_deficit_is_the_difference_of_the_scores_part_by_part() -> None:
    """RET-18: the parts sum to it, the largest first."""
    first, *_, last = answer("q").results
    behind = deficit(first, last)
    assert math.fsum(behind.values()) == pytest.approx(first.score - last.score)
    assert list(behind.values()) == sorted(behind.values(), reverse=True)


def test_an_answer_is_right_outranked_or_missed() -> None:
    """EVA-1: and where it is outranked, the part that the first result is furthest ahead by is named."""
    first, second, *_ = answer("q").results
    right = diagnose(answer("q"), {first.uris[0]: 1}, same)
    assert (right.reason, right.rank, right.deficit) == (RIGHT, 1, {})
    behind = diagnose(answer("q"), {second.uris[0]: 2, first.uris[0]: 0}, same)
    assert (behind.rank, behind.reason) == (2, next(iter(deficit(first, second))))
    assert behind.channels == tuple(channel.value for channel in second.channels)
    assert diagnose(answer("q"), {"elsewhere": 1}, same).reason == MISSED


def test_changes_come_with_their_reasons() -> None:
    """EVA-1: the largest gain first, unchanged queries not at all."""
    first, second, *_ = answer("q").results
    judged = {name: {second.uris[0]: 1} for name in ("gains", "loses", "stays")}
    behind = diagnoses([answer(name) for name in judged], judged, same)
    right = diagnoses([answer(name) for name in judged], {name: {first.uris[0]: 1} for name in judged}, same)
    control = {"gains": behind["gains"], "loses": right["loses"], "stays": right["stays"]}
    treatment = {"gains": right["gains"], "loses": behind["loses"], "stays": right["stays"]}
    found = changed_queries({"gains": 0.4, "loses": -0.4, "stays": 0.0}, control, treatment)
    assert [one.control.query_id for one in found] == ["gains", "loses"]
    assert found[0].why.startswith("2 → 1, behind by")
    assert found[1].why.startswith("1 → 2, behind by")
    assert reasons(treatment.values()) == {RIGHT: 2, behind["loses"].reason: 1}
