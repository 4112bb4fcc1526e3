"""Reading a topic by assignment."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException, Message, TopicPartition

from weft.domain.errors import WeftError
from weft.runtime.kafka.client import ClientEvents, errors, mapped, options
from weft.runtime.kafka.errors import Access
from weft.runtime.kafka.gaps import LogGaps
from weft.runtime.kafka.log import FETCH_BYTES, Batches, LogFacts, OpenTransaction, Records
from weft.runtime.kafka.writer import KafkaTopics
from weft.runtime.settings import KafkaSettings

_log = logging.getLogger(__name__)

_NO_GROUP = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._NO_OFFSET})
"""What a broker says of a group whose offsets it will not keep."""

# Called without looking them up once per record.
_PARTITION, _OFFSET, _TIMESTAMP, _KEY, _VALUE = (
    *(Message.partition, Message.offset, Message.timestamp),
    *(Message.key, Message.value),
)


class KafkaSource:
    """A topic read by assignment, bytes as they are."""

    def __init__(self, settings: KafkaSettings, topic: str, *, max_poll_records: int) -> None:
        self._topic = topic
        self._access = Access(settings, "Read", topic)
        self._group = settings.group
        self._sought: set[int] = set()
        self._reached: dict[int, int] = {}
        self._failed: WeftError | None = None
        self._refused = False  # the group's offsets: said once
        self._events = ClientEvents(self._access)
        self._topics = KafkaTopics(settings, self._access)
        self._gaps = LogGaps(self._access)
        callbacks = {"error_cb": self._hear, "on_commit": self._note_commit}
        with self._errors():
            self._consumer = Consumer(
                options(settings, self._events) | _consumer(settings, max_poll_records) | callbacks
            )

    def assign(self, partitions: Sequence[int]) -> None:
        """Own these partitions from now on; each is read once it was sought."""
        with self._errors():
            if dropped := self._sought - set(partitions):
                self._consumer.incremental_unassign([TopicPartition(self._topic, one) for one in sorted(dropped)])
            self._sought -= dropped

    def seek(self, partition: int, offset: int) -> None:
        """Read on from `offset`."""
        place = TopicPartition(self._topic, partition, offset)
        with self._errors():
            if partition in self._sought:
                self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])
            self._consumer.incremental_assign([place])
        self._sought.add(partition)
        self._reached.pop(partition, None)

    def poll(self, max_records: int, timeout_s: float) -> Batches:
        """The next records by partition. Records that came with an error are returned, and the next call raises it."""
        self._raise_failed()
        until = time.monotonic() + timeout_s
        # That one partition is at its end says nothing of the others: records are waited for.
        while not (messages := self._taken(max_records, until - time.monotonic())):
            self._raise_failed()
            if time.monotonic() >= until:
                break
        delivered: dict[int, list[Any]] = defaultdict(list)
        for partition, some in groupby(messages, key=_PARTITION):
            delivered[partition] += some
        return {partition: _columns(some) for partition, some in delivered.items()}

    def reached(self, partition: int) -> int | None:
        """Offset behind all that was read, where that was the end that readers may read to; None before it was met."""
        return self._reached.get(partition)

    def skipped(self, partition: int, first: int, behind: int) -> int:
        """How many offsets from `first` to before `behind` the log explains."""
        return self._gaps.skipped(partition, first, behind)

    def open_transaction(self, partition: int) -> OpenTransaction | None:
        """The transaction that holds reading up, as far as the broker tells."""
        return self._gaps.open_transaction(partition)

    def note_offsets(self, offsets: Mapping[int, int]) -> None:
        """Tell the group how far the partitions were read; for tools that show lag, so nothing fails over it."""
        if self._refused or not offsets:
            return
        with contextlib.suppress(KafkaException):
            self._consumer.commit(
                offsets=[TopicPartition(self._topic, *one) for one in offsets.items()], asynchronous=True
            )

    def facts(self) -> LogFacts:
        """Which topic answers under the name now."""
        return self._topics.facts(self._topic)

    def log_start(self, partition: int) -> int:
        """Offset of the oldest record still there."""
        # Not over the reader's connection: there an answer comes after the fetch before it, which waits for records.
        return self._topics.start(self._topic, partition)

    def highwater(self, partition: int) -> int | None:
        """Offset of the next record, as of the last fetch. What a broker says when asked lags behind it on some."""
        with self._errors():
            _, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
        return int(high) if high >= 0 else None

    def close(self) -> None:
        """Give connections back; a broker that is gone is no reason to fail."""
        with contextlib.suppress(WeftError), self._errors():
            self._consumer.close()
        self._gaps.close()

    def _hear(self, error: KafkaError) -> None:
        """Keep what the client says aside: that it is refused it tells nowhere else, and tries again for ever."""
        if error.code() in _NO_GROUP:
            self._refuse_group(error.str())
        else:
            self._events(error)

    def _taken(self, max_records: int, timeout_s: float) -> list[Message]:
        """Records that are there, once the client has anything to say."""
        with self._errors():
            # `consume` waits until it has all it was asked for: so one is waited for, and then taken what is there.
            first = self._consumer.poll(max(0.0, timeout_s))
            messages = [] if first is None else [first, *self._consumer.consume(max_records - 1, 0.0)]
        if any(message.error() is not None for message in messages):
            messages = [message for message in messages if self._is_record(message)]
        return messages

    def _raise_failed(self) -> None:
        failed, self._failed, self._events.refusal = self._events.refusal or self._failed, None, None
        if failed is not None:
            raise failed

    def _is_record(self, message: Message) -> bool:
        """Whether a message is a record; what else it says is kept."""
        error = message.error()
        if error is None:
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            self._reached[message.partition()] = message.offset()
        elif error.code() in _NO_GROUP:
            self._refuse_group(error.str())
        else:
            self._failed = mapped(error, self._access)
        return False

    def _note_commit(self, error: KafkaError | None, _: Sequence[TopicPartition]) -> None:
        if error is not None and error.code() in _NO_GROUP:
            self._refuse_group(error.str())

    def _refuse_group(self, text: str) -> None:
        if not self._refused:
            _log.warning(
                "group %s: the broker keeps no offsets of it (%s): tools for groups show no lag, all else works. Give "
                "the user the permission Read on the group",
                self._group,
                text,
            )
        self._refused = True

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        return errors(self._access)


def _columns(messages: Sequence[Any]) -> Records:
    kinds, timestamps = zip(*map(_TIMESTAMP, messages), strict=True)
    return Records(
        list(map(_PARTITION, messages)),
        list(map(_OFFSET, messages)),
        timestamps,
        list(map(_KEY, messages)),
        list(map(_VALUE, messages)),
        [kind == TIMESTAMP_LOG_APPEND_TIME for kind in kinds],
    )


def _consumer(settings: KafkaSettings, max_poll_records: int) -> dict[str, Any]:
    """How the reader's client fetches."""
    return {
        "group.id": settings.group,
        "isolation.level": settings.isolation,
        "enable.partition.eof": True,  # says how far was read where the log ends in records that nobody gets
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "check.crcs": True,
        "max.partition.fetch.bytes": FETCH_BYTES,
        "fetch.wait.max.ms": 100,  # an empty fetch is answered then: bounds what a quiet topic adds to freshness
        "queued.min.messages": 2 * max_poll_records,  # a poll is ready while another is consumed; more is only memory
        "fetch.queue.backoff.ms": 1,  # the client's own pause after it read ahead, 1000, starves an updater
    }
