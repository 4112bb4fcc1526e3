"""What lies at offsets that a log never delivers: control records, aborted transactions, what compaction took (FBK-14).

A client says nothing of them. The leader does: it stores records in batches, and the header of a batch names its first
and last offset and says whether it is a control batch. Which transactions were aborted comes with the answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kafka import KafkaAdminClient, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.protocol.consumer import FetchRequest
from kafka.record import MemoryRecords

from weft.runtime.kafka.log import OpenTransaction

_ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
_NO_SESSION = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": [], "rack_id": ""}


class OffsetRange(NamedTuple):
    """A batch of a log."""

    first: int  # offset of its first record
    behind: int  # offset behind its last record, as it was written
    delivered: frozenset[int]  # offsets of its records that readers get; empty for control records and aborted ones


class LogGaps:
    """Explains gaps between the records of a topic, by reading the batches around them once more."""

    def __init__(self, admin: KafkaAdminClient, topic: str, *, isolation: str, max_bytes: int) -> None:
        self._admin = admin
        self._topic = topic
        self._isolation = _ISOLATION[isolation]  # the readers' own: who reads uncommitted records gets aborted ones
        self._max_bytes = max_bytes
        # Gaps come close to each other: what one fetch says of them is kept for the next ones.
        self._read: dict[int, Sequence[OffsetRange]] = {}

    def skipped(self, partition: int, first: int, behind: int) -> int:
        """How many of the offsets [first, behind) will never hold a record; others are late, or lost."""
        explained, between, reached = 0, 0, first
        for stretch in self._stretches(partition, first, behind):
            between += max(0, stretch.first - reached)
            inside = range(max(stretch.first, first), min(stretch.behind, behind))
            explained += sum(offset not in stretch.delivered for offset in inside)
            reached = stretch.behind
        between += max(0, behind - reached)
        # Compaction takes whole batches, too; nothing else does but a broker that lost them.
        return explained + between if between and self._is_compacted() else explained

    def start(self, partition: int) -> int:
        """Offset of the oldest record still there: what lay before it was deleted."""
        place = TopicPartition(self._topic, partition)
        return int(self._admin.list_partition_offsets({place: OffsetSpec.EARLIEST})[place].offset)

    def _stretches(self, partition: int, first: int, behind: int) -> Iterator[OffsetRange]:
        """The batches that overlap a gap, in their order."""
        read = self._read.get(partition, ())
        if not read or read[0].first > first or read[-1].behind < behind:
            read = self._read[partition] = list(self._fetched(partition, first, behind))
        yield from (stretch for stretch in read if stretch.behind > first and stretch.first < behind)

    def _fetched(self, partition: int, first: int, behind: int) -> Iterator[OffsetRange]:
        while first < behind:
            stretches = self._fetch(partition, first)
            if not stretches:
                return
            yield from stretches
            first = stretches[-1].behind

    def _fetch(self, partition: int, offset: int) -> list[OffsetRange]:
        """The batches of one answer, from the one that holds `offset` on."""
        request = FetchRequest(
            max_wait_ms=1,
            min_bytes=1,
            max_bytes=self._max_bytes,
            isolation_level=self._isolation,
            topics=[
                FetchRequest.FetchTopic(
                    topic=self._topic,
                    partitions=[
                        FetchRequest.FetchTopic.FetchPartition(
                            partition=partition,
                            current_leader_epoch=-1,
                            fetch_offset=offset,
                            last_fetched_epoch=-1,
                            log_start_offset=-1,
                            partition_max_bytes=self._max_bytes,
                        )
                    ],
                )
            ],
            min_version=4,  # the first that tells of aborted transactions
            max_version=12,  # the last that names topics, and not their ids
            **_NO_SESSION,
        )
        answer = self._ask(request, self._leader(partition))
        if not answer.responses:
            return []
        (of_topic,) = answer.responses
        (answered,) = of_topic.partitions
        if answered.error_code:
            raise kafka_errors.for_code(answered.error_code)(f"topic {self._topic}, partition {partition}")
        return list(_stretches_of(answered))

    def _leader(self, partition: int) -> int:
        (described,) = self._admin.describe_topics([self._topic])
        by_index = {one["partition_index"]: one["leader_id"] for one in described["partitions"]}
        return int(by_index.get(partition, -1))

    def _ask(self, request: FetchRequest, node: int) -> Any:
        manager = self._admin._manager

        async def sent() -> Any:
            return await manager.send(request, node_id=node)

        return manager.run(sent)

    def _is_compacted(self) -> bool:
        """Whether the topic's records may go by compaction; False where nobody may know."""
        resource = ConfigResource(ConfigResourceType.TOPIC, self._topic, configs=["cleanup.policy"])
        with contextlib.suppress(kafka_errors.KafkaError):
            described = self._admin.describe_configs([resource], config_filter="all")
            policy = described["topic"][self._topic].get("cleanup.policy", {})
            return "compact" in str(policy.get("value"))
        return False


def open_transaction(admin: KafkaAdminClient, topic: str, partition: int) -> OpenTransaction | None:
    """The oldest open transaction of a partition; None where there is none, or the broker does not tell."""
    place = TopicPartition(topic, partition)
    try:
        producers = [
            one for one in admin.describe_producers([place])[place].active_producers
            if one.current_transaction_start_offset >= 0
        ]  # fmt: skip
    except kafka_errors.KafkaError:  # an older broker, or one that keeps this to itself
        return None
    if not producers:
        return None
    oldest = min(producers, key=lambda one: one.current_transaction_start_offset)
    name, since_ms = _described(admin, oldest.producer_id) or (f"producer {oldest.producer_id}", oldest.last_timestamp)
    return OpenTransaction(name, oldest.current_transaction_start_offset, since_ms)


def _described(admin: KafkaAdminClient, producer_id: int) -> tuple[str, int] | None:
    """A transaction's id and when it began; None without the permission to know."""
    with contextlib.suppress(kafka_errors.KafkaError):
        listed = admin.list_transactions(producer_id_filters=[producer_id])
        names = [one.transactional_id for of_broker in listed.values() for one in of_broker]
        for name, described in admin.describe_transactions(names).items():
            return f"transactional id {name!r}", int(described.transaction_start_time_ms)
    return None


def _stretches_of(answer: Any) -> Iterator[OffsetRange]:
    """The batches of one partition's answer, and what of them readers get, as Kafka's own consumer decides it."""
    waiting = sorted(answer.aborted_transactions or (), key=lambda one: -one.first_offset)
    aborted: set[int] = set()
    records = MemoryRecords(bytes(answer.records or b""))
    while (batch := records.next_batch()) is not None:
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            aborted.add(waiting.pop().producer_id)
        if batch.is_control_batch:
            aborted.discard(batch.producer_id)
            delivered = frozenset[int]()
        elif batch.is_transactional and batch.producer_id in aborted:
            delivered = frozenset()
        else:
            delivered = frozenset(record.offset for record in batch)
        yield OffsetRange(batch.base_offset, batch.last_offset + 1, delivered)
