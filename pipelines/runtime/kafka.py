"""The one module that speaks to Kafka: a log read by assignment, a publisher, and the making of topics.

Foreign errors are mapped here: everything that a later try may cure is `BrokerUnavailableError`, an offset that the
log does not hold is `WrongLogError`, a setting or permission that stands in the way is `ConfigurationError`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka import errors as kafka_errors

from pipelines.domain.errors import BrokerUnavailableError, ConfigurationError, WeftError, WrongLogError
from pipelines.runtime.log import Batches, LogFacts, Record
from pipelines.runtime.settings import KafkaSettings

_log = logging.getLogger(__name__)

_WRONG_LOG = (
    kafka_errors.OffsetOutOfRangeError,
    kafka_errors.NoOffsetForPartitionError,
    kafka_errors.LogTruncationError,
)
_REFUSED = (
    kafka_errors.AuthorizationError,
    kafka_errors.IllegalArgumentError,
    kafka_errors.KafkaConfigurationError,
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
)


def mapped(error: Exception, doing: str) -> WeftError:
    """The error of weft's own tree that says what a caller can do about one of kafka-python's."""
    if isinstance(error, _WRONG_LOG):
        return WrongLogError(f"{doing}: the log does not hold the offset sought: {error!r}")
    if isinstance(error, _REFUSED):
        return ConfigurationError(f"{doing}: refused, see the kafka section of the settings: {error!r}")
    return BrokerUnavailableError(f"{doing}: expected an answer, found {error!r}; is the broker up?")


@contextlib.contextmanager
def _mapping(doing: str) -> Iterator[None]:
    try:
        yield
    except (kafka_errors.KafkaError, OSError) as error:
        raise mapped(error, doing) from error


def _connection(settings: KafkaSettings) -> dict[str, Any]:
    password = settings.sasl_password
    return {
        "bootstrap_servers": settings.bootstrap.split(","),
        "security_protocol": settings.security_protocol,
        "sasl_mechanism": settings.sasl_mechanism,
        "sasl_plain_username": settings.sasl_username,
        "sasl_plain_password": None if password is None else password.get_secret_value(),
        "ssl_cafile": settings.ssl_cafile,
        "request_timeout_ms": settings.request_timeout_ms,
        "bootstrap_timeout_ms": settings.connect_timeout_ms,
    }


def create_topic(settings: KafkaSettings, topic: str, *, partitions: int, replication: int) -> None:
    """Make the topic where it is missing; an existing one is left as it is.

    Record times are asked to be the broker's own, so that no producer can choose them.
    """
    wanted = {
        topic: {
            "num_partitions": partitions,
            "replication_factor": replication,
            "configs": {"message.timestamp.type": "LogAppendTime"},
        }
    }
    doing = f"making topic {topic} at {settings.bootstrap}"
    with _mapping(doing), contextlib.closing(KafkaAdminClient(**_connection(settings))) as admin:
        (described,) = admin.describe_topics([topic])
        if not described["error_code"]:
            return
        with contextlib.suppress(kafka_errors.TopicAlreadyExistsError):
            admin.create_topics(wanted)
        admin.wait_for_topics([topic], timeout_ms=settings.connect_timeout_ms)


class KafkaSource:
    """A topic read by assignment: no group, no rebalance, no committed offsets, bytes as they are.

    Implements `pipelines.feedback.source.FeedbackSource`.
    """

    def __init__(self, settings: KafkaSettings, topic: str, *, max_poll_records: int) -> None:
        self._topic = topic
        self._doing = f"reading {topic} at {settings.bootstrap}"
        with _mapping(self._doing):
            self._admin = KafkaAdminClient(**_connection(settings))
            self._consumer = KafkaConsumer(
                **_connection(settings),
                group_id=None,
                enable_auto_commit=False,
                allow_auto_create_topics=False,  # a look must not make a topic with the broker's default partitions
                auto_offset_reset="none",
                max_poll_records=max_poll_records,
                max_partition_fetch_bytes=settings.fetch_bytes,
                fetch_max_wait_ms=settings.fetch_wait_ms,
            )

    def assign(self, partitions: Sequence[int]) -> None:
        """Own these partitions from now on."""
        with _mapping(self._doing):
            self._consumer.assign([TopicPartition(self._topic, partition) for partition in partitions])

    def seek(self, partition: int, offset: int) -> None:
        """Read on from `offset`."""
        with _mapping(self._doing):
            self._consumer.seek(TopicPartition(self._topic, partition), offset)

    def poll(self, max_records: int, timeout_s: float) -> Batches:
        """The next records by partition."""
        with _mapping(self._doing):
            fetched = self._consumer.poll(timeout_ms=round(timeout_s * 1000), max_records=max_records)
        return {
            place.partition: [Record(place.partition, r.offset, r.timestamp, r.key, r.value) for r in records]
            for place, records in fetched.items()
        }

    def facts(self) -> LogFacts:
        """Which topic answers under the name now."""
        with _mapping(self._doing):
            (described,) = self._admin.describe_topics([self._topic])
            if described["error_code"]:
                raise kafka_errors.for_code(described["error_code"])(f"topic {self._topic}")
        return LogFacts(self._topic, str(described["topic_id"]), len(described["partitions"]))

    def log_start(self, partition: int) -> int:
        """Offset of the oldest record still there."""
        place = TopicPartition(self._topic, partition)
        with _mapping(self._doing):
            return int(self._consumer.beginning_offsets([place])[place])

    def highwater(self, partition: int) -> int | None:
        """Offset of the next record, as of the last fetch. `end_offsets` lags behind it on some brokers."""
        found: int | None = self._consumer.highwater(TopicPartition(self._topic, partition))
        return found

    def close(self) -> None:
        """Give both connections back; a broker that is gone is no reason to fail."""
        with contextlib.suppress(kafka_errors.KafkaError, OSError):
            self._consumer.close(timeout_ms=0)
            self._admin.close()


class KafkaPublisher:
    """Sends keyed records to one topic, acknowledged by every replica in sync.

    Attributes:
        failed: Records that were accepted by `send` and given up later.
    """

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._topic = topic
        self._doing = f"writing {topic} at {settings.bootstrap}"
        self._timeout_s = settings.delivery_timeout_ms / 1000
        self.failed = 0
        with _mapping(self._doing):
            self._producer = KafkaProducer(
                **_connection(settings),
                acks="all",
                enable_idempotence=settings.idempotent,
                allow_auto_create_topics=False,
                linger_ms=settings.linger_ms,
                batch_size=settings.batch_bytes,
                delivery_timeout_ms=settings.delivery_timeout_ms,
                max_block_ms=settings.send_block_ms,
            )

    def send(self, key: bytes, value: bytes) -> None:
        """Hand one record over; it travels in the background.

        Raises:
            BrokerUnavailableError: No broker took it within the time a caller may be blocked.
        """
        with _mapping(self._doing):
            sent = self._producer.send(self._topic, value=value, key=key)
        sent.add_errback(self._give_up)

    def flush(self) -> None:
        """Wait until everything handed over is acknowledged.

        Raises:
            BrokerUnavailableError: Something was given up since the last flush.
        """
        failed_before, self.failed = self.failed, 0
        with _mapping(self._doing):
            self._producer.flush(timeout=self._timeout_s)
        if lost := failed_before + self.failed:
            self.failed = 0
            raise BrokerUnavailableError(f"{self._doing}: {lost} records were not acknowledged in time")

    def close(self) -> None:
        """Send what is left and give the connection back."""
        with _mapping(self._doing):
            self._producer.close(timeout=self._timeout_s)

    def _give_up(self, error: Exception) -> None:
        self.failed += 1
        _log.warning("%s: a record was given up: %r", self._doing, error)
