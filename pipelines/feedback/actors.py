"""Updaters as Ray actors: the topic's partitions shared among them, each in one place at a time (FBK-4).

The same loop runs in this process with `local=True`: tests, demonstrations and single machines need no cluster.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pipelines.domain.errors import BrokerUnavailableError, StoreError
from pipelines.feedback.partitions import partitions_in, states_in
from pipelines.feedback.settings import FeedbackSettings
from pipelines.feedback.updater import Progress, Updater, keep_up
from pipelines.learning.binning import Bins
from pipelines.runtime.kafka import KafkaPublisher, create_topic
from pipelines.runtime.kafka_log import KafkaSource
from pipelines.runtime.settings import ClusterSettings, KafkaSettings

_log = logging.getLogger(__name__)

Stop = Callable[[], bool]
OnProgress = Callable[[Sequence[Progress]], None]


@dataclass(frozen=True, slots=True)
class Task:
    """Everything an updater needs to know, wherever it runs.

    Attributes:
        bins: How finely evidence is kept.
        unreachable_s: Patience with a silent broker; None waits for ever.
    """

    store: Path
    kafka: KafkaSettings
    feedback: FeedbackSettings
    bins: Bins
    unreachable_s: float | None


class UpdaterActor:
    """One updater behind two calls that may be repeated safely: what was consumed is in its stores, not in here."""

    def __init__(self, task: Task, partitions: Sequence[int]) -> None:
        self._task = task
        self._partitions = list(partitions)
        self._updater: Updater | None = None
        self._silent_since: float | None = None  # before it could be opened

    def advance(self, seconds: float) -> list[Progress]:
        """Keep up with the log for about that long, and say where the partitions stand.

        Where the broker is away before the updater could be opened, as when an actor was restarted meanwhile, it is
        asked again with the same patience as later on; so long the partitions stand where their stores say.

        Raises:
            BrokerUnavailableError: Patience ran out.
            WrongLogError: A store belongs to another log.
        """
        deadline = time.monotonic() + seconds
        updater = self._updater = self._updater or self._opened(deadline)
        if updater is None:
            return self._stored()
        keep_up(
            updater,
            until=lambda _: time.monotonic() >= deadline,
            monotonic=time.monotonic,
            pause=time.sleep,
            rules=self._task.feedback,
            unreachable_s=self._task.unreachable_s,
        )
        return updater.progress()

    def _opened(self, deadline: float) -> Updater | None:
        """The updater once the broker answers; None where it did not until then."""
        rules, patience = self._task.feedback, self._task.unreachable_s
        while True:
            began = time.monotonic()
            try:
                updater = open_updater(self._task, self._partitions)
            except BrokerUnavailableError as error:
                if self._silent_since is None:
                    self._silent_since = began
                    _log.warning(
                        "partitions %s cannot be claimed yet: %s; asking again every %g s",
                        self._partitions,
                        error,
                        rules.retry_s,
                    )
                if patience is not None and time.monotonic() - self._silent_since > patience:
                    raise
            else:
                if self._silent_since is not None:
                    _log.info("partitions %s are claimed: the broker answers again", self._partitions)
                self._silent_since = None
                return updater
            time.sleep(rules.retry_s)
            if time.monotonic() >= deadline:
                return None

    def _stored(self) -> list[Progress]:
        """Where those partitions stand that have a store."""
        root, rules = self._task.store, self._task.feedback
        known = sorted(set(self._partitions) & set(partitions_in(root)))
        try:
            return [Progress(state.report(), None, answers=False) for state in states_in(root, rules, known)]
        except StoreError:  # opening the updater restores it, or says why not
            return []

    def close(self) -> None:
        """Release stores and connections."""
        if self._updater is not None:
            self._updater.close()
            self._updater = None


class Crew(Protocol):
    """Updaters that together own every partition."""

    def advance(self, seconds: float) -> list[Progress]:
        """All of them keep up for about that long; where every partition stands, by partition.

        One is left out whose updater could not be opened yet, and that has no store.
        """

    def close(self) -> None:
        """Release everything."""


class ActorCrew:
    """`feedback.updaters` actors on Ray, partitions dealt out to them in turn; Ray restarts those that die."""

    def __init__(self, task: Task, partitions: int, cluster: ClusterSettings) -> None:
        # Only who asks for actors pays for Ray: an updater in this process starts in a fraction of a second.
        from pipelines.runtime import cluster as ray_cluster  # noqa: PLC0415

        self._cluster = ray_cluster
        ray_cluster.connect(cluster)
        updaters = min(task.feedback.updaters, partitions)
        self._actors: list[Any] = [
            ray_cluster.start_actor(
                UpdaterActor, task, range(index, partitions, updaters), num_cpus=0, max_restarts=-1, max_task_retries=-1
            )
            for index in range(updaters)
        ]

    def advance(self, seconds: float) -> list[Progress]:
        """One call to every actor at once."""
        standings = self._cluster.ask_all(self._actors, "advance", seconds)
        return sorted((one for crew in standings for one in crew), key=lambda one: one.report.partition)

    def close(self) -> None:
        """Release the stores; the actors end with the last reference to them."""
        self._cluster.ask_all(self._actors, "close")
        self._actors.clear()


def open_updater(task: Task, partitions: Sequence[int]) -> Updater:
    """An updater of a Kafka topic, claimed and ready.

    Raises:
        BrokerUnavailableError: Nobody answered within the time a connection may take.
        WrongLogError: A store belongs to another log.
    """
    rules = task.feedback
    with contextlib.ExitStack() as undo:
        source = KafkaSource(task.kafka, rules.topic, max_poll_records=rules.poll_records)
        undo.callback(source.close)
        dead_letters = KafkaPublisher(task.kafka, rules.dead_letter_topic)
        undo.callback(dead_letters.close)
        updater = Updater.open(source, task.store, partitions, rules, task.bins, dead_letters=dead_letters)
        undo.pop_all()
        return updater


def run_updaters(
    task: Task,
    *,
    cluster: ClusterSettings | None,
    until_caught_up: bool,
    stop: Stop = lambda: False,
    on_progress: OnProgress = lambda _: None,
    on_tick: Callable[[], None] = lambda: None,
) -> list[Progress]:
    """Keep the evidence of every partition up with the log, making the topic where it is missing.

    Args:
        task: What the updaters need.
        cluster: Where their actors run; None runs one updater in this process and thread.
        until_caught_up: Return when everything that the log held has been consumed, except what lies behind a
            transaction that stays open for `unreachable_s`; otherwise run until `stop`.
        stop: Asked about once a second.
        on_progress: Told where the partitions stand, all of them, about once a second.
        on_tick: A job's own chores, run about every `tick_every_s` seconds and once at the end.

    Returns:
        Where every partition stood last.
    """
    rules = task.feedback
    partitions = _await_topic(task, stop)
    crew: Crew = UpdaterActor(task, range(partitions)) if cluster is None else ActorCrew(task, partitions, cluster)
    tick_at = time.monotonic() + rules.tick_every_s
    try:
        while True:
            standings = crew.advance(rules.publish_every_s)
            complete = len(standings) == partitions
            if complete:
                on_progress(standings)
            if stop() or (until_caught_up and complete and all(_is_read(one, rules) for one in standings)):
                on_tick()
                return standings
            if time.monotonic() >= tick_at:
                on_tick()
                tick_at = time.monotonic() + rules.tick_every_s
    finally:
        crew.close()


def _is_read(standing: Progress, rules: FeedbackSettings) -> bool:
    """Whether a partition holds no more that can be read: a transaction is waited for as a silent broker is."""
    return standing.lag == 0 or (standing.open_transaction_s or 0.0) > rules.unreachable_s


def _await_topic(task: Task, stop: Stop) -> int:
    """Make the topic where it is missing; how many partitions it has."""
    rules, started, told = task.feedback, time.monotonic(), False
    while True:
        try:
            copies = rules.replication
            create_topic(task.kafka, rules.topic, partitions=rules.partitions, replication=copies, operation="Read")
            create_topic(task.kafka, rules.dead_letter_topic, partitions=1, replication=copies, operation="Write")
            source = KafkaSource(task.kafka, rules.topic, max_poll_records=1)
            try:
                return source.facts().partitions
            finally:
                source.close()
        except BrokerUnavailableError as error:
            if stop() or (task.unreachable_s is not None and time.monotonic() - started > task.unreachable_s):
                raise
            if not told:
                _log.warning("%s; asking again every %g s", error, rules.retry_s)
                told = True
            time.sleep(rules.retry_s)
