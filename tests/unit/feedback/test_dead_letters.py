"""FBK-3: dead letters reach a topic of their own, and nothing waits for it."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.feedback_events import RULES, records, rules, session
from tests.support.feedback_publisher import MemoryTopic, republisher
from tests.support.feedback_source import FakeLog, FakeSource
from weft.catalog.overlays import OFFSET_KEY, metadata_of
from weft.domain.errors import BrokerUnavailableError, ConfigurationError, WeftError
from weft.feedback.publish.dead_letters import Republisher
from weft.feedback.publish.snapshot import NAME
from weft.feedback.run.partitions import partition_folder
from weft.feedback.run.updater import Updater
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.report import PartitionReport

pytestmark = pytest.mark.integration

AWAY = BrokerUnavailableError("nobody answers")


def opened(store: Path, log: FakeLog, topic: MemoryTopic, settings: FeedbackSettings = RULES) -> Updater:
    return Updater.open(FakeSource(log), store, [0], settings, dead_letters=republisher(topic, settings))


def report_of(updater: Updater) -> PartitionReport:
    return updater.progress()[0].report


def published(topic: MemoryTopic) -> list[tuple[bytes, Any]]:
    return [(key, json.loads(value)["original"]) for key, value in topic.taken]


def base64_of(original: bytes) -> str:
    return base64.b64encode(original).decode()


def test_a_dead_letter_is_published_once_when_all_goes_well(tmp_path: Path) -> None:
    """FBK-3: under its place in the log, with its reason and its bytes."""
    topic = MemoryTopic()
    updater = opened(tmp_path, FakeLog.of(records([session(), b"{", b"\xff"])), topic)
    for now in range(4):
        updater.step(float(now))
    assert published(topic) == [(b"0:1", base64_of(b"{")), (b"0:2", base64_of(b"\xff"))]
    assert {json.loads(value)["reason"] for _, value in topic.taken} == {"undecodable"}
    assert report_of(updater).dead_letters_waiting == 0
    updater.close()


@pytest.mark.parametrize("error", [AWAY, ConfigurationError("not authorized")])
def test_dead_letters_wait_for_a_topic_that_takes_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: WeftError
) -> None:
    """FBK-3: events are applied and snapshots published meanwhile; one warning names the cause; later all arrive."""
    topic, log = MemoryTopic(), FakeLog.of([])
    everything = records([b"{", *(session(event_id=str(number)) for number in range(30))])
    topic.error = error
    updater = opened(tmp_path, log, topic)
    for second, record in enumerate(everything):
        log.partitions[0].append(record)
        updater.step(float(second))
        updater.step(second + 0.5)
    report = report_of(updater)
    assert (report.applied, report.dead_lettered, report.dead_letters_waiting) == (30, 1, 1)
    assert int(metadata_of(partition_folder(tmp_path, 0) / NAME)[OFFSET_KEY]) == 31
    (said,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert said.startswith(f"dead letters wait for weft.feedback.dlq: {error}; to help, ")
    topic.error = None
    updater.step(1_000.0)
    updater.step(1_001.0)
    assert published(topic) == [(b"0:0", base64_of(b"{"))]
    assert report_of(updater).dead_letters_waiting == 0
    updater.close()


def test_pauses_between_attempts_double_up_to_a_bound(tmp_path: Path) -> None:
    """FBK-3: an unreachable topic costs ever less."""
    settings = rules(retry_s=1.0, unreachable_s=8.0)
    topic = MemoryTopic()
    topic.error = AWAY
    updater = opened(tmp_path, FakeLog.of(records([b"{"])), topic, settings)
    attempts = []
    for second in range(30):
        before = topic.attempts
        updater.step(float(second))
        attempts += [second] * (topic.attempts - before)
    # An attempt is judged a step after it began.
    assert attempts == [0, 2, 5, 10, 19, 28]
    updater.close()


def test_what_was_not_noted_down_is_published_again(tmp_path: Path) -> None:
    """FBK-3: a crash between publishing and noting it; the key tells that it is the same."""
    topic, log = MemoryTopic(), FakeLog.of(records([b"{"]))
    for _ in range(2):
        updater = opened(tmp_path, log, topic)
        updater.step(0.0)
        updater.close()
    assert [key for key, _ in topic.taken] == [b"0:0", b"0:0"]


def test_a_dead_letter_that_is_too_large_goes_without_its_bytes(tmp_path: Path) -> None:
    """FBK-3: it says so, and holds none back that come after it."""
    topic, large = MemoryTopic(most_bytes=600), b"\xff" * 900
    updater = opened(tmp_path, FakeLog.of(records([b"{", large, b"}"])), topic)
    updater.step(0.0)
    updater.step(1.0)
    assert sorted(published(topic)) == [(b"0:0", base64_of(b"{")), (b"0:1", None), (b"0:2", base64_of(b"}"))]
    (bare,) = [json.loads(value) for key, value in topic.taken if key == b"0:1"]
    assert (bare["left_out"], bare["size"]) == ("original: larger than the dead-letter topic takes", 900)
    assert report_of(updater).dead_letters_waiting == 0
    updater.close()


def test_a_topic_that_takes_not_even_that_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """FBK-3: max.message.bytes is what helps."""
    topic = MemoryTopic(most_bytes=10)
    updater = opened(tmp_path, FakeLog.of(records([b"{", session()])), topic)
    updater.step(0.0)
    updater.step(1.0)
    assert report_of(updater).dead_letters_waiting == 1
    assert "raise max.message.bytes of the topic" in caplog.text
    updater.close()


def test_an_attempt_holds_so_many_bytes_and_later_ones_the_rest(tmp_path: Path) -> None:
    """FBK-3: memory is bounded however many wait."""
    topic = MemoryTopic()
    updater = opened(tmp_path, FakeLog.of(records([b"\xff" * 400] * 12)), topic)
    for now in range(6):
        updater.step(float(now))
    assert topic.attempts == 4  # 1,000 bytes are exceeded by the third of 400
    assert [key for key, _ in topic.taken] == [b"0:%d" % offset for offset in range(12)]
    updater.close()


def test_dead_letters_that_wait_are_bounded(tmp_path: Path) -> None:
    """FBK-3: the oldest are forgotten, and not counted as waiting any more; reasons count all."""
    topic, settings = MemoryTopic(), rules(limits__dead_letter_records=5, poll_records=4)
    topic.error = AWAY
    log = FakeLog.of(records([b"{"] * 12))
    updater = opened(tmp_path, log, topic, settings)
    while updater.step(0.0):
        pass
    report = report_of(updater)
    assert (report.dead_letters_waiting, report.reasons) == (5, {"undecodable": 12})
    topic.error = None
    for now in (100.0, 101.0, 102.0):
        updater.step(now)
    assert [key for key, _ in topic.taken] == [b"0:%d" % offset for offset in range(7, 12)]
    assert report_of(updater).dead_letters_waiting == 0
    updater.close()


def test_an_attempt_that_hangs_stops_nothing(tmp_path: Path) -> None:
    """FBK-3: events are applied and snapshots published beside it; the updater is caught up once it has ended."""

    class HangingTopic(MemoryTopic):
        began, go_on = threading.Event(), threading.Event()

        def deliver(self, records):  # type: ignore[no-untyped-def]
            self.began.set()
            self.go_on.wait()
            return super().deliver(records)

    topic, everything = HangingTopic(), records([b"{", *(session(event_id=str(number)) for number in range(30))])
    log = FakeLog.of([])
    beside = Republisher(lambda: topic, RULES, most_bytes=1_000)
    updater = Updater.open(FakeSource(log), tmp_path, [0], RULES, dead_letters=beside)
    for second, record in enumerate(everything):
        log.partitions[0].append(record)
        updater.step(float(second))
    topic.began.wait()
    updater.step(100.0)
    assert (report_of(updater).applied, updater.caught_up) == (30, False)
    assert int(metadata_of(partition_folder(tmp_path, 0) / NAME)[OFFSET_KEY]) == 31
    topic.go_on.set()
    while not updater.caught_up:
        updater.step(101.0)
    assert [key for key, _ in topic.taken] == [b"0:0"]
    updater.close()


def test_an_updater_is_caught_up_though_its_dead_letters_wait(tmp_path: Path) -> None:
    """FBK-3: a job that ends by itself does so after an attempt in vain."""
    topic = MemoryTopic()
    topic.error = AWAY
    updater = opened(tmp_path, FakeLog.of(records([b"{"])), topic)
    updater.step(0.0)
    assert not updater.caught_up
    updater.step(0.1)
    assert updater.caught_up
    updater.close()
