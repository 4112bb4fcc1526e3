"""FBK-5: a log that is no longer the one that a store belongs to is named within five seconds.

Against a real broker where it can get into that state: a topic made again, with as many or other partitions, and a log
shorter than the store remembers. It has no retention, so a log that lost its beginning is a fake's, as are partitions
added to a topic in place, and holes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.feedback_events import records, rules, session
from tests.support.feedback_source import FakeLog, FakeSource
from weft.domain.errors import BrokerUnavailableError, WrongLogError
from weft.feedback.events.codec import encode
from weft.feedback.run.actors import Task, open_updater
from weft.feedback.run.updater import Updater
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.reader import KafkaSource
from weft.runtime.kafka.writer import KafkaPublisher, create_topic
from weft.settings import Settings, load_settings

POLLS = 50


def settings_at(bootstrap: str) -> Settings:
    return load_settings([], [f"kafka.bootstrap={bootstrap}"], environment={})


def make_topic(settings: Settings, partitions: int, events: int) -> None:
    rules = settings.feedback
    create_topic(settings.kafka, rules.topic, partitions=partitions, replication=1)
    create_topic(settings.kafka, rules.dead_letter_topic, partitions=1, replication=1)
    publisher = KafkaPublisher(settings.kafka, rules.topic)
    for number in range(events):
        publisher.send(b"s1", encode(session(event_id=str(number))))
    publisher.flush()
    publisher.close()


def opened(settings: Settings, store: Path, partitions: int) -> Updater:
    task = Task(store, settings.kafka, settings.feedback, unreachable_s=None)
    return open_updater(task, range(partitions))


def said_of_the_wrong_log(step: Callable[[], object]) -> str:
    """Step, as the loop does, until the wrong log is noticed; what is said about it."""
    while True:
        try:
            step()
        except BrokerUnavailableError:
            time.sleep(0.05)
        except WrongLogError as error:
            return str(error)


@pytest.mark.parametrize("partitions", [2, 3])
def test_a_topic_made_again_is_named_while_it_is_empty(tmp_path: Path, partitions: int) -> None:
    """FBK-5: nothing would ever be delivered before the new log is longer than the old one was."""
    with EmbeddedBroker() as broker:
        settings = settings_at(broker.bootstrap)
        make_topic(settings, partitions=2, events=20)
        updater = opened(settings, tmp_path, 2)
        while sum(one.report.consumed for one in updater.progress()) < 20:
            updater.step(time.monotonic())
    with EmbeddedBroker(port=int(broker.bootstrap.rpartition(":")[2])):
        make_topic(settings, partitions=partitions, events=0)
        said = said_of_the_wrong_log(lambda: updater.step(time.monotonic()))
        assert "expected topic id" in said
        assert sum(one.report.consumed for one in updater.progress()) == 20
        updater.close()
        with pytest.raises(WrongLogError, match="expected topic id"):
            opened(settings, tmp_path, 2)


def test_a_log_shorter_than_the_store_remembers_is_named(tmp_path: Path) -> None:
    """FBK-5: this broker answers a fetch beyond the end with nothing, for ever."""
    with EmbeddedBroker() as broker:
        settings = settings_at(broker.bootstrap)
        make_topic(settings, partitions=1, events=3)
        source = KafkaSource(settings.kafka, settings.feedback.topic, max_poll_records=10)
        facts = source.facts()
        source.close()
        longer = FakeLog.of(records([session(event_id=str(number)) for number in range(30)]))
        longer.topic, longer.topic_id = facts.topic, facts.topic_id
        before = Updater.open(FakeSource(longer), tmp_path, [0], settings.feedback)
        while before.step(0.0):
            pass
        before.close()
        updater = opened(settings, tmp_path, 1)
        said = said_of_the_wrong_log(lambda: updater.step(time.monotonic()))
        updater.close()
    assert "expected a log of at least 30 records, found an end at 3" in said


class Ticking:
    """A clock for a fake log: a poll without records takes a tenth of a second."""

    def __init__(self) -> None:
        self.polls = 0

    def step(self, updater: Updater) -> None:
        updater.step(self.polls / 10)
        self.polls += 1


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("log_start", "expected offset 10 next, found that the log starts at 12: 2 records"),
        ("partitions", "partition count 1, found 2"),
    ],
)
def test_what_happens_to_a_running_updaters_log_is_named(tmp_path: Path, attribute: str, said: str) -> None:
    """FBK-5: retention overtakes it, or partitions are added."""
    log = FakeLog.of(records([session(event_id=str(number)) for number in range(10)]))
    updater = Updater.open(FakeSource(log), tmp_path, [0], rules())
    clock = Ticking()
    clock.step(updater)
    if attribute == "log_start":
        log.log_start = 12
    else:
        log.partitions.append([])
    heard = said_of_the_wrong_log(lambda: clock.step(updater))
    assert said in heard
    assert clock.polls < POLLS
    updater.close()


def test_a_hole_is_looked_at_again_before_it_is_believed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """FBK-5: records that come late are applied; those that never come are counted, and named in the log."""
    whole = records([session(event_id=str(number)) for number in range(12)])
    log = FakeLog.of([record for record in whole if record.offset not in {4, 7, 8}])
    updater = Updater.open(FakeSource(log), tmp_path, [0], rules())
    updater.step(0.0)
    assert updater.progress()[0].report.next_offset == 4
    log.partitions[0] = [record for record in whole if record.offset not in {7, 8}]
    with caplog.at_level("WARNING"):
        while updater.step(0.0):
            pass
    report = updater.progress()[0].report
    assert (report.consumed, report.holes, report.next_offset, report.balanced) == (10, 2, 12, True)
    assert "offsets 7 to 8 are not in the log, asked for 3 times" in caplog.text
    updater.close()
