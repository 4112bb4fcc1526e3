"""The port through which updaters read the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pipelines.runtime.log import Batches, LogFacts, OpenTransaction


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
