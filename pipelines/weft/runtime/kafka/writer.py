"""Writing to Kafka, and asking about topics.

What a later try may cure is `BrokerUnavailableError`, an offset that the log does not hold is `WrongLogError`, a record
too large for any request is `InvalidEventError`, a setting or permission in the way is `ConfigurationError`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.partitioner.default import murmur2
from kafka.protocol.consumer import FetchRequest
from kafka.record import MemoryRecords

from weft.domain.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    InvalidEventError,
    MissingTopicError,
    WeftError,
)
from weft.runtime.kafka.client import Connections
from weft.runtime.kafka.errors import Access
from weft.runtime.kafka.log import FETCH_BYTES, LogFacts, OpenTransaction
from weft.runtime.settings import KafkaSettings

# What lies at offsets that a log never delivers: control records, aborted transactions, what compaction took (FBK-14).

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


_log = logging.getLogger(__name__)

_TOO_LARGE = (kafka_errors.MessageSizeTooLargeError, kafka_errors.RecordListTooLargeError)
_BROKERS_DEFAULT = -1  # KIP-464: of brokers from version 2.4 on


def partition_of(key: str, partitions: int) -> int:
    """Where a keyed record lies, whichever library sends it (docs/feedback.md, Clients).

    Murmur2 of the key's UTF-8 bytes, without its sign, modulo the number of partitions.

    Examples:
        >>> [partition_of(f"s-{number}", 4) for number in range(6)]
        [1, 3, 3, 2, 3, 3]
    """
    return int(murmur2(key.encode()) & 0x7FFFFFFF) % partitions


def create_topic(
    settings: KafkaSettings, topic: str, *, partitions: int, replication: int | None, operation: str = "Describe"
) -> None:
    """Make the topic where it is missing; an existing one is left as it is.

    Record times are asked to be the broker's own, so that no producer can choose them.

    Raises:
        ConfigurationError: The brokers do not let this client in, do not permit the operation, or not to make topics.
        BrokerUnavailableError: No broker answers.
    """
    wanted = {
        topic: {
            "num_partitions": partitions,
            "replication_factor": replication or _BROKERS_DEFAULT,
            "configs": {"message.timestamp.type": "LogAppendTime"},
        }
    }
    access = Access(settings, operation, topic)
    with contextlib.closing(KafkaTopics(settings, access)) as topics:
        if not topics.has(topic):
            topics.create(wanted, Access(settings, "Create", topic))
        topics.facts(topic)


class KafkaTopics:
    """What the brokers know about topics.

    Raises:
        BrokerUnavailableError: From every method, and on opening: no broker answers.
        MissingTopicError: From `facts`: there is no such topic.
        ConfigurationError: Likewise: the brokers refuse this client, or do not permit what it wants of the topic.
    """

    def __init__(self, settings: KafkaSettings, access: Access) -> None:
        self._settings, self._access = settings, access
        self._connections = Connections(access)
        with self._connections.opening():
            self._admin = KafkaAdminClient(**self._connections.options())

    def facts(self, topic: str) -> LogFacts:
        """Which topic answers under a name now."""
        with self._connections.errors():
            described = self._described(topic)
        return LogFacts(topic, str(described["topic_id"]), len(described["partitions"]))

    def has(self, topic: str) -> bool:
        """Whether there is a topic of that name."""
        try:
            with self._connections.errors():
                self._described(topic)
        except MissingTopicError:
            return False
        return True

    def create(self, wanted: dict[str, Any], access: Access) -> None:
        """Make topics, and wait until they can be used; who else made them first is welcome."""
        with Connections(access).errors():
            with contextlib.suppress(kafka_errors.TopicAlreadyExistsError):
                self._admin.create_topics(wanted)
            self._admin.wait_for_topics(list(wanted), timeout_ms=self._settings.connect_timeout_ms)

    def gaps(self, topic: str, settings: KafkaSettings) -> LogGaps:
        """What explains the gaps between a topic's records; call it within `errors`."""
        return LogGaps(self._admin, topic, isolation=settings.isolation, max_bytes=FETCH_BYTES)

    def open_transaction(self, topic: str, partition: int) -> OpenTransaction | None:
        """The oldest open transaction of a partition, as far as the broker tells."""
        with self.errors():
            return open_transaction(self._admin, topic, partition)

    def errors(self) -> contextlib.AbstractContextManager[None]:
        """Errors of kafka-python inside the block become weft's own."""
        return self._connections.errors()

    def close(self) -> None:
        """Give the connection back; a broker that is gone is no reason to fail."""
        with contextlib.suppress(kafka_errors.KafkaError, OSError):
            self._admin.close()

    def _described(self, topic: str) -> dict[str, Any]:
        described: dict[str, Any]
        (described,) = self._admin.describe_topics([topic])
        if described["error_code"]:
            raise kafka_errors.for_code(described["error_code"])(topic)
        permitted = described["authorized_operations"]  # None where the broker tells of none
        if permitted is not None and self._access.operation.upper() not in permitted:
            raise self._access.not_permitted()
        return described


class KafkaPublisher:
    """Sends keyed records to one topic, acknowledged by every replica in sync. Any thread may call it.

    Raises:
        BrokerUnavailableError: On opening: no broker answers, or the topic is missing.
        ConfigurationError: On opening: the brokers refuse this client, or let it write no records.
    """

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._access = Access(settings, "Write", topic)
        self._block_s = settings.send_block_ms / 1000
        self._timeout_s = settings.delivery_timeout_ms / 1000
        # Nobody waits for a client that is opened again any longer than for the one before it.
        self._hasty = settings.model_copy(update={"connect_timeout_ms": settings.send_block_ms})
        self._counting, self._opening = threading.Lock(), threading.Lock()
        self.waiting = self.lost = self._reported = 0
        self._reason: WeftError | None = None
        self._spent = self._closed = False
        self._open(settings)

    def send(self, key: bytes, value: bytes) -> None:
        """Hand one record over; it travels in the background.

        Raises:
            BrokerUnavailableError: No broker took it within the time a caller may be blocked.
            ConfigurationError: The brokers refuse this client.
            InvalidEventError: It is too large for any request.
        """
        if self._spent and not self._closed:
            self._open_again()
        with self._counting:
            if self._closed:
                raise BrokerUnavailableError(
                    f"{self._access}: expected an open producer, found it closed: open another"
                )
            self.waiting += 1
        try:
            with self._connections.errors():
                sent = self._producer.send(self._access.topic, value=value, key=key)
                if sent.failed():
                    raise sent.exception
        except WeftError:
            self._settle(acknowledged=True)  # whoever sent it is told
            raise
        sent.add_callback(lambda _: self._settle(acknowledged=True))
        sent.add_errback(self._give_up)

    def flush(self) -> None:
        """Wait until everything handed over is acknowledged.

        Raises:
            BrokerUnavailableError: Something was given up since the last flush, or is not acknowledged in time.
            ConfigurationError: That was so because the brokers refuse this client or its records.
        """
        deadline, late = time.monotonic() + self._timeout_s, 0
        while not self._flushed(min(self._block_s, deadline - time.monotonic())):
            if (refusal := self._connections.refusal) is not None:
                raise refusal
            if time.monotonic() >= deadline:
                late = self.waiting
                break
        with self._counting:
            lost, self._reported, reason = self.lost - self._reported, self.lost, self._reason
        if late:
            reason = self._connections.mapped(kafka_errors.KafkaTimeoutError("none in time"))
        if (lost or late) and isinstance(reason, ConfigurationError):
            raise reason
        if lost or late:
            raise BrokerUnavailableError(
                f"expected all records to be acknowledged in {self._timeout_s:g} s, found {lost} given up and {late} "
                f"without an answer: {reason}"
            )

    def close(self) -> int:
        """Send what is left and give the connection back; never raises. How many records were lost, which is logged."""
        with self._counting:
            closed, self._closed = self._closed, True
        if closed:
            return self.lost
        with contextlib.suppress(WeftError):
            self.flush()
        self._shut()
        with self._counting:
            self.lost, self.waiting = self.lost + self.waiting, 0
        if self.lost:
            _log.warning(
                "%s: %d records were not acknowledged, and are lost: %s", self._access, self.lost, self._reason
            )
        return self.lost

    def _open(self, settings: KafkaSettings) -> None:
        with contextlib.closing(KafkaTopics(settings, self._access)) as topics:
            topics.facts(self._access.topic)
        self._connections = Connections(Access(settings, "Write", self._access.topic))
        with self._connections.opening():
            self._producer = KafkaProducer(
                **self._connections.options(),
                acks="all",
                enable_idempotence=settings.idempotent,
                allow_auto_create_topics=False,
                linger_ms=5,  # events of one burst share a request
                batch_size=131_072,
                delivery_timeout_ms=settings.delivery_timeout_ms,
                max_block_ms=settings.send_block_ms,
            )
        # Version 3.0.12 keeps that setting from the part that asks for topics, and a broker may make one when asked.
        self._producer._metadata.config["allow_auto_create_topics"] = False

    def _open_again(self) -> None:
        """An idempotent client sends nothing more once one of its records was refused: a new one does."""
        with self._opening:
            if self._spent:
                self._shut()
                self._open(self._hasty)
                self._spent = False

    def _shut(self) -> None:
        try:
            self._producer.close(timeout=self._block_s)
        except kafka_errors.KafkaError:  # records are left: then it neither ends its thread nor has a call that does
            self._producer._sender.force_close()
            self._producer._sender.join(self._block_s)

    def _flushed(self, patience_s: float) -> bool:
        try:
            self._producer.flush(timeout=max(0.0, patience_s))
        except kafka_errors.KafkaError:
            return False
        return True

    def deliver(self, records: Sequence[tuple[bytes, bytes]]) -> list[WeftError | None]:
        """Send keyed records and wait for each: None where it was acknowledged, or else why it was not.

        Raises:
            BrokerUnavailableError: No broker takes any.
            ConfigurationError: None of them may be sent.
        """
        with self._connections.errors():
            sent = [self._handed_over(key, value) for key, value in records]
        until = time.monotonic() + self._timeout_s
        return [self._outcome(one, until) for one in sent]

    def _handed_over(self, key: bytes, value: bytes) -> Any:
        try:
            return self._producer.send(self._access.topic, value=value, key=key)
        except _TOO_LARGE as error:  # for any request
            return error

    def _outcome(self, sent: Any, until: float) -> WeftError | None:
        try:
            if isinstance(sent, Exception):
                raise sent
            # Version 3.0.12 fails to flush once a batch was too large for the topic, and was split.
            sent.get(timeout=max(0.0, until - time.monotonic()))
        except _TOO_LARGE:
            return InvalidEventError("oversized", str(self._access.too_large()))
        except kafka_errors.KafkaError as error:
            return self._connections.mapped(error)
        return None

    def _settle(self, *, acknowledged: bool) -> None:
        with self._counting:
            if self.waiting:  # what was still under way at the end was counted then
                self.waiting -= 1
                self.lost += not acknowledged

    def _give_up(self, error: Exception) -> None:
        reason = self._access.too_large() if isinstance(error, _TOO_LARGE) else self._connections.mapped(error)
        if str(reason) != str(self._reason):
            _log.warning("records are given up: %s", reason)
        self._reason = reason
        self._spent = self._spent or not getattr(error, "retriable", False)
        self._settle(acknowledged=False)
