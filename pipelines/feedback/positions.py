"""Where each partition is read on from, whatever a source delivers: repeats are dropped, holes are looked at again.

A source may deliver a record again after a reconnection, or lose what it had fetched when a call fails; a broker may
answer with records behind others that it has not stored yet. None of that may reach the state: a record is applied
where it continues the log, and a hole is believed only after it was asked for again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pipelines.runtime.log import Record

_log = logging.getLogger(__name__)


class Continuation(NamedTuple):
    """What of a delivery continues the log.

    Attributes:
        records: In the order of their offsets, none consumed before.
        read_again: Offset to seek to, because the log seems to lack what lies there; None where it does not.
    """

    records: Sequence[Record]
    read_again: int | None


class Positions:
    """Next offsets by partition, and the holes under suspicion; kept in memory, since the state has the offsets."""

    def __init__(self, offsets: Mapping[int, int], *, hole_refetches: int) -> None:
        self._next = dict(offsets)
        self._refetches = hole_refetches
        self._suspected: dict[int, tuple[tuple[int, int], int]] = {}

    def __getitem__(self, partition: int) -> int:
        return self._next[partition]

    def continuation(self, partition: int, delivered: Sequence[Record]) -> Continuation:
        """What of a delivery may be applied now.

        Examples:
            >>> from pipelines.runtime.log import Record
            >>> delivered = [Record(0, offset, 0, None, b"") for offset in (4, 5, 8)]
            >>> positions = Positions({0: 5}, hole_refetches=1)
            >>> found = positions.continuation(0, delivered)
            >>> [record.offset for record in found.records], found.read_again
            ([5], 6)
        """
        expected = self._next[partition]
        if delivered[0].offset == expected and delivered[-1].offset - expected == len(delivered) - 1:
            return Continuation(delivered, None)
        records: list[Record] = []
        for record in delivered:
            if record.offset < expected:
                continue
            if record.offset > expected and not self._believed(partition, expected, record.offset):
                return Continuation(records, expected)
            records.append(record)
            expected = record.offset + 1
        return Continuation(records, None)

    def passed(self, partition: int, offset: int) -> None:
        """Everything before `offset` is durable."""
        self._next[partition] = offset

    def _believed(self, partition: int, first: int, behind: int) -> bool:
        """Whether a hole was asked for often enough; those records are no more."""
        # The same hole each time: one that grew holds a record that was there when it was asked for before.
        hole = (first, behind)
        suspected, asked = self._suspected.get(partition, (hole, 0))
        asked = asked if suspected == hole else 0
        if asked < self._refetches:
            self._suspected[partition] = (hole, asked + 1)
            return False
        self._suspected.pop(partition, None)
        width = behind - first
        # A transaction's marker takes one offset; more than that went by compaction, an abort, or a broker's crash.
        level = logging.INFO if width == 1 else logging.WARNING
        _log.log(
            level,
            "partition %d: offsets %d to %d are not in the log, asked for %d times; %d records count as a hole",
            *(partition, first, behind - 1, asked + 1, width),
        )
        return True
