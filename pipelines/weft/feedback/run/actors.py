"""Updaters as Ray actors: the topic's partitions shared among them, each in one place at a time (FBK-4)."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from weft.catalog.catalog import Catalog
from weft.catalog.store_id import OnOtherHosts, StoreGuard
from weft.domain.errors import BrokerUnavailableError, ConfigurationError, ModelUnavailableError, StoreError
from weft.domain.events import Attribution
from weft.domain.ids import ContentHash, GenerationId
from weft.embedding.encoders.precision import pinned
from weft.embedding.settings import EmbeddingSettings
from weft.feedback.events.attributor import Attributor, texts_in
from weft.feedback.publish.dead_letters import Republisher
from weft.feedback.run.partitions import claimed, partition_folder, partitions_in, states_in
from weft.feedback.run.updater import Absence, PartitionProgress, Updater, keep_up
from weft.feedback.settings import AttributionSettings, FeedbackSettings
from weft.feedback.store.report import Acceptance, losses_in
from weft.indexes.chunk_store import ChunkStore
from weft.indexes.manifest import CHUNKS_FOLDER
from weft.runtime.extras import extras_named
from weft.runtime.kafka.log import FETCH_BYTES
from weft.runtime.kafka.reader import KafkaSource
from weft.runtime.kafka.writer import KafkaPublisher, create_topic
from weft.runtime.settings import ClusterSettings, KafkaSettings

# Responses that come over the log without an attribution: what they rest on, by texts of the live generation (FBK-9).


class LiveAttribution:
    """Attributes responses to contents of whatever generation is live; used by one thread."""

    def __init__(self, store: Path, rules: AttributionSettings, embedding: EmbeddingSettings) -> None:
        self._catalog = Catalog(store)
        self._rules = rules
        self._embedding = embedding
        self._live: GenerationId | None = None
        self._chunks: ChunkStore | None = None
        self._attributor: Attributor | None = None

    def __call__(self, contents: Sequence[ContentHash], response: str) -> Attribution | None:
        """What a response rests on among contents that it was given; None where nothing tells them apart."""
        texts = {} if (chunks := self._current()) is None else texts_in(chunks, contents)
        if not any(texts.values()):
            return None
        if self._attributor is None:
            self._attributor = self._loaded()
        return self._attributor.attribution(texts, response)

    def _current(self) -> ChunkStore | None:
        live = self._catalog.pointer().generation
        if live != self._live:
            if self._chunks is not None:
                self._chunks.close()
            self._live, self._chunks = live, None
            if live is not None:
                with contextlib.suppress(StoreError, OSError):  # who searches says what is wrong with it
                    self._chunks = ChunkStore(self._catalog.folder_of(live) / CHUNKS_FOLDER)
        return self._chunks

    def _loaded(self) -> Attributor:
        try:
            return Attributor.load(self._rules, pinned(self._embedding, self._catalog.precisions()))
        except (ModelUnavailableError, ConfigurationError) as error:
            _log.warning("responses are shared equally by their contents: %s", error)
            return Attributor(self._rules, None)


_log = logging.getLogger(__name__)

_TICK_EVERY_S = 3.0  # a job's own chores may read much of the store

Stop = Callable[[], bool]
OnProgress = Callable[[Sequence[PartitionProgress]], None]


@dataclass(frozen=True, slots=True)
class Task:
    """Everything an updater needs to know, wherever it runs."""

    store: Path
    kafka: KafkaSettings
    feedback: FeedbackSettings
    unreachable_s: float | None  # patience with a silent broker; None waits for ever
    embedding: EmbeddingSettings | None = None  # the encoder that responses are compared by; None compares none


class UpdaterActor:
    """One updater behind two calls that may be repeated safely: what was consumed is in its stores, not in here."""

    def __init__(self, task: Task, partitions: Sequence[int], guard: StoreGuard) -> None:
        self._task = task
        self._guard = guard
        self._partitions = list(partitions)
        self._updater: Updater | None = None
        self._silent_since: float | None = None  # before it could be opened
        self._absence = Absence()

    def advance(self, seconds: float) -> list[PartitionProgress]:
        """Keep up with the log for about that long, and say where the partitions stand."""
        if self._updater is None:
            self._guard()
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
                self._absence.raise_if_deleted(error, began, topic=rules.topic)
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

    def _stored(self) -> list[PartitionProgress]:
        """Where those partitions stand that have a store."""
        root, rules = self._task.store, self._task.feedback
        stored = sorted(set(self._partitions) & set(partitions_in(root)))
        try:
            return [PartitionProgress(state.report(), None, answers=False) for state in states_in(root, rules, stored)]
        except (StoreError, OSError):  # opening the updater restores it, or says why not
            return []

    def close(self) -> None:
        """Release stores and connections."""
        if self._updater is not None:
            self._updater.close()
            self._updater = None


class UpdaterGroup(Protocol):
    """Updaters that together own every partition."""

    def advance(self, seconds: float) -> list[PartitionProgress]:
        """All of them keep up for about that long; where every partition stands, by partition."""

    def close(self) -> None:
        """Release everything."""


class ActorUpdaterGroup:
    """`feedback.updaters` actors on Ray, partitions dealt out to them in turn; lost ones are made anew elsewhere."""

    def __init__(self, task: Task, partitions: int, guard: StoreGuard) -> None:
        from weft.runtime.ray.crew import Crew  # noqa: PLC0415

        updaters = min(task.feedback.updaters, partitions)
        self._crew = Crew(
            UpdaterActor, [(task, range(index, partitions, updaters), guard) for index in range(updaters)]
        )

    def advance(self, seconds: float) -> list[PartitionProgress]:
        """One round of all actors; without the partitions of those that do not answer."""
        all_progress = self._crew.ask("advance", seconds)
        return sorted((one for group in all_progress for one in group), key=lambda one: one.report.partition)

    def close(self) -> None:
        """Release the stores; the actors end with the last reference to them."""
        self._crew.close("close")


def open_updater(task: Task, partitions: Sequence[int]) -> Updater:
    """An updater of a Kafka topic, claimed and ready."""
    rules = task.feedback
    with contextlib.ExitStack() as undo:
        source = KafkaSource(task.kafka, rules.topic, max_poll_records=rules.poll_records)
        undo.callback(source.close)
        dead_letters = Republisher(lambda: _dead_letter_topic(task), rules, most_bytes=FETCH_BYTES)
        updater = Updater.open(
            source, task.store, partitions, rules, dead_letters=dead_letters, attribute=_attribution(task)
        )
        undo.pop_all()
        return updater


def _attribution(task: Task) -> LiveAttribution | None:
    rules = task.feedback.attribution
    return LiveAttribution(task.store, rules, task.embedding) if rules.encoder and task.embedding is not None else None


def _dead_letter_topic(task: Task) -> KafkaPublisher:
    topic = task.feedback.dead_letter_topic
    create_topic(task.kafka, topic, partitions=1, replication=task.feedback.replication, operation="Write")
    # An idempotent producer has done for good once a record is too large for its topic; here, twice does no harm.
    return KafkaPublisher(task.kafka.model_copy(update={"idempotent": False}), topic)


def _accept_losses(task: Task, acceptance: Acceptance) -> None:
    """Give up what the log lost before it was read, and count it (FBK-14)."""
    with contextlib.closing(_reader(task)) as source:
        facts = source.facts()
        for partition in partitions_in(task.store):
            folder, log_start = partition_folder(task.store, partition), source.log_start(partition)
            state = claimed(folder, partition, task.feedback, facts, log_start=log_start, acceptance=acceptance)
            with contextlib.closing(state):
                for loss in state.read(losses_in):
                    if loss.accepted_ms == acceptance.at_ms:
                        _log.warning("partition %d: %s", partition, loss)


def run_updaters(
    task: Task,  # what the updaters need
    *,
    cluster: ClusterSettings | None,  # where their actors run; None runs one updater in this process and thread
    until_caught_up: bool,
    stop: Stop = lambda: False,  # asked about once a second
    on_progress: OnProgress = lambda _: None,  # told where the partitions stand, all of them, about once a second
    on_tick: Callable[[], None] = lambda: None,  # A job's own chores, run about every three seconds and once at the end
    acceptance: Acceptance | None = None,
) -> list[PartitionProgress]:
    """Keep the evidence of every partition up with the log, making the topic where a new store has none."""
    rules = task.feedback
    guard = Catalog(task.store).claim(_nowhere if cluster is None else _joined(cluster))
    partitions = _await_topic(task, stop)
    if acceptance is not None:
        _accept_losses(task, acceptance)
    crew: UpdaterGroup = (
        UpdaterActor(task, range(partitions), guard) if cluster is None else ActorUpdaterGroup(task, partitions, guard)
    )
    tick_at = time.monotonic() + _TICK_EVERY_S
    try:
        while True:
            all_progress = crew.advance(rules.publish_every_s)
            complete = len(all_progress) == partitions
            if complete:
                on_progress(all_progress)
            if stop() or (until_caught_up and complete and all(_is_read(one, rules) for one in all_progress)):
                on_tick()
                return all_progress
            if time.monotonic() >= tick_at:
                on_tick()
                tick_at = time.monotonic() + _TICK_EVERY_S
    finally:
        crew.close()


def _nowhere(_: Callable[[], None]) -> None:
    """There is no other host."""


def _joined(cluster: ClusterSettings) -> OnOtherHosts:
    """Join the cluster; what runs a function on its other hosts."""
    # Only who asks for actors pays for Ray: an updater in this process starts in a fraction of a second.
    with extras_named():
        from weft.runtime.ray.cluster import connect  # noqa: PLC0415
        from weft.runtime.ray.stages import run_on_other_hosts  # noqa: PLC0415

    connect(cluster)
    return run_on_other_hosts


def _is_read(progress: PartitionProgress, rules: FeedbackSettings) -> bool:
    """Whether a partition holds no more that can be read: a transaction is waited for as a silent broker is."""
    held_up = (progress.open_transaction_s or 0.0) > rules.unreachable_s
    return progress.caught_up or (held_up and not progress.publishing)


def _await_topic(task: Task, stop: Stop) -> int:
    """How many partitions the topic has; it is made where it is missing and no store is bound to it."""
    rules, started, warned = task.feedback, time.monotonic(), False
    absence = Absence()
    bound = bool(partitions_in(task.store))
    while True:
        began = time.monotonic()
        try:
            if not bound:
                copies = rules.replication
                create_topic(task.kafka, rules.topic, partitions=rules.partitions, replication=copies, operation="Read")
            with contextlib.closing(_reader(task)) as source:
                return source.facts().partitions
        except BrokerUnavailableError as error:
            if bound:
                absence.raise_if_deleted(error, began, topic=rules.topic, topic_id=_bound_id(task))
            if stop() or (task.unreachable_s is not None and time.monotonic() - started > task.unreachable_s):
                raise
            if not warned:
                _log.warning("%s; asking again every %g s", error, rules.retry_s)
                warned = True
            time.sleep(rules.retry_s)


def _reader(task: Task) -> KafkaSource:
    return KafkaSource(task.kafka, task.feedback.topic, max_poll_records=1)


def _bound_id(task: Task) -> str:
    """Identity of the topic that a store is bound to, empty where no partition can be read."""
    with contextlib.suppress(StoreError):
        return next((state.report().topic_id for state in states_in(task.store, task.feedback)), "")
    return ""
