"""A partitioned log as values: what Kafka, or a fake of it in a test, tells about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

FETCH_BYTES = 4_194_304
"""Per partition and fetch: about 20,000 small events, or 16 of the largest."""


class Record(NamedTuple):
    """One record as it lies in the log; nothing in it has been decoded or checked."""

    partition: int
    offset: int
    timestamp: int  # milliseconds since the epoch, set by the broker or by whoever produced it; any integer occurs
    key: bytes | None
    value: bytes | None  # none is a tombstone
    by_broker: bool = False  # whether the broker set the timestamp, which no producer can choose then


@dataclass(frozen=True, slots=True, eq=False)
class Records(Sequence[Record]):
    """Records of one partition, column by column: a tuple for each would cost as much as reading it."""

    partitions: Sequence[int]
    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    by_broker: Sequence[bool]

    @classmethod
    def of(cls, records: Sequence[Record]) -> Records:
        """The columns of some records."""
        if isinstance(records, Records):
            return records
        return cls(*(list(column) for column in zip(*records, strict=True))) if records else cls(*[()] * 6)

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> Records: ...

    def __getitem__(self, place: int | slice) -> Record | Records:
        columns = (self.partitions, self.offsets, self.timestamps, self.keys, self.values, self.by_broker)
        if isinstance(place, slice):
            return Records(*(column[place] for column in columns))  # type: ignore[arg-type]
        return Record(*(column[place] for column in columns))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class LogFacts:
    """Which log answers under the topic's name, asked of the broker just now."""

    topic: str
    topic_id: str  # changes when a topic is deleted and made again
    partitions: int  # how many the topic has


class OpenTransaction(NamedTuple):
    """A transaction that keeps the records behind it from being read."""

    name: str  # whose it is: a transactional id, or a producer's number
    first_offset: int  # of its first record in the partition
    since_ms: int  # when it began, in milliseconds since the epoch


Batches = Mapping[int, Sequence[Record]]
"""Records by partition, each partition's in the order of their offsets."""
