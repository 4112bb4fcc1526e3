"""FBK-5, FBK-14: a log that lost what was not read, and a topic that is gone, as an operator meets them."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.apache_kafka import ApacheKafka
from tests.support.feedback_events import session
from tests.support.kafka_topics import Topics
from weft.cli.commands.update import update
from weft.cli.console.options import run_job
from weft.cli.main import main
from weft.domain.errors import BrokerUnavailableError, WrongLogError
from weft.domain.events import AnyEvent
from weft.feedback.events.codec import encode
from weft.feedback.run.actors import Task, open_updater
from weft.feedback.run.updater import Updater
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import KafkaPublisher, create_topic
from weft.settings import Settings, load_settings


class Run(NamedTuple):
    """What a job that has ended left."""

    code: int
    out: str
    err: str


@dataclass
class Place:
    """A store, and a topic of its own at a broker."""

    bootstrap: str
    store: Path
    topic: str
    capsys: pytest.CaptureFixture[str]

    @property
    def assignments(self) -> list[str]:
        own = {"topic": self.topic, "dead_letter_topic": f"{self.topic}.dlq", "partitions": 1}
        return [f"kafka.bootstrap={self.bootstrap}", *(f"feedback.{name}={value}" for name, value in own.items())]

    @property
    def settings(self) -> Settings:
        return load_settings([], self.assignments, environment={})

    @property
    def task(self) -> Task:
        return Task(self.store, self.settings.kafka, self.settings.feedback, unreachable_s=None)

    @property
    def topics(self) -> Topics:
        return Topics(self.bootstrap)

    def make(self) -> None:
        create_topic(self.settings.kafka, self.topic, partitions=1, replication=None)

    def produce(self, events: Sequence[AnyEvent]) -> None:
        publisher = KafkaPublisher(self.settings.kafka, self.topic)
        for event in events:
            publisher.send(b"s1", encode(event))
        publisher.close()

    def updated(self, *more: str) -> Run:
        """The job as users run it, until it has caught up."""
        assigned = [part for assignment in self.assignments for part in ("--set", assignment)]
        command = ["--store", str(self.store), "--local", "--until-caught-up", "--json", *assigned, *more]
        code = run_job(update, command)
        return Run(code, *self.capsys.readouterr())


@pytest.fixture
def apache(apache_kafka: ApacheKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(apache_kafka.bootstrap, tmp_path, f"feedback-{uuid.uuid4().hex[:8]}", capsys)


@pytest.fixture(params=["embedded", "apache"])
def place(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Place]:
    """At either broker."""
    if request.param == "apache":
        yield request.getfixturevalue("apache")
        return
    with EmbeddedBroker() as broker:
        yield Place(broker.bootstrap, tmp_path, "weft.feedback", capsys)


def summary(run: Run) -> dict[str, Any]:
    assert run.code == 0, run.err
    facts: dict[str, Any] = json.loads(run.out.splitlines()[-1])
    assert facts["balanced"]
    return facts


def refused(run: Run) -> str:
    assert run.code == 1, run.err
    assert "Traceback" not in run.err
    return run.err.splitlines()[-1]


def events(name: str, count: int) -> list[AnyEvent]:
    now = round(time.time() * 1000)
    return [session(event_id=f"{name}{number}", ts=now) for number in range(count)]


def test_what_retention_deleted_unread_is_accepted_by_one_command(apache: Place) -> None:
    """FBK-14: the message names offsets, count and command; the command counts them for good, under a name."""
    apache.make()
    apache.produce(events("a", 5))
    assert summary(apache.updated())["consumed"] == 5
    apache.produce(events("b", 10))
    apache.topics.delete_records(apache.topic, before=12)
    said = refused(apache.updated())
    assert "partition 0: expected offset 5 next, found that the log starts at 12: 7 records were deleted" in said
    assert "`weft update --accept-loss`" in said
    facts = summary(apache.updated("--accept-loss"))
    assert (facts["consumed"], facts["lost"]) == (8, 7)
    (loss,) = facts["losses"]
    assert (loss["partition"], loss["offset"], loss["records"], loss["reason"]) == (0, 5, 7, "retention")
    assert loss["accepted_by"].endswith(f"@{os.uname().nodename}")
    assert abs(loss["accepted_ms"] / 1000 - time.time()) < 3600
    again = summary(apache.updated())
    assert (again["consumed"], again["lost"], again["losses"]) == (8, 7, [loss])
    assert main(["feedback", "status", "--store", str(apache.store)]) == 0
    assert loss["accepted_by"] in apache.capsys.readouterr().out


def test_a_topic_made_again_is_accepted_by_the_same_command(place: Place) -> None:
    """FBK-14: what producers send once more counts once, and what comes after is learned from."""
    place.make()
    place.produce(events("a", 5))
    assert summary(place.updated())["consumed"] == 5
    place.topics.delete(place.topic)
    await_absence(place)
    place.make()
    place.produce([*events("a", 2), *events("b", 4)])
    said = refused(place.updated())
    assert "expected topic id" in said
    assert "an unknown number of unread records" in said
    assert "`weft update --accept-loss`" in said
    facts = summary(place.updated("--accept-loss"))
    assert (facts["consumed"], facts["duplicate"], facts["applied"], facts["lost"]) == (11, 2, 9, 0)
    assert [(loss["offset"], loss["records"]) for loss in facts["losses"]] == [(5, 0)]
    place.produce(events("c", 3))
    assert summary(place.updated())["consumed"] == 14


def test_a_topic_that_is_gone_is_called_deleted_and_not_made_again(place: Place) -> None:
    """FBK-5: an empty topic in its place would look like one without events."""
    place.make()
    place.produce(events("a", 5))
    assert summary(place.updated())["consumed"] == 5
    place.topics.delete(place.topic)
    await_absence(place)
    for accepted in ([], ["--accept-loss"]):
        said = refused(place.updated(*accepted))
        assert f"expected topic {place.topic} (id " in said
        assert "found it deleted" in said
        assert place.bootstrap in said
    assert place.topic not in place.topics.names()


def test_a_new_store_has_its_topic_made(place: Place) -> None:
    """FBK-5: with as many copies as the broker makes by default."""
    assert summary(place.updated())["consumed"] == 0
    assert place.topics.replicas(place.topic) == [1]


def test_a_topic_deleted_under_a_running_updater_is_named(place: Place) -> None:
    """FBK-5, FBK-14: the broker answers, and is not called silent; on either one the process lives to say so."""
    place.make()
    place.produce(events("a", 5))
    updater = open_updater(place.task, [0])
    while sum(one.report.consumed for one in updater.progress()) < 5:
        updater.step(time.monotonic())
    place.topics.delete(place.topic)
    assert "found it deleted" in named(updater)
    updater.close()
    assert place.topic not in place.topics.names()


def test_a_producer_does_not_make_a_deleted_topic_again(apache: Place) -> None:
    """FBK-5: this broker makes topics that are asked for, with one partition."""
    apache.make()
    settings = apache.settings.kafka.model_copy(update={"request_timeout_ms": 1_500})
    publisher = KafkaPublisher(settings, apache.topic)
    assert publisher.deliver([(b"k", b"v")]) == [None]
    apache.topics.delete(apache.topic)
    await_absence(apache)
    (error,) = publisher.deliver([(b"k", b"v")])
    assert isinstance(error, BrokerUnavailableError)
    publisher.close()
    assert apache.topic not in apache.topics.names()


def named(updater: Updater) -> str:
    """What an updater ends with, after it asked again whatever a later try may cure."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            updater.step(time.monotonic())
        except BrokerUnavailableError as error:
            assert "expected the topic, found none" in str(error) or "Unknown topic" in str(error)  # noqa: PT017
        except WrongLogError as error:
            return str(error)
    pytest.fail("nothing was noticed within a minute")


def await_absence(place: Place) -> None:
    deadline = time.monotonic() + 30
    while place.topic in place.topics.names():
        assert time.monotonic() < deadline
        time.sleep(0.05)
