"""An updater: partitions it owns, and the loop that keeps their evidence up with the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pipelines.domain.errors import BrokerUnavailableError
from pipelines.feedback.dead_letters import republish
from pipelines.feedback.pipeline import advance
from pipelines.feedback.producer import Publisher
from pipelines.feedback.settings import FeedbackSettings
from pipelines.feedback.snapshot import publish_snapshot
from pipelines.feedback.source import FeedbackSource
from pipelines.feedback.state import PartitionReport, PartitionState
from pipelines.learning.binning import Bins

_log = logging.getLogger(__name__)

UPDATERS = "updaters"
"""Folder of a store with one folder per partition, named by its number."""

Monotonic = Callable[[], float]
"""Seconds of a clock that never goes back: paces the loop, never reaches the state."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where one partition stands.

    Attributes:
        lag: Records in the log that were not consumed yet; None before the broker said so.
    """

    report: PartitionReport
    lag: int | None


class Updater:
    """Owns partitions of one log, from `open` to `close`; one thread calls it."""

    def __init__(
        self,
        source: FeedbackSource,
        states: Mapping[int, PartitionState],
        rules: FeedbackSettings,
        bins: Bins,
        *,
        dead_letters: Publisher | None = None,
    ) -> None:
        self._source = source
        self._states = dict(states)
        self._rules = rules
        self._bins = bins
        self._dead_letters = dead_letters
        self._published: dict[int, int] = {}
        self._publish_at = float("-inf")

    @classmethod
    def open(
        cls,
        source: FeedbackSource,
        store: Path,
        partitions: Sequence[int],
        rules: FeedbackSettings,
        bins: Bins,
        *,
        dead_letters: Publisher | None = None,
    ) -> Self:
        """Claim partitions, whoever held them, and read on from their stored offsets.

        Raises:
            WrongLogError: A store belongs to another log; nothing was applied.
            BrokerUnavailableError: The broker does not answer.
        """
        states: dict[int, PartitionState] = {}
        try:
            facts = source.facts()
            source.assign(partitions)
            for partition in partitions:
                states[partition] = PartitionState(partition_folder(store, partition), partition, rules)
                source.seek(partition, states[partition].claim(facts, log_start=source.log_start(partition)))
        except BaseException:
            for state in states.values():
                state.close()
            raise
        return cls(source, states, rules, bins, dead_letters=dead_letters)

    def step(self, now: float) -> int:
        """Consume one poll's worth, and publish what changed once `publish_every_s` has passed.

        Args:
            now: Seconds of a monotonic clock.

        Returns:
            How many records were consumed.

        Raises:
            BrokerUnavailableError: Ask again later; nothing was lost.
            FencedError: Another updater owns one of the partitions.
            WrongLogError: The log is not the one that the stores belong to.
        """
        consumed = advance(self._source, self._states, self._rules, self._bins)
        if now >= self._publish_at:
            self.publish()
            self._publish_at = now + self._rules.publish_every_s
        return consumed

    def publish(self) -> None:
        """Publish a snapshot of every partition that moved since its last one."""
        for partition, state in self._states.items():
            offset = state.report().next_offset
            if self._published.get(partition) != offset:
                publish_snapshot(state)
                self._tell_dead_letters(state)
                self._published[partition] = offset

    def progress(self) -> list[Progress]:
        """Where every owned partition stands, by partition."""
        return [Progress(state.report(), self._lag(partition)) for partition, state in sorted(self._states.items())]

    @property
    def caught_up(self) -> bool:
        """Whether everything that the log was known to hold has been consumed."""
        return all(standing.lag == 0 for standing in self.progress())

    def close(self) -> None:
        """Release stores and connections; what was consumed is durable already."""
        for state in self._states.values():
            state.close()
        self._source.close()
        if self._dead_letters is not None:
            self._dead_letters.close()

    def _tell_dead_letters(self, state: PartitionState) -> None:
        if self._dead_letters is not None:
            while republish(state, self._dead_letters, at_most=self._rules.poll_records):
                pass

    def _lag(self, partition: int) -> int | None:
        highwater = self._source.highwater(partition)
        return None if highwater is None else max(0, highwater - self._states[partition].report().next_offset)


def partition_folder(store: Path, partition: int) -> Path:
    """Where a partition's state and snapshot lie below a store's root."""
    return store / UPDATERS / str(partition)


def keep_up(
    updater: Updater,
    *,
    until: Callable[[Updater], bool],
    monotonic: Monotonic,
    pause: Callable[[float], None],
    rules: FeedbackSettings,
    unreachable_s: float | None = None,
) -> None:
    """Step until told to stop; a broker that is away is waited for.

    Args:
        updater: Opened.
        until: Asked after every step whether to stop.
        monotonic: Paces publishing and patience.
        pause: Sleeps.
        rules: For pauses.
        unreachable_s: Patience with a broker that does not answer; None waits for ever.

    Raises:
        BrokerUnavailableError: Patience ran out.
    """
    answered = monotonic()
    while True:
        try:
            updater.step(monotonic())
            answered = monotonic()
        except BrokerUnavailableError as error:
            if unreachable_s is not None and monotonic() - answered > unreachable_s:
                raise
            _log.warning("%s; asking again in %g s", error, rules.retry_s)
            pause(rules.retry_s)
        if until(updater):
            updater.publish()
            return
