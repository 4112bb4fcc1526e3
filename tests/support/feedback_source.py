"""A log in memory that behaves as Kafka does, and a source over it that dies on request."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipelines.domain.errors import BrokerUnavailableError, WrongLogError
from pipelines.runtime.log import Batches, LogFacts, Record

_identities = itertools.count(1)


class Killed(BaseException):  # not an Exception: nothing on the way may handle a kill
    """The process ends here."""


@dataclass
class FakeLog:
    """A topic. `log_start` is what retention has left; a log made again under its name has another `topic_id`."""

    partitions: list[list[Record]]
    topic: str = "weft.feedback"
    topic_id: str = field(default_factory=lambda: f"topic-{next(_identities)}")
    log_start: int = 0
    available: bool = True

    @classmethod
    def of(cls, records: Sequence[Record], partitions: int = 1) -> FakeLog:
        return cls([[record for record in records if record.partition == index] for index in range(partitions)])

    def highwater(self, partition: int) -> int:
        """Offset that the next produced record will get; a partition whose records all expired has one, too."""
        records = self.partitions[partition]
        return records[-1].offset + 1 if records else self.log_start


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

    def assign(self, partitions: Sequence[int]) -> None:
        self._owned = list(partitions)

    def seek(self, partition: int, offset: int) -> None:
        self._positions[partition] = offset

    def poll(self, max_records: int, timeout_s: float) -> Batches:
        self._require_broker()
        batches: dict[int, list[Record]] = {}
        left = max_records
        for partition in self._owned:
            position = self._positions[partition]
            self._highwater[partition] = self._log.highwater(partition)
            if position < self._log.log_start:
                raise WrongLogError(f"offset {position} is out of range")
            waiting = [record for record in self._log.partitions[partition] if record.offset >= position][:left]
            if self._kill_at is not None:
                waiting = [record for record in waiting if record.offset < self._kill_at]
                if not waiting:
                    raise Killed
            if waiting:
                batches[partition] = waiting
                self._positions[partition] = waiting[-1].offset + 1
                left -= len(waiting)
        return batches

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
