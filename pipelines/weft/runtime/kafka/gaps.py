"""What lies at offsets that a log never delivers: control records, aborted transactions, what compaction took (FBK-14).

librdkafka tells of no batch and of no transaction: kafka-python is asked, once something is missing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from kafka import KafkaAdminClient, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.consumer import FetchRequest
from kafka.record import MemoryRecords

from weft.runtime.kafka.client import tls_context
from weft.runtime.kafka.errors import Access
from weft.runtime.kafka.log import FETCH_BYTES, OpenTransaction

_ISOLATION = {"read_uncommitted": 0, "read_committed": 1}
_NO_SESSION = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": [], "rack_id": ""}


class OffsetRange(NamedTuple):
    """A batch of a log."""

    first: int  # offset of its first record
    behind: int  # offset behind its last record, as it was written
    delivered: frozenset[int]  # offsets of its records that readers get; empty for control records and aborted ones


class LogGaps:
    """Explains gaps between the records of a topic, by reading the batches around them once more."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._topic = access.topic
        self._isolation = _ISOLATION[access.settings.isolation]  # who reads uncommitted records gets aborted ones
        # Gaps come close to each other: what one fetch says of them is kept for the next ones.
        self._read: dict[int, Sequence[OffsetRange]] = {}

    def close(self) -> None:
        """Give the connection back; a broker that is gone is no reason to fail."""
        if "_admin" in vars(self):
            with contextlib.suppress(kafka_errors.KafkaError, OSError):
                self._admin.close()

    @cached_property
    def _admin(self) -> KafkaAdminClient:
        settings = self._access.settings
        password = settings.sasl_password
        return KafkaAdminClient(
            bootstrap_servers=settings.bootstrap.split(","),
            security_protocol=settings.security_protocol,
            sasl_mechanism=settings.sasl_mechanism,
            sasl_plain_username=settings.sasl_username,
            sasl_plain_password=None if password is None else password.get_secret_value(),
            ssl_context=tls_context(settings),
            request_timeout_ms=settings.request_timeout_ms,
            bootstrap_timeout_ms=settings.connect_timeout_ms,
        )

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (kafka_errors.KafkaError, OSError) as error:
            raise self._access.unavailable(str(error) or repr(error)) from error

    def skipped(self, partition: int, first: int, behind: int) -> int:
        """How many of the offsets [first, behind) will never hold a record; others are late, or lost."""
        explained, between, reached = 0, 0, first
        with self._errors():
            for stretch in self._stretches(partition, first, behind):
                between += max(0, stretch.first - reached)
                inside = range(max(stretch.first, first), min(stretch.behind, behind))
                explained += sum(offset not in stretch.delivered for offset in inside)
                reached = stretch.behind
            between += max(0, behind - reached)
            # Compaction takes whole batches, too; nothing else does but a broker that lost them.
            return explained + between if between and self._is_compacted() else explained

    def open_transaction(self, partition: int) -> OpenTransaction | None:
        """The oldest open transaction of a partition; None where there is none, or the broker does not tell."""
        place = TopicPartition(self._topic, partition)
        try:
            described = self._admin.describe_producers([place])[place].active_producers
        except (kafka_errors.KafkaError, OSError):  # an older broker, or one that keeps this to itself
            return None
        producers = [one for one in described if one.current_transaction_start_offset >= 0]
        if not producers:
            return None
        oldest = min(producers, key=lambda one: one.current_transaction_start_offset)
        name, since_ms = f"producer {oldest.producer_id}", oldest.last_timestamp
        with contextlib.suppress(kafka_errors.KafkaError):  # who may not know gets the producer's number
            listed = self._admin.list_transactions(producer_id_filters=[oldest.producer_id])
            names = [one.transactional_id for of_broker in listed.values() for one in of_broker]
            for each, begun in self._admin.describe_transactions(names).items():
                name, since_ms = f"transactional id {each!r}", int(begun.transaction_start_time_ms)
        return OpenTransaction(name, oldest.current_transaction_start_offset, since_ms)

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
            max_wait_ms=500,  # a record behind the gap is there: a busy broker alone needs as long
            min_bytes=1,
            max_bytes=FETCH_BYTES,
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
                            partition_max_bytes=FETCH_BYTES,
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
