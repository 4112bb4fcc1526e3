"""FBK-3: whatever is wrong with the dead-letter topic, events are applied and snapshots published meanwhile."""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaConsumer, TopicPartition

from tests.support.apache_kafka import ApacheKafka, MissingKafkaError
from tests.support.feedback_events import session
from tests.support.kafka_topics import Topics
from weft.catalog.overlays import OFFSET_KEY, metadata_of
from weft.cli.commands.update import update
from weft.cli.console.options import run_job
from weft.feedback.events.codec import encode
from weft.feedback.publish.snapshot import NAME
from weft.feedback.run.actors import Task, open_updater
from weft.feedback.run.partitions import partition_folder
from weft.feedback.run.updater import Updater
from weft.runtime.kafka.writer import KafkaPublisher, create_topic
from weft.settings import Settings, load_settings

LARGE = b"\xff" * 4_000


@dataclass
class Place:
    """A store, and topics of its own at a broker."""

    bootstrap: str
    store: Path
    topic: str
    capsys: pytest.CaptureFixture[str]

    @property
    def dead_letter_topic(self) -> str:
        return f"{self.topic}.dlq"

    @property
    def assignments(self) -> list[str]:
        own = {"topic": self.topic, "dead_letter_topic": self.dead_letter_topic, "partitions": 1}
        # A leader that is gone is given up soon.
        patience = ["kafka.request_timeout_ms=2000", "kafka.connect_timeout_ms=5000"]
        return [
            f"kafka.bootstrap={self.bootstrap}",
            *(f"feedback.{name}={value}" for name, value in own.items()),
            *patience,
        ]

    @property
    def settings(self) -> Settings:
        return load_settings([], self.assignments, environment={})

    @property
    def topics(self) -> Topics:
        return Topics(self.bootstrap)

    def produce(self, *values: bytes) -> None:
        create_topic(self.settings.kafka, self.topic, partitions=1, replication=None)
        publisher = KafkaPublisher(self.settings.kafka, self.topic)
        for value in values:
            publisher.send(b"s1", value)
        publisher.close()

    def updated(self) -> dict[str, Any]:
        """The job as users run it, until it has caught up; what it says."""
        assigned = [part for assignment in self.assignments for part in ("--set", assignment)]
        code = run_job(update, ["--store", str(self.store), "--local", "--until-caught-up", "--json", *assigned])
        out, err = self.capsys.readouterr()
        assert code == 0, err
        facts: dict[str, Any] = json.loads(out.splitlines()[-1])
        assert facts["balanced"]
        return facts

    def opened(self) -> Updater:
        settings = self.settings
        return open_updater(Task(self.store, settings.kafka, settings.feedback, unreachable_s=None), [0])

    def dead_letters(self) -> dict[int, dict[str, Any]]:
        """What the topic holds, by offset: each at least once."""
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=None, enable_auto_commit=False)
        place = TopicPartition(self.dead_letter_topic, 0)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        (end,) = consumer.end_offsets([place]).values()
        letters: dict[int, dict[str, Any]] = {}
        while consumer.position(place) < end:
            some = [json.loads(record.value) for record in consumer.poll(500).get(place, [])]
            letters |= {letter["offset"]: letter for letter in some}
        consumer.close()
        return letters


@pytest.fixture
def place(apache_kafka: ApacheKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(apache_kafka.bootstrap, tmp_path, f"feedback-{uuid.uuid4().hex[:8]}", capsys)


def event(name: str) -> bytes:
    return encode(session(event_id=name, ts=round(time.time() * 1000)))


def counts(facts: dict[str, Any]) -> tuple[int, int, int]:
    return facts["applied"], facts["dead_lettered"], facts["dead_letters_waiting"]


def test_a_missing_dead_letter_topic_is_made(place: Place) -> None:
    """FBK-3: with one partition, and as many copies as the broker makes by default."""
    place.produce(event("a"), b"{", event("b"))
    assert counts(place.updated()) == (2, 1, 0)
    assert place.topics.replicas(place.dead_letter_topic) == [1]
    assert {offset: letter["reason"] for offset, letter in place.dead_letters().items()} == {1: "undecodable"}


def test_what_is_too_large_goes_without_its_bytes(place: Place) -> None:
    """FBK-3: those behind it come through."""
    place.topics.make(place.dead_letter_topic, config={"max.message.bytes": "1500"})
    place.produce(b"{", LARGE, b"}", event("a"))
    assert counts(place.updated()) == (1, 3, 0)
    letters = place.dead_letters()
    assert {offset: letter["original"] for offset, letter in letters.items()} == {0: "ew==", 1: None, 2: "fQ=="}
    assert (letters[1]["size"], letters[1]["reason"]) == (len(LARGE), "undecodable")


def test_dead_letters_wait_for_a_topic_that_takes_none_and_are_published_later(place: Place) -> None:
    """FBK-3: the job ends, and counts them as waiting; the next one publishes them."""
    place.topics.make(place.dead_letter_topic, config={"max.message.bytes": "100"})
    place.produce(b"{", event("a"), LARGE, event("b"))
    facts = place.updated()
    assert counts(facts) == (2, 2, 2)
    assert int(metadata_of(partition_folder(place.store, 0) / NAME)[OFFSET_KEY]) == 4
    place.topics.set(place.dead_letter_topic, "max.message.bytes", "100000")
    assert counts(place.updated()) == (2, 2, 0)
    assert set(place.dead_letters()) == {0, 2}


@pytest.fixture
def guarded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Place]:
    """At a broker that obeys ACLs."""
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = {"authorizer.class.name": authorizer, "allow.everyone.if.no.acl.found": "true"}
    try:
        broker = ApacheKafka(tmp_path / "kafka", settings=settings)
    except MissingKafkaError as missing:
        pytest.skip(str(missing))
    with broker:
        (tmp_path / "store").mkdir()
        yield Place(broker.bootstrap, tmp_path / "store", "weft.feedback", capsys)


def test_dead_letters_wait_for_a_permission(guarded: Place, caplog: pytest.LogCaptureFixture) -> None:
    """FBK-3: one warning names what is missing; a running updater publishes once it is granted."""
    denial = ("*", AclOperation.ALL, AclPermissionType.DENY)
    resource = (ResourceType.TOPIC, guarded.dead_letter_topic, ResourcePatternType.LITERAL)
    admin = AdminClient({"bootstrap.servers": guarded.bootstrap})
    (denied,) = admin.create_acls([AclBinding(*resource, "User:ANONYMOUS", *denial)]).values()
    denied.result(30)
    guarded.produce(b"{", event("a"))
    assert counts(guarded.updated()) == (1, 1, 1)
    (said,) = [record.getMessage() for record in caplog.records if "dead letters wait" in record.getMessage()]
    assert "grant Describe and Write on the topic, and Create where it is missing" in said
    updater = guarded.opened()
    guarded.produce(event("b"))
    while updater.progress()[0].report.applied < 2 or not updater.caught_up:
        updater.step(time.monotonic())
    assert updater.progress()[0].report.dead_letters_waiting == 1
    (granted,) = admin.delete_acls([AclBindingFilter(*resource, None, None, *denial[1:])]).values()
    granted.result(30)
    while updater.progress()[0].report.dead_letters_waiting:
        updater.step(time.monotonic())
    updater.close()
    assert set(guarded.dead_letters()) == {0}


@pytest.mark.slow
def test_dead_letters_wait_for_the_only_broker_that_holds_their_topic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """FBK-3: events are applied at the pace of before while it is away; prints both, and asserts neither."""
    try:
        cluster = ApacheKafka(tmp_path / "kafka", brokers=3)
    except MissingKafkaError as missing:
        pytest.skip(str(missing))
    (tmp_path / "store").mkdir()
    with cluster:
        place = Place(cluster.bootstrap, tmp_path / "store", "weft.feedback", capsys)
        place.topics.make_at(place.topic, broker=1)
        place.topics.make_at(place.dead_letter_topic, broker=3)
        paces = [paced(place, "there")]
        assert len(place.dead_letters()) == 100
        cluster.kill(3)
        paces.append(paced(place, "away"))
        updater = place.opened()
        assert updater.progress()[0].report.dead_letters_waiting == 100
        cluster.start(3)
        deadline = time.monotonic() + 120
        while updater.progress()[0].report.dead_letters_waiting and time.monotonic() < deadline:
            updater.step(time.monotonic())
        updater.close()
        assert len(place.dead_letters()) == 200
    sys.stderr.write(f"events per second with the dead-letter topic there, then away: {paces}\n")


def paced(place: Place, name: str, *, count: int = 50_000) -> int:
    """Events per second of an updater that meets a dead letter among every 500."""
    now = round(time.time() * 1000)
    values = [encode(session(event_id=f"{name}{number}", ts=now)) for number in range(count)]
    place.produce(*(b"{" if number % 500 == 0 else value for number, value in enumerate(values)))
    updater = place.opened()
    before = updater.progress()[0].report
    began = time.monotonic()
    while (report := updater.progress()[0].report).consumed < before.consumed + count:
        updater.step(time.monotonic())
    seconds = time.monotonic() - began
    while not updater.caught_up:
        updater.step(time.monotonic())
    updater.close()
    assert report.applied - before.applied == count - count // 500
    return round(count / seconds)
