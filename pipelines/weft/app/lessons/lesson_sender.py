"""Saying something of lessons to the topic; where nothing was ever said, it makes what is missing (LES-10)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weft.app.producer import acknowledged_producer
from weft.domain.errors import BrokerUnavailableError, StoreError
from weft.domain.events import LessonEvent
from weft.domain.ids import principal_fingerprint
from weft.feedback.events.producer import FeedbackProducer
from weft.feedback.fold.lessons import lesson_keys
from weft.feedback.run.partitions import partitions_in
from weft.feedback.settings import MS
from weft.learning.evidence import MICRO, Evidence, day_of
from weft.learning.lessons.beliefs import LessonBelief, LessonBeliefs, read_lessons
from weft.runtime.clock import system_clock
from weft.runtime.kafka.writer import create_topic
from weft.runtime.process import speaker_of
from weft.settings import Settings


@dataclass(frozen=True, slots=True)
class LessonSender:
    """Who says something, and by which producer."""

    producer: FeedbackProducer
    principal: str
    session: str | None

    def session_of(self, lesson_id: str) -> str:
        """The session that is named, or else one of the lesson's own: what is said of it stays in order."""
        return self.session or f"lesson-{lesson_id}"


@contextmanager
def lesson_sender(settings: Settings, principal: str | None, session: str | None) -> Iterator[LessonSender]:
    """Whoever speaks; what was said is acknowledged when the block is left."""
    with acknowledged_producer(settings) as producer:
        yield LessonSender(producer, speaker_of(principal), session)


def lesson_of(beliefs: LessonBeliefs, name: str) -> LessonBelief:
    """The lesson whose id begins so.

    Raises:
        StoreError: There is none, or several.
    """
    matching = [each for each in beliefs.ids if each.startswith(name)]
    if name in matching:
        matching = [name]
    if len(matching) != 1 or (belief := beliefs.of(matching[0])) is None:
        raise StoreError(
            f"expected one lesson whose id begins with {name!r}, found {len(matching)}: `weft lessons list` names them;"
            " what was just said is there within a second or two, while the updaters run"
        )
    return belief


def after(settings: Settings, evidence: Evidence, event: LessonEvent) -> LessonBeliefs:
    """What will be believed once the updaters have read an event."""
    at_ms, priors = round(system_clock() * MS), settings.priors
    keys = lesson_keys(event, at_ms, principal=principal_fingerprint(event.principal))
    facts = evidence + Evidence(usage=dict.fromkeys(keys, MICRO))
    level, cap = priors.interval.level, priors.robustness.effective_cap
    return read_lessons(priors.lessons, facts, day_of(at_ms / MS), effective_cap=cap, level=level)


@dataclass(frozen=True, slots=True)
class FirstWord:
    """What was made for the first thing that is said, and what has to run before agents are told it."""

    made: Path | None  # the folder of a new store
    updaters: str  # the command that runs updaters


def ensure_store_and_topic(settings: Settings) -> FirstWord | None:
    """What is said first of all finds a store and a topic: where no updater has begun, both are made if missing.

    Raises:
        BrokerUnavailableError: No broker answers; the message says how one is started to try this out.
    """
    root, rules = Path(settings.storage.root), settings.feedback
    if partitions_in(root):
        return None
    try:
        create_topic(
            settings.kafka, rules.topic, partitions=rules.partitions, replication=rules.replication, operation="Write"
        )
    except BrokerUnavailableError as error:
        raise BrokerUnavailableError(
            f"{error} To try it out, run `weft broker` in another terminal and say it again; "
            "name a broker of yours with --bootstrap"
        ) from error
    made = None if root.is_dir() else root
    root.mkdir(parents=True, exist_ok=True)
    at = f"--bootstrap {shlex.quote(settings.kafka.bootstrap)}"
    return FirstWord(made, f"weft update --local --store {shlex.quote(str(root))} {at}")
