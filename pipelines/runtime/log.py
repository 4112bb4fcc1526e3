"""A partitioned log as values: what Kafka, or a fake of it in a test, tells about itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Record(NamedTuple):
    """One record as it lies in the log; nothing in it has been decoded or checked.

    Attributes:
        timestamp: Milliseconds since the epoch, set by the broker or by whoever produced it; any integer occurs.
        value: None is a tombstone.
        by_broker: Whether the broker set the timestamp, which no producer can choose then.
    """

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    by_broker: bool = False


@dataclass(frozen=True, slots=True)
class LogFacts:
    """Which log answers under the topic's name, asked of the broker just now.

    Attributes:
        topic_id: Changes when a topic is deleted and made again.
        partitions: How many the topic has.
    """

    topic: str
    topic_id: str
    partitions: int


Batches = Mapping[int, Sequence[Record]]
"""Records by partition, each partition's in the order of their offsets."""
