"""Writing to Kafka, and asking about topics; reading is in `kafka_log`.

Foreign errors are mapped here: everything that a later try may cure is `BrokerUnavailableError`, an offset that the
log does not hold is `WrongLogError`, a record too large for any request is `InvalidEventError`, a setting or permission
that stands in the way is `ConfigurationError`.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer
from kafka import errors as kafka_errors

from pipelines.domain.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    InvalidEventError,
    MissingTopicError,
    WeftError,
    WrongLogError,
)
from pipelines.runtime.log import LogFacts
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

_TOO_LARGE = (kafka_errors.MessageSizeTooLargeError, kafka_errors.RecordListTooLargeError)
_MISSING = kafka_errors.UnknownTopicOrPartitionError.errno
_BROKERS_DEFAULT = -1  # KIP-464: of brokers from version 2.4 on


def mapped(error: Exception, doing: str) -> WeftError:
    """The error of weft's own tree that says what a caller can do about one of kafka-python's."""
    if isinstance(error, _WRONG_LOG):
        return WrongLogError(f"{doing}: the log does not hold the offset sought: {error!r}")
    if isinstance(error, _REFUSED):
        return ConfigurationError(f"{doing}: refused, see the kafka section of the settings: {error!r}")
    if isinstance(error, _TOO_LARGE):
        return InvalidEventError("oversized", f"{doing}: {error!r}")
    return BrokerUnavailableError(f"{doing}: expected an answer, found {error!r}; is the broker up?")


@contextlib.contextmanager
def _mapping(doing: str) -> Iterator[None]:
    """Errors of kafka-python inside the block become weft's own."""
    try:
        yield
    except (kafka_errors.KafkaError, OSError) as error:
        raise mapped(error, doing) from error


def _connection(settings: KafkaSettings) -> dict[str, Any]:
    """How kafka-python is told to reach the brokers."""
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


def create_topic(settings: KafkaSettings, topic: str, *, partitions: int, replication: int | None) -> None:
    """Make the topic where it is missing; an existing one is left as it is.

    Record times are asked to be the broker's own, so that no producer can choose them.

    Args:
        replication: Copies of each partition; None leaves their number to the broker.
    """
    wanted = {
        topic: {
            "num_partitions": partitions,
            "replication_factor": replication or _BROKERS_DEFAULT,
            "configs": {"message.timestamp.type": "LogAppendTime"},
        }
    }
    doing = f"making topic {topic} at {settings.bootstrap}"
    with _mapping(doing), contextlib.closing(KafkaAdminClient(**_connection(settings))) as admin:
        (described,) = admin.describe_topics([topic])
        if described["error_code"] != _MISSING:
            _require_answer(described, topic)
            return
        with contextlib.suppress(kafka_errors.TopicAlreadyExistsError):
            admin.create_topics(wanted)
        admin.wait_for_topics([topic], timeout_ms=settings.connect_timeout_ms)


def _require_answer(described: Mapping[str, Any], topic: str) -> None:
    if described["error_code"]:
        raise kafka_errors.for_code(described["error_code"])(f"topic {topic}")


class KafkaTopics:
    """What the brokers know about topics.

    Raises:
        BrokerUnavailableError: From every method, and on opening: no broker answers.
        MissingTopicError: From `facts`: there is no such topic.
    """

    def __init__(self, settings: KafkaSettings, doing: str) -> None:
        self._doing = doing
        with _mapping(doing):
            self._admin = KafkaAdminClient(**_connection(settings))

    def facts(self, topic: str) -> LogFacts:
        """Which topic answers under a name now."""
        with _mapping(self._doing):
            (described,) = self._admin.describe_topics([topic])
            if described["error_code"] == _MISSING:
                raise MissingTopicError(f"{self._doing}: expected topic {topic}, found none of that name")
            _require_answer(described, topic)
        return LogFacts(topic, str(described["topic_id"]), len(described["partitions"]))

    def close(self) -> None:
        """Give the connection back; a broker that is gone is no reason to fail."""
        with contextlib.suppress(kafka_errors.KafkaError, OSError):
            self._admin.close()


class KafkaPublisher:
    """Sends keyed records to one topic, acknowledged by every replica in sync.

    Attributes:
        failed: Records that were accepted by `send` and given up later.
        waiting: None ever do: whoever sends waits for the broker.
    """

    waiting = 0

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
        # Version 3.0.12 keeps that setting from the part that asks for topics, and a broker may make one when asked.
        self._producer._metadata.config["allow_auto_create_topics"] = False

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

    def deliver(self, records: Sequence[tuple[bytes, bytes]]) -> list[WeftError | None]:
        """Send keyed records and wait for each: None where it was acknowledged, or else why it was not.

        Raises:
            BrokerUnavailableError: No broker takes any.
            ConfigurationError: None of them may be sent.
        """
        with _mapping(self._doing):
            sent = [self._handed_over(key, value) for key, value in records]
        until = time.monotonic() + self._timeout_s
        return [self._outcome(one, until) for one in sent]

    def _handed_over(self, key: bytes, value: bytes) -> Any:
        try:
            return self._producer.send(self._topic, value=value, key=key)
        except _TOO_LARGE as error:  # for any request
            return error

    def _outcome(self, sent: Any, until: float) -> WeftError | None:
        try:
            if isinstance(sent, Exception):
                raise sent
            # Version 3.0.12 fails to flush once a batch was too large for the topic, and was split.
            sent.get(timeout=max(0.0, until - time.monotonic()))
        except kafka_errors.KafkaError as error:
            return mapped(error, self._doing)
        return None

    def close(self) -> None:
        """Send what is left and give the connection back."""
        with _mapping(self._doing):
            self._producer.close(timeout=self._timeout_s)

    def _give_up(self, error: Exception) -> None:
        self.failed += 1
        _log.warning("%s: a record was given up: %r", self._doing, error)
