"""FBK-5: which offsets count as holes of a log, and which are only slow to come."""

from __future__ import annotations

from weft.feedback.log import Positions
from weft.runtime.kafka.log import Record


def delivered(*offsets: int) -> list[Record]:
    return [Record(0, offset, 0, None, b"") for offset in offsets]


def nothing_explained(partition: int, first: int, behind: int) -> int:
    return 0


def taken(positions: Positions, *offsets: int) -> list[int]:
    return [record.offset for record in positions.continuation(0, delivered(*offsets), nothing_explained).records]


def test_a_hole_that_stays_the_same_is_believed_when_it_was_asked_for_often_enough() -> None:
    """FBK-5: where the log goes on behind it, in the same place each time."""
    positions = Positions({0: 1})
    assert [taken(positions, 18, 19) for _ in range(3)] == [[], [], [18, 19]]


def test_a_record_that_was_there_before_is_no_part_of_a_hole() -> None:
    """FBK-5: a fetch that lacks the record behind a hole must not widen it; world 3853 of the simulation."""
    positions = Positions({0: 1})
    assert [taken(positions, *offsets) for offsets in ((18, 19), (18, 19), (19,))] == [[], [], []]
    assert [taken(positions, 18, 19) for _ in range(3)] == [[], [], [18, 19]]


def test_what_the_log_explains_is_skipped_at_once() -> None:
    """FBK-14: control records cost no second look, and are no hole."""
    positions = Positions({0: 1})
    continued = positions.continuation(0, delivered(2, 5, 6), lambda partition, first, behind: behind - first)
    assert [record.offset for record in continued.records] == [2, 5, 6]
    assert (continued.read_again, continued.skipped) == (None, 3)


def test_a_gap_that_is_explained_in_part_is_asked_for_again() -> None:
    """FBK-14: a marker beside lost records explains itself alone."""
    positions = Positions({0: 1})
    one_of_them = lambda partition, first, behind: 1  # noqa: E731
    for _ in range(2):
        assert positions.continuation(0, delivered(4, 5), one_of_them).read_again == 1
    continued = positions.continuation(0, delivered(4, 5), one_of_them)
    assert (len(continued.records), continued.skipped) == (2, 1)
