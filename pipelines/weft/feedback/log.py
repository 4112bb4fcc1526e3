"""Reading the log: the port to it, and where each partition is read on from, whatever a source delivers.

A source may deliver a record again after a reconnection, or lose what it had fetched when a call fails; a broker may
answer with records behind others that it has not stored yet. None of that may reach the state: a record is applied
where it continues the log. Offsets that the log explains, such as a transaction's marker, are skipped at once; any
other gap is believed to be a hole only after it was asked for again (FBK-14).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from weft.runtime.kafka.log import Batches, LogFacts, OpenTransaction, Record, Records


class FeedbackSource(Protocol):
    """A partitioned log, read from offsets that the reader keeps.

    One updater owns a source and calls it from one thread. It first seeks every partition it owns, then polls for
    ever. A source keeps nothing that outlives a crash: the offsets live in the updater's own transaction (ARC-3).
    Every method raises `BrokerUnavailableError` when nobody answers; asking again later is safe.
    """

    def assign(self, partitions: Sequence[int]) -> None:
        """Own these partitions from now on; each must be sought before it is polled."""

    def seek(self, partition: int, offset: int) -> None:
        """Read on from `offset`, which is the next record's."""

    def poll(self, max_records: int, timeout_s: float) -> Batches:
        """The next records of the owned partitions, at most `max_records` together; empty after `timeout_s` without.

        Raises:
            WrongLogError: The log does not hold the offset that was sought.
        """

    def reached(self, partition: int) -> int | None:
        """Offset behind all that polls have read, as of the last time that they met the end of what may be read.

        What nobody will ever deliver, such as control records, lies before it. None since the last `seek`.
        """

    def skipped(self, partition: int, first: int, behind: int) -> int:
        """How many of the offsets from `first` to before `behind` the log explains (FBK-14).

        Control records, aborted ones and those that compaction took are explained, and will never come. Others are
        still to come, or lost.
        """

    def open_transaction(self, partition: int) -> OpenTransaction | None:
        """The transaction that keeps what lies behind it from being read; None where nobody tells of one."""

    def note_offsets(self, offsets: Mapping[int, int]) -> None:
        """Show others how far partitions were read; nothing depends on it, so that nothing fails over it."""

    def facts(self) -> LogFacts:
        """Which log this is, asked of the broker now: called after every poll, before its records are applied."""

    def log_start(self, partition: int) -> int:
        """Offset of the oldest record that the log still holds, asked of the broker now."""

    def highwater(self, partition: int) -> int | None:
        """Offset that the next produced record will get, as of the last fetch; None before the first."""

    def close(self) -> None:
        """Give connections back."""


class RebasedSource:
    """A source whose offsets are those of another one plus a number for each partition; see `losses`."""

    def __init__(self, source: FeedbackSource, bases: Mapping[int, int]) -> None:
        self._source = source
        self._bases = bases

    def assign(self, partitions: Sequence[int]) -> None:
        """Own these partitions."""
        self._source.assign(partitions)

    def seek(self, partition: int, offset: int) -> None:
        """Read on from `offset`."""
        self._source.seek(partition, offset - self._bases[partition])

    def poll(self, max_records: int, timeout_s: float) -> Batches:
        """The next records by partition."""
        batches = self._source.poll(max_records, timeout_s)
        return {partition: _moved(records, self._bases[partition]) for partition, records in batches.items()}

    def reached(self, partition: int) -> int | None:
        """Offset behind all that was read, where that was the end."""
        reached = self._source.reached(partition)
        return None if reached is None else self._bases[partition] + reached

    def skipped(self, partition: int, first: int, behind: int) -> int:
        """How many offsets the log explains."""
        base = self._bases[partition]
        return self._source.skipped(partition, first - base, behind - base)

    def open_transaction(self, partition: int) -> OpenTransaction | None:
        """The transaction that holds reading up; its offset is the topic's."""
        return self._source.open_transaction(partition)

    def note_offsets(self, offsets: Mapping[int, int]) -> None:
        """Show others how far the topic was read, as it counts."""
        self._source.note_offsets({one: offset - self._bases[one] for one, offset in offsets.items()})

    def facts(self) -> LogFacts:
        """Which log this is."""
        return self._source.facts()

    def log_start(self, partition: int) -> int:
        """Offset of the oldest record."""
        return self._bases[partition] + self._source.log_start(partition)

    def highwater(self, partition: int) -> int | None:
        """Offset that the next produced record will get."""
        highwater = self._source.highwater(partition)
        return None if highwater is None else self._bases[partition] + highwater

    def close(self) -> None:
        """Give connections back."""
        self._source.close()


def _moved(records: Sequence[Record], base: int) -> Sequence[Record]:
    if not base:
        return records
    columns = Records.of(records)
    return replace(columns, offsets=[base + offset for offset in columns.offsets])


_log = logging.getLogger(__name__)

_REFETCHES = 2  # of offsets that the log skips, before they count as a hole


class Continuation(NamedTuple):
    """What of a delivery continues the log."""

    records: Sequence[Record]  # in the order of their offsets, none consumed before
    read_again: int | None  # offset to seek to, because the log seems to lack what lies there; None where it does not
    skipped: int = 0  # offsets before and between the records that the log explains


Skipped = Callable[[int, int, int], int]
"""How many offsets of a partition, from one to before another, the log explains; see `FeedbackSource.skipped`."""


class Positions:
    """Next offsets by partition, and the holes under suspicion; kept in memory, since the state has the offsets."""

    def __init__(self, offsets: Mapping[int, int]) -> None:
        self._next = dict(offsets)
        self._suspected: dict[int, tuple[tuple[int, int], int]] = {}

    def __getitem__(self, partition: int) -> int:
        return self._next[partition]

    def continuation(self, partition: int, delivered: Sequence[Record], skipped: Skipped) -> Continuation:
        """What of a delivery may be applied now."""
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
        if asked < _REFETCHES:
            self._suspected[partition] = (gap, asked + 1)
            return False
        self._suspected.pop(partition, None)
        _log.warning(
            "partition %d: offsets %d to %d are not in the log, asked for %d times: the broker lost them, and they "
            "count as holes",
            *(partition, first, behind - 1, asked + 1),
        )
        return True
