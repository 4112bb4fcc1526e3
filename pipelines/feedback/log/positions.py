"""Where each partition is read on from, whatever a source delivers: repeats are dropped, gaps are explained.

A source may deliver a record again after a reconnection, or lose what it had fetched when a call fails; a broker may
answer with records behind others that it has not stored yet. None of that may reach the state: a record is applied
where it continues the log. Offsets that the log explains, such as a transaction's marker, are skipped at once; any
other gap is believed to be a hole only after it was asked for again (FBK-14).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pipelines.runtime.kafka.log import Record

_log = logging.getLogger(__name__)


class Continuation(NamedTuple):
    """What of a delivery continues the log.

    Attributes:
        records: In the order of their offsets, none consumed before.
        read_again: Offset to seek to, because the log seems to lack what lies there; None where it does not.
        skipped: Offsets before and between the records that the log explains.
    """

    records: Sequence[Record]
    read_again: int | None
    skipped: int = 0


Skipped = Callable[[int, int, int], int]
"""How many offsets of a partition, from one to before another, the log explains; see `FeedbackSource.skipped`."""


class Positions:
    """Next offsets by partition, and the holes under suspicion; kept in memory, since the state has the offsets."""

    def __init__(self, offsets: Mapping[int, int], *, hole_refetches: int) -> None:
        self._next = dict(offsets)
        self._refetches = hole_refetches
        self._suspected: dict[int, tuple[tuple[int, int], int]] = {}

    def __getitem__(self, partition: int) -> int:
        return self._next[partition]

    def continuation(self, partition: int, delivered: Sequence[Record], skipped: Skipped) -> Continuation:
        """What of a delivery may be applied now.

        Examples:
            >>> from pipelines.runtime.kafka.log import Record
            >>> delivered = [Record(0, offset, 0, None, b"") for offset in (4, 5, 8)]
            >>> positions = Positions({0: 5}, hole_refetches=1)
            >>> continued = positions.continuation(0, delivered, lambda partition, first, behind: 0)
            >>> [record.offset for record in continued.records], continued.read_again
            ([5], 6)
        """
        expected = self._next[partition]
        if delivered[0].offset == expected and delivered[-1].offset - expected == len(delivered) - 1:
            return Continuation(delivered, None)
        records: list[Record] = []
        explained = 0
        for record in delivered:
            if record.offset < expected:
                continue
            if record.offset > expected:
                here = skipped(partition, expected, record.offset)
                if here < record.offset - expected and not self._is_hole(partition, expected, record.offset):
                    return Continuation(records, expected, explained)
                explained += here
            records.append(record)
            expected = record.offset + 1
        return Continuation(records, None, explained)

    def passed(self, partition: int, offset: int) -> None:
        """Everything before `offset` is durable."""
        self._next[partition] = offset

    def _is_hole(self, partition: int, first: int, behind: int) -> bool:
        """Whether a gap was asked for often enough; those records are no more."""
        # The same gap each time: one that grew holds a record that was there when it was asked for before.
        gap = (first, behind)
        suspected, asked = self._suspected.get(partition, (gap, 0))
        asked = asked if suspected == gap else 0
        if asked < self._refetches:
            self._suspected[partition] = (gap, asked + 1)
            return False
        self._suspected.pop(partition, None)
        _log.warning(
            "partition %d: offsets %d to %d are not in the log, asked for %d times: the broker lost them, and they "
            "count as holes",
            *(partition, first, behind - 1, asked + 1),
        )
        return True
