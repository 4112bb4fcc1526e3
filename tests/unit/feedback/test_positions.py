"""FBK-5: which offsets count as holes of a log, and which are only slow to come."""

from __future__ import annotations

from pipelines.feedback.positions import Positions
from pipelines.runtime.log import Record


def delivered(*offsets: int) -> list[Record]:
    return [Record(0, offset, 0, None, b"") for offset in offsets]


def taken(positions: Positions, *offsets: int) -> list[int]:
    return [record.offset for record in positions.continuation(0, delivered(*offsets)).records]


def test_a_hole_that_stays_the_same_is_believed_when_it_was_asked_for_often_enough() -> None:
    """FBK-5: where the log goes on behind it, in the same place each time."""
    positions = Positions({0: 1}, hole_refetches=2)
    assert [taken(positions, 18, 19) for _ in range(3)] == [[], [], [18, 19]]


def test_a_record_that_was_there_before_is_no_part_of_a_hole() -> None:
    """FBK-5: a fetch that lacks the record behind a hole must not widen it; world 3853 of the simulation."""
    positions = Positions({0: 1}, hole_refetches=2)
    assert [taken(positions, *offsets) for offsets in ((18, 19), (18, 19), (19,))] == [[], [], []]
    assert [taken(positions, 18, 19) for _ in range(3)] == [[], [], [18, 19]]
