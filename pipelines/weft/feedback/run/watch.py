"""Whether the log is still the one that the stores belong to, asked at a steady pace while nothing is delivered.

Records that are delivered are checked with their batch. A log that was deleted, made again, truncated, repartitioned or
overtaken by its retention may deliver nothing at all, for ever; so it is asked for. So is an open transaction: nobody
may read what lies behind it before it ends (FBK-14).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from weft.domain.errors import BrokerUnavailableError, MissingTopicError
from weft.feedback.log import FeedbackSource, Positions
from weft.feedback.settings import MS
from weft.feedback.store.report import deleted, require_same_log, require_still_there, require_within
from weft.feedback.store.state import PartitionState
from weft.runtime.clock import system_clock
from weft.runtime.kafka.log import OpenTransaction

_log = logging.getLogger(__name__)

_EVERY_S = 1.0  # so that a wrong log is named within 2 s


class Absence:
    """Tells a topic that was deleted from one that its broker does not list yet: by asking twice, a second apart."""

    def __init__(self) -> None:
        self._since: float | None = None

    def ended(self) -> None:
        """The topic is there."""
        self._since = None

    def raise_if_deleted(self, error: BrokerUnavailableError, now: float, *, topic: str, topic_id: str = "") -> None:
        """Take note of what came instead of an answer; any other silence says nothing about the topic.

        Raises:
            WrongLogError: The topic has been missing for that long.
        """
        if not isinstance(error, MissingTopicError):
            return
        self._since = now if self._since is None else self._since
        if now - self._since >= _EVERY_S:
            raise deleted(topic, topic_id, str(error)) from error


OPEN_TRANSACTION_S = 5.0
"""Age from which a transaction that keeps what lies behind it from being read is named in the job's log."""


class LogWatch:
    """Looks at the log every second of a monotonic clock."""

    def __init__(self) -> None:
        self._open: dict[int, OpenTransaction] = {}
        self._named: dict[int, OpenTransaction] = {}
        self._look_at = float("-inf")
        self._beyond: set[int] = set()
        self._absence = Absence()

    def check(
        self, source: FeedbackSource, states: Mapping[int, PartitionState], positions: Positions, now: float
    ) -> None:
        """Check every partition, if it is time to.

        Raises:
            WrongLogError: Naming the partition and what differs, or the topic that was deleted.
            BrokerUnavailableError: Nobody answers; asking again later is safe.
        """
        if now >= self._look_at:
            self.check_now(source, states, positions, now)

    def check_now(
        self, source: FeedbackSource, states: Mapping[int, PartitionState], positions: Positions, now: float
    ) -> None:
        """The same at once."""
        try:
            facts = source.facts()
        except BrokerUnavailableError as error:  # is asked again at the next step: silence must not pass for health
            for report in (state.report() for state in states.values()):
                self._absence.raise_if_deleted(error, now, topic=report.topic, topic_id=report.topic_id)
            raise
        self._absence.ended()
        self._look_at = now + _EVERY_S
        for partition, state in states.items():
            report = state.report()
            require_same_log(report, facts, partition)
            require_still_there(report, source.log_start(partition))
            self._require_within(state, source.highwater(partition), positions[partition])
            self._look_for_transaction(source, partition, positions[partition])

    def open_transaction_s(self, partition: int) -> float | None:
        """Age of the transaction that holds a partition up; None where none does."""
        transaction = self._open.get(partition)
        return None if transaction is None else max(0.0, system_clock() - transaction.since_ms / MS)

    def _look_for_transaction(self, source: FeedbackSource, partition: int, position: int) -> None:
        highwater = source.highwater(partition)
        if highwater is None or position >= highwater or source.reached(partition) != position:
            self._open.pop(partition, None)
            if self._named.pop(partition, None) is not None:
                _log.info("partition %d: the transaction has ended, reading goes on", partition)
            return
        before = self._open.get(partition)
        unnamed = before or OpenTransaction("the broker does not say whose", position, round(system_clock() * MS))
        transaction = self._open[partition] = source.open_transaction(partition) or unnamed
        age_s = self.open_transaction_s(partition) or 0.0
        if age_s >= OPEN_TRANSACTION_S and self._named.get(partition) != transaction:
            self._named[partition] = transaction
            _log.warning(
                "partition %d: offsets %d to %d cannot be read yet: a transaction (%s) is open for %.0f s. They are "
                "read once its producer ends it, or the broker does after the producer's transaction.timeout.ms",
                *(partition, position, highwater - 1, transaction.name, age_s),
            )

    def _require_within(self, state: PartitionState, highwater: int | None, position: int) -> None:
        if highwater is None or position <= highwater:
            self._beyond.discard(state.partition)
        elif state.partition in self._beyond:
            require_within(state.report(), highwater)
        else:
            # A new leader may know an older end for a moment: it is believed when it stays.
            self._beyond.add(state.partition)
