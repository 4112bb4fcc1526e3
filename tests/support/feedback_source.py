"""A log in memory that behaves as Kafka does, and a source over it that dies on request."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.domain.errors import BrokerUnavailableError, WrongLogError
from weft.runtime.kafka.log import Batches, LogFacts, OpenTransaction, Record

_identities = itertools.count(1)


class Killed(BaseException):  # not an Exception: nothing on the way may handle a kill
    """The process ends here."""


@dataclass
class FakeLog:
    """A topic. `log_start` is what retention has left; a log made again under its name has another `topic_id`.

    Offsets in `control` of a partition hold control records, which nobody gets; what lies from `stable_end` of a
    partition on lies behind an open transaction.
    """

    partitions: list[list[Record]]
    topic: str = "weft.feedback"
    topic_id: str = field(default_factory=lambda: f"topic-{next(_identities)}")
    log_start: int = 0
    available: bool = True
    control: dict[int, set[int]] = field(default_factory=dict)
    stable_end: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Sequence[Record], partitions: int = 1) -> FakeLog:
        return cls([[record for record in records if record.partition == index] for index in range(partitions)])

    def highwater(self, partition: int) -> int:
        """Offset that the next produced record will get; a partition whose records all expired has one, too."""
        records = self.partitions[partition]
        offsets = [*(record.offset for record in records[-1:]), *self.control.get(partition, ())]
        return max(offsets) + 1 if offsets else self.log_start

    def readable(self, partition: int) -> int:
        """Offset up to which readers may read."""
        return min(self.highwater(partition), self.stable_end.get(partition, self.highwater(partition)))


class FakeSource:
    """Reads a `FakeLog`.

    Args:
        kill_at: The process dies when this offset is about to be delivered.
    """

    def __init__(self, log: FakeLog, *, kill_at: int | None = None) -> None:
        self._log = log
        self._kill_at = kill_at
        self._positions: dict[int, int] = {}
        self._owned: list[int] = []
        self._highwater: dict[int, int] = {}
        self._reached: dict[int, int] = {}
        self.noted: dict[int, int] = {}

    def assign(self, partitions: Sequence[int]) -> None:
        self._owned = list(partitions)

    def seek(self, partition: int, offset: int) -> None:
        self._positions[partition] = offset
        self._reached.pop(partition, None)

    def poll(self, max_records: int, timeout_s: float) -> Batches:
        self._require_broker()
        batches: dict[int, list[Record]] = {}
        left = max_records
        for partition in self._owned:
            position = self._positions[partition]
            self._highwater[partition] = self._log.highwater(partition)
            if position < self._log.log_start:
                raise WrongLogError(f"offset {position} is out of range")
            end = self._log.readable(partition)
            waiting = [record for record in self._log.partitions[partition] if position <= record.offset < end][:left]
            if self._kill_at is not None:
                waiting = [record for record in waiting if record.offset < self._kill_at]
                if not waiting:
                    raise Killed
            if waiting:
                batches[partition] = waiting
                self._positions[partition] = waiting[-1].offset + 1
                left -= len(waiting)
            self._meet_end(partition, end)
        return batches

    def reached(self, partition: int) -> int | None:
        return self._reached.get(partition)

    def skipped(self, partition: int, first: int, behind: int) -> int:
        self._require_broker()
        return len(self._log.control.get(partition, set()) & set(range(first, behind)))

    def open_transaction(self, partition: int) -> OpenTransaction | None:
        self._require_broker()
        stable = self._log.stable_end.get(partition)
        return None if stable is None else OpenTransaction("'orders'", stable, 0)

    def note_offsets(self, offsets: Mapping[int, int]) -> None:
        self.noted |= offsets

    def _meet_end(self, partition: int, end: int) -> None:
        """Read on over control records, as a client does; where nothing else is left, that is the end."""
        position = self._positions[partition]
        while position in self._log.control.get(partition, ()):
            position += 1
        if position == end:
            self._positions[partition] = self._reached[partition] = position

    def facts(self) -> LogFacts:
        self._require_broker()
        return LogFacts(self._log.topic, self._log.topic_id, len(self._log.partitions))

    def log_start(self, partition: int) -> int:
        self._require_broker()
        return self._log.log_start

    def highwater(self, partition: int) -> int | None:
        return self._highwater.get(partition)

    def close(self) -> None:
        self._owned = []

    def _require_broker(self) -> None:
        if not self._log.available:
            raise BrokerUnavailableError("nobody answers")
