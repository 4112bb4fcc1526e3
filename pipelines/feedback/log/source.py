"""The port through which updaters read the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from pipelines.runtime.kafka.log import Batches, LogFacts, OpenTransaction, Record, Records


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
    """A source whose offsets are those of another one plus a number for each partition; see `losses`.

    Implements `FeedbackSource`.
    """

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
