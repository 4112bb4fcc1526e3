"""An updater: partitions it owns, and the loop that keeps their evidence up with the log."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from weft.domain.errors import BrokerUnavailableError, MissingTopicError, WeftError, WrongLogError
from weft.feedback.fold.credit import Attribute
from weft.feedback.log import FeedbackSource, Positions, RebasedSource
from weft.feedback.pipeline import POLL_TIMEOUT_S, advance
from weft.feedback.publish.dead_letters import Republisher
from weft.feedback.publish.snapshot import publish_snapshot
from weft.feedback.run.partitions import claimed, partition_folder
from weft.feedback.settings import MS, FeedbackSettings
from weft.feedback.store.checkpoints import is_due, write_checkpoint
from weft.feedback.store.heads import is_shared
from weft.feedback.store.report import PartitionReport, deleted, require_same_log, require_still_there, require_within
from weft.feedback.store.state import PartitionState
from weft.runtime.clock import system_clock
from weft.runtime.kafka.log import OpenTransaction
from weft.runtime.process import PeriodicCollection
from weft.runtime.traces import EventTraces

# Whether the log is still the one that the stores belong to, asked at a steady pace while nothing is delivered.


_EVERY_S = 1.0  # so that a wrong log is named within 2 s


class Absence:
    """Tells a topic that was deleted from one that its broker does not list yet: by asking twice, a second apart."""

    def __init__(self) -> None:
        self._since: float | None = None

    def ended(self) -> None:
        """The topic is there."""
        self._since = None

    def raise_if_deleted(self, error: BrokerUnavailableError, now: float, *, topic: str, topic_id: str = "") -> None:
        """Take note of what came instead of an answer; any other silence says nothing about the topic."""
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


_log = logging.getLogger(__name__)

_PUBLISH_BEHIND_S = 2.0  # while more lies ahead than a poll brings, what a snapshot would show is old already
_COLLECT_EVERY_S = 30.0  # between searches for cyclic garbage: batches make none, and a search takes about .1 s

Monotonic = Callable[[], float]
"""Seconds of a clock that never goes back: paces the loop, never reaches the state."""


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """Where one partition stands."""

    report: PartitionReport
    lag: int | None  # records in the log that were not consumed yet, as far as the broker said; None before it did
    answers: bool | None = None  # whether the broker answered when it was last asked; None where nobody asks it
    # whether dead letters are on their way to their topic; not where it took none at the last attempt
    publishing: bool = False
    # age of the transaction that keeps the rest of the log from being read; None without one
    open_transaction_s: float | None = None

    @property
    def caught_up(self) -> bool:
        """Whether everything that the log was known to hold is consumed, and dead letters published or refused."""
        return self.lag == 0 and not self.publishing


class Updater:
    """Owns partitions of one log, from `open` to `close`; one thread calls it."""

    def __init__(
        self,
        source: FeedbackSource,
        states: Mapping[int, PartitionState],
        offsets: Mapping[int, int],
        rules: FeedbackSettings,
        *,
        dead_letters: Republisher | None = None,
        attribute: Attribute | None = None,
    ) -> None:
        self._source = source
        self._attribute = attribute
        self._states = dict(states)
        self._rules = rules
        self._dead_letters = dead_letters
        self._positions = Positions(offsets)
        self._watch = LogWatch()
        self._published: dict[int, int] = {}
        self._noted: dict[int, int] = {}
        self._publish_at = self._look_after_at = float("-inf")
        self._moved_at: float | None = float("-inf")  # what is there is published at once
        self._begun_at: float | None = None
        self.silent_since: float | None = None
        # Batches make no cycles, but so many objects that looking for some takes a seventh of the time.
        self._collection = PeriodicCollection(every_s=_COLLECT_EVERY_S)
        self._traces = EventTraces.configured()

    @classmethod
    def open(
        cls,
        source: FeedbackSource,
        store: Path,
        partitions: Sequence[int],
        rules: FeedbackSettings,
        *,
        dead_letters: Republisher | None = None,
        attribute: Attribute | None = None,  # says what responses rest on, where somebody can
    ) -> Self:
        """Claim partitions, whoever held them, and read on from their stored offsets."""
        states: dict[int, PartitionState] = {}
        reports: dict[int, PartitionReport] = {}
        try:
            facts = source.facts()
            source.assign(partitions)
            for partition in partitions:
                folder = partition_folder(store, partition)
                states[partition] = claimed(folder, partition, rules, facts, log_start=source.log_start(partition))
                reports[partition] = states[partition].report()
            rebased = RebasedSource(source, {partition: one.offset_base for partition, one in reports.items()})
            offsets = {partition: one.next_offset for partition, one in reports.items()}
            for partition, offset in offsets.items():
                rebased.seek(partition, offset)
        except BaseException:
            for state in states.values():
                state.close()
            raise
        return cls(rebased, states, offsets, rules, dead_letters=dead_letters, attribute=attribute)

    def step(self, now: float) -> int:
        """Consume one poll's worth, and publish what changed, `publish_every_s` after the last time at the earliest.

        What is said of an answer comes in several events, close to each other: a partition that was quiet publishes
        once a poll brings no more of them, or has come and gone. While more lies ahead than a poll brings, what a
        snapshot would show is old already: then it is published every two seconds.

        Returns:
            How many records the log delivered; 0 says that it holds no more for now.

        Raises:
            BrokerUnavailableError: Ask again later; nothing was lost.
            FencedError: Another updater owns one of the partitions.
            WrongLogError: The log is not the one that the stores belong to.
        """
        delivered = self._advance(now)
        # A poll that brings nothing is no answer: it brings nothing while the broker is away, too.
        self._watch.check(self._source, self._states, self._positions, now)
        if self._dead_letters is not None:
            self._dead_letters.check(self._states, now)
        self._begun_at = now if self._begun_at is None else self._begun_at
        if delivered and self._moved_at is None:
            self._moved_at = now
        if self._moved_at is not None and now >= self._publish_at and self._is_settled(now, delivered):
            self.publish()
            self._publish_at, self._moved_at = now + self._rules.publish_every_s, None
        if now >= self._look_after_at:
            self._keep_checkpoints()
            self._note_offsets()
            self._look_after_at = now + self._rules.publish_every_s
        self._collection.collect_when_due(now)
        return delivered

    def _advance(self, now: float) -> int:
        try:
            log = self._source, self._states, self._positions
            return advance(*log, self._rules, attribute=self._attribute, traces=self._traces)
        except (BrokerUnavailableError, WrongLogError):
            # A reader says that it cannot read on; why is said best by who asks for the log itself.
            self._watch.check_now(self._source, self._states, self._positions, now)
            raise

    def _is_settled(self, now: float, delivered: int) -> bool:
        if not delivered or self._moved_at is None or self._begun_at is None:
            return True
        behind = sum(self._lag(partition) or 0 for partition in self._states)
        if behind > self._rules.poll_records:
            return now >= max(self._moved_at, self._begun_at) + _PUBLISH_BEHIND_S
        return now >= self._moved_at + POLL_TIMEOUT_S

    def publish(self) -> None:
        """Publish a snapshot of every partition that moved since its last one."""
        for partition, state in self._states.items():
            offset = state.report().next_offset
            if self._published.get(partition) != offset:
                publish_snapshot(state)
                self._published[partition] = offset
        if self._traces is not None:
            self._traces.published()

    def _keep_checkpoints(self) -> None:
        for partition, state in self._states.items():
            if is_due(state.folder, self._positions[partition], self._rules, now=system_clock()):
                write_checkpoint(state)

    def _note_offsets(self) -> None:
        offsets = {partition: self._positions[partition] for partition in self._states}
        self._source.note_offsets({one: offset for one, offset in offsets.items() if self._noted.get(one) != offset})
        self._noted = offsets

    def progress(self) -> list[PartitionProgress]:
        """Where every owned partition stands, by partition."""
        answers = self.silent_since is None
        all_progress = []
        for partition, state in sorted(self._states.items()):
            report, lag = state.report(), self._lag(partition)
            held_s = self._watch.open_transaction_s(partition) if lag else None
            all_progress.append(PartitionProgress(report, lag, answers, self._publishing(report), held_s))
        return all_progress

    @property
    def caught_up(self) -> bool:
        """Whether every partition is; see `PartitionProgress`."""
        return all(progress.caught_up for progress in self.progress())

    def close(self) -> None:
        """Release stores and connections; what was consumed is durable already."""
        self._collection.end()
        self._note_offsets()
        for state in self._states.values():
            if is_shared(state.folder):  # whoever goes on elsewhere has nothing to replay
                with contextlib.suppress(WeftError):
                    write_checkpoint(state)
            state.close()
        self._source.close()
        if self._dead_letters is not None:
            self._dead_letters.close()

    def _publishing(self, report: PartitionReport) -> bool:
        republisher = self._dead_letters
        return bool(report.dead_letters_waiting) and republisher is not None and republisher.refusal is None

    def _lag(self, partition: int) -> int | None:
        highwater = self._source.highwater(partition)
        return None if highwater is None else max(0, highwater - self._positions[partition])


def keep_up(
    updater: Updater,  # opened. It keeps since when the broker is silent, so that patience runs on from call to call
    *,
    until: Callable[[Updater], bool],  # asked after every step whether to stop
    monotonic: Monotonic,  # paces publishing and patience
    pause: Callable[[float], None],  # sleeps
    rules: FeedbackSettings,  # for pauses
    unreachable_s: float | None = None,
) -> None:
    """Step until told to stop; a broker that is away is waited for."""
    while True:
        began = monotonic()
        try:
            updater.step(began)
            updater.silent_since = None
        except BrokerUnavailableError as error:
            if updater.silent_since is None:
                updater.silent_since = began
                _log.warning("%s; asking again every %g s", error, rules.retry_s)
            if unreachable_s is not None and monotonic() - updater.silent_since > unreachable_s:
                raise
            pause(rules.retry_s)
        if until(updater):
            updater.publish()
            return
