"""Writing to Kafka, and asking about topics.

What a later try may cure is `BrokerUnavailableError`, an offset that the log does not hold is `WrongLogError`, a record
too large for any request is `InvalidEventError`, a setting or permission in the way is `ConfigurationError`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec, TopicDescription
from kafka.partitioner.default import murmur2

from weft.domain.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    InvalidEventError,
    MissingTopicError,
    WeftError,
)
from weft.runtime.kafka.client import ClientEvents, errors, mapped, options
from weft.runtime.kafka.errors import Access
from weft.runtime.kafka.log import LogFacts
from weft.runtime.settings import KafkaSettings

_log = logging.getLogger(__name__)

_BROKERS_DEFAULT = -1  # KIP-464: of brokers from version 2.4 on
_LOOK_S = 0.05  # between looks at what the client says while records travel
_CONTROLLER_S = 1.0  # that a client may wait for the controller that it knows
_FOR_EVER = 0  # of `message.timeout.ms`
_WAITING_KIB = 32_768  # of records: some thousand impressions
_REQUEST_BYTES = 1_048_576
_ASK_EVERY_S = 0.5  # for a topic that is not there yet


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
    access = Access(settings, operation, topic)
    topics = KafkaTopics(settings, access)
    if not topics.has(topic):
        made = NewTopic(
            topic, partitions, replication or _BROKERS_DEFAULT, config={"message.timestamp.type": "LogAppendTime"}
        )
        KafkaTopics(settings, Access(settings, "Create", topic)).create(made)
        deadline = time.monotonic() + settings.connect_timeout_ms / 1000
        while not topics.has(topic) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
    topics.facts(topic)


class KafkaTopics:
    """What the brokers know about topics; it connects with the first question."""

    def __init__(self, settings: KafkaSettings, access: Access) -> None:
        self._access, self._settings = access, settings
        self._events = ClientEvents(access)
        self._timeout_s = settings.connect_timeout_ms / 1_000
        self._admin = self._connected()

    def facts(self, topic: str) -> LogFacts:
        """Which topic answers under a name now."""
        described = self._described(topic)
        most, least = (
            described.topic_id.get_most_significant_bits(),
            described.topic_id.get_least_significant_bits(),
        )
        return LogFacts(topic, str(UUID(int=((most % 2**64) << 64) + least % 2**64)), len(described.partitions))

    def has(self, topic: str) -> bool:
        """Whether there is a topic of that name."""
        try:
            self._described(topic)
        except MissingTopicError:
            return False
        return True

    def create(self, topic: NewTopic) -> None:
        """Make a topic; who else made it first is welcome."""
        try:
            self._asked(lambda admin, within_s: admin.create_topics([topic], request_timeout=within_s))
        except WeftError as error:
            if _code(error) != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def start(self, topic: str, partition: int) -> int:
        """Offset of the oldest record still there: what lay before it was deleted."""
        place = TopicPartition(topic, partition)
        asked = {place: OffsetSpec.earliest()}
        return int(self._asked(lambda admin, within_s: admin.list_offsets(asked, request_timeout=within_s)).offset)

    def _described(self, topic: str) -> TopicDescription:
        described: TopicDescription = self._asked(
            lambda admin, within_s: admin.describe_topics(
                TopicCollection([topic]), include_authorized_operations=True, request_timeout=within_s
            )
        )
        permitted = described.authorized_operations  # None where the broker tells of none
        if permitted is not None and self._access.operation.upper() not in {one.name for one in permitted}:
            raise self._access.not_permitted()
        return described

    def _connected(self) -> AdminClient:
        with errors(self._access):
            return AdminClient(options(self._settings, self._events))

    def _asked(self, ask: Callable[[AdminClient, float], Mapping[Any, Future[Any]]]) -> Any:
        """What the brokers answer. A client waits for the controller that it knows: a new one finds the next one."""
        try:
            return self._answer(ask, min(_CONTROLLER_S, self._timeout_s))
        except BrokerUnavailableError:
            self._admin = self._connected()
            return self._answer(ask, self._timeout_s)

    def _answer(self, ask: Callable[[AdminClient, float], Mapping[Any, Future[Any]]], within_s: float) -> Any:
        (future,) = ask(self._admin, within_s).values()
        return self._events.answer(self._admin, future, within_s)


def _code(error: WeftError) -> int | None:
    cause = error.__cause__
    return cause.args[0].code() if isinstance(cause, KafkaException) else None


class KafkaPublisher:
    """Sends keyed records to one topic, acknowledged by every replica in sync. Any thread may call it.

    A patient one asks for no broker when it is opened: what it is given waits, 32 MiB at most, in its order.

    Raises:
        BrokerUnavailableError: On opening, unless patient: no broker answers, or the topic is missing.
        ConfigurationError: On opening: the brokers refuse this client, or let it write no records.
    """

    def __init__(self, settings: KafkaSettings, topic: str, *, patient: bool = False) -> None:
        self._access = Access(settings, "Write", topic)
        self._settings = settings
        self._timeout_s = (settings.connect_timeout_ms if patient else settings.delivery_timeout_ms) / 1000
        self._counting = threading.RLock()  # callbacks come within calls
        self._waiting = self._lost = self._reported = 0
        self._reason: WeftError | None = None
        self._refused = self._closed = False
        self._events = ClientEvents(self._access)
        self._patient = patient
        self._early: deque[tuple[bytes, bytes]] = deque()  # what came before the topic
        self._early_bytes = 0
        self._ready, self._ended = threading.Event(), threading.Event()
        self._producer = self._opened()
        if patient:
            threading.Thread(target=self._await_topic, name="waiting for the broker", daemon=True).start()
        else:
            KafkaTopics(settings, self._access).facts(topic)
            self._ready.set()

    @property
    def waiting(self) -> int:
        """Records that `send` took, neither acknowledged nor lost yet."""
        self._producer.poll(0)
        return self._waiting

    @property
    def lost(self) -> int:
        """Records that `send` took, and that no broker will have."""
        self._producer.poll(0)
        return self._lost

    def send(self, key: bytes, value: bytes) -> None:
        """Hand one record over; it travels in the background."""
        with self._counting:
            if self._closed:
                raise BrokerUnavailableError(
                    f"{self._access}: expected an open producer, found it closed: open another"
                )
            if not self._ready.is_set():
                self._keep(key, value)
                return
        self._producer.poll(0)
        if self._refused or self._events.refusal is not None or self._events.fatal:
            self._ask_again()
        with self._counting:
            self._waiting += 1
        try:
            self._produce(key, value, self._settle)
        except WeftError as error:  # whoever sent it is told
            with self._counting:
                self._waiting -= 1
            self._refused = self._refused or isinstance(error, MissingTopicError)
            raise

    def flush(self) -> None:
        """Wait until everything handed over is acknowledged."""
        late = self._waiting if self._early_wait() else self._flushed(self._timeout_s)
        with self._counting:
            lost, self._reported, reason = self._lost - self._reported, self._lost, self._reason
        if (lost or late) and self._ready.is_set() and not isinstance(reason, ConfigurationError):
            reason = self._silence() or reason
        if (lost or late) and isinstance(reason, ConfigurationError):
            if self._events.fatal:
                self._ask_again()  # says more exactly what is missing
            raise reason
        if lost or late:
            raise BrokerUnavailableError(
                f"expected all records to be acknowledged in {self._timeout_s:g} s, found {lost} given up and {late} "
                f"without an answer: {reason or self._events.text}"
            )

    def close(self) -> int:
        """Send what is left and give the connection back; never raises. How many records were lost, which is logged."""
        if not self._closed:
            with contextlib.suppress(WeftError):
                self.flush()
            with self._counting:
                self._closed = True
            self._ended.set()
            self._producer.purge()
            self._left()
            self._give_up()
            if self._lost:
                _log.warning(
                    "%s: %d records were not acknowledged, and are lost: %s", self._access, self._lost, self._reason
                )
        return self._lost

    def deliver(self, records: Sequence[tuple[bytes, bytes]]) -> list[WeftError | None]:
        """Send keyed records and wait for each: None where it was acknowledged, or else why it was not."""
        silence = self._access.unavailable("none in time")
        outcomes: list[WeftError | None] = [silence] * len(records)

        def noting(place: int) -> Callable[[KafkaError | None, Message], None]:
            def note(error: KafkaError | None, _: Message) -> None:
                outcomes[place] = None if error is None else self._outcome(error)

            return note

        for place, (key, value) in enumerate(records):
            try:
                self._produce(key, value, noting(place))
            except InvalidEventError as error:
                outcomes[place] = error
        self._flushed(self._timeout_s)
        return outcomes

    def _opened(self) -> Producer:
        stated = options(self._settings, self._events) | {
            "acks": "all",
            "enable.idempotence": self._settings.idempotent,
            # Without numbers of its own a batch that is sent again would come behind the next one.
            **({} if self._settings.idempotent else {"max.in.flight.requests.per.connection": 1}),
            "partitioner": "murmur2_random",  # as `partition_of`
            "linger.ms": 5,  # events of one burst share a request
            "batch.size": 131_072,
            "message.max.bytes": _REQUEST_BYTES,
            "message.timeout.ms": _FOR_EVER if self._patient else self._settings.delivery_timeout_ms,
            "queue.buffering.max.kbytes": _WAITING_KIB,
            "queue.buffering.max.messages": 1_000_000,  # bytes are the bound
        }
        with errors(self._access):
            return Producer(stated)

    def _await_topic(self) -> None:
        """Ask for the topic until it is there, and hand over what came before it, in its order."""
        while not self._ended.is_set():
            try:
                KafkaTopics(self._settings, self._access).facts(self._access.topic)
            except WeftError as error:
                if type(error) is not type(self._reason):
                    _log.warning("%s; events wait, and the broker is asked again every %g s", error, _ASK_EVERY_S)
                self._reason = error
                self._ended.wait(_ASK_EVERY_S)
            else:
                with self._counting:
                    self._reason = None
                    while self._early and not self._closed:
                        key, value = self._early.popleft()
                        try:
                            self._produce(key, value, self._settle)
                        except WeftError as refusal:  # no later try helps this one, and others wait behind it
                            _log.warning("an event is lost: %s", refusal)
                            self._waiting, self._lost = self._waiting - 1, self._lost + 1
                    self._ready.set()
                return

    def _keep(self, key: bytes, value: bytes) -> None:
        if isinstance(self._reason, ConfigurationError):
            raise self._reason
        if self._early_bytes + len(key) + len(value) > _WAITING_KIB * 1_024:
            raise self._access.unavailable(f"none so far, and {len(self._early)} events wait, as many as may")
        self._early.append((key, value))
        self._early_bytes += len(key) + len(value)
        self._waiting += 1

    def _early_wait(self) -> bool:
        """Whether records wait for their topic still, after the time that one may be waited for."""
        deadline = time.monotonic() + (self._timeout_s if self._early else 0.0)
        while not self._ready.wait(_LOOK_S):
            if time.monotonic() >= deadline or isinstance(self._reason, ConfigurationError):
                return True
        return False

    def _outcome(self, error: KafkaError) -> WeftError:
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return InvalidEventError("oversized", str(self._access.too_large()))
        return mapped(error, self._access)

    def _produce(self, key: bytes, value: bytes, on_delivery: Callable[[KafkaError | None, Message], None]) -> None:
        deadline = time.monotonic() + self._settings.send_block_ms / 1000
        with errors(self._access):
            while True:
                try:
                    self._producer.produce(self._access.topic, value, key, on_delivery=on_delivery)
                    return
                except BufferError as error:
                    if time.monotonic() >= deadline:
                        raise self._access.unavailable(
                            f"none, and as much waits as may: {self._events.text}"
                        ) from error
                self._producer.poll(_LOOK_S)

    def _flushed(self, patience_s: float) -> int:
        """Wait for answers; how many records have none. Where the brokers refuse this client, that is raised."""
        deadline = time.monotonic() + patience_s
        while left := self._left():
            if self._events.refusal is not None or self._events.fatal:
                self._ask_again()
            if time.monotonic() >= deadline:
                return left
        return 0

    def _left(self) -> int:
        try:
            return int(self._producer.flush(_LOOK_S))
        except KafkaException as error:  # it does nothing more
            self._events(error.args[0])
            self._producer.poll(0)
            return self._waiting

    def _silence(self) -> WeftError | None:
        """Why nothing is acknowledged, asked of the brokers; None where they see no reason."""
        try:
            self._ask_again()
        except WeftError as error:
            return error
        return None

    def _ask_again(self) -> None:
        """Whether the brokers let this client in by now; nobody waits for that any longer than for a send."""
        hasty = self._settings.model_copy(update={"connect_timeout_ms": self._settings.send_block_ms})
        KafkaTopics(hasty, self._access).facts(self._access.topic)
        if self._events.fatal:
            self._give_up()
            refusal, self._events = self._events.refusal, ClientEvents(self._access)
            self._producer = self._opened()
            if refusal is not None:
                raise refusal
        else:
            with errors(self._access):  # the client's own refusal of a topic ends with its next look at it
                self._producer.list_topics(self._access.topic, self._settings.send_block_ms / 1000)
        self._refused, self._events.refusal = False, None

    def _give_up(self) -> None:
        with self._counting:
            self._lost, self._waiting = self._lost + self._waiting, 0

    def _settle(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            large = error.code() == KafkaError.MSG_SIZE_TOO_LARGE
            reason = self._access.too_large() if large else self._events.refusal or mapped(error, self._access)
            if str(reason) != str(self._reason):
                _log.warning("records are given up: %s", reason)
            self._reason = reason
            self._refused = isinstance(reason, ConfigurationError | MissingTopicError) and not large
        with self._counting:
            if self._waiting:  # what was still under way at the end was counted then
                self._waiting -= 1
                self._lost += error is not None
