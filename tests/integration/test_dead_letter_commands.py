"""FBK-3: dead letters are looked at and sent again by command, with a real broker and a real updater."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.support.feedback_events import explicit, impression
from tests.support.places import Place
from weft.cli.commands.update import run
from weft.cli.main import main
from weft.feedback.events.codec import encode
from weft.feedback.store.report import PartitionReport
from weft.runtime.kafka.writer import KafkaPublisher, create_topic
from weft.settings import Settings, load_settings

TIGHT, WIDE = "feedback.limits.event_bytes=2000", "feedback.limits.event_bytes=262144"


@pytest.fixture
def store(place: Place, tmp_path: Path) -> Path:
    """A store whose updater refused an event for its length; two records are no events at all."""
    settings = settings_of(place, tmp_path, TIGHT)
    create_topic(settings.kafka, settings.feedback.topic, partitions=1, replication=1)
    create_topic(settings.kafka, settings.feedback.dead_letter_topic, partitions=1, replication=1)
    now = round(time.time() * 1000)
    long = json.dumps({**json.loads(encode(explicit(1.0, 1, ts=now))), "remark": "well said " * 300}).encode()
    publisher = KafkaPublisher(settings.kafka, settings.feedback.topic)
    for value in (b"no event", encode(impression(ts=now)), b"\xff", long):
        publisher.send(b"s1", value)
    publisher.close()
    caught_up(settings)
    return tmp_path


def settings_of(place: Place, store: Path, limit: str) -> Settings:
    return load_settings([], [*place.assignments, f"storage.root={store}", limit], environment={})


def caught_up(settings: Settings) -> PartitionReport:
    (progress,) = run(settings, local=True, until_caught_up=True)
    assert progress.report.balanced
    return progress.report


def test_dead_letters_are_listed_with_their_reasons(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-3: `weft dlq list` names partition, offset and reason; `--reason` picks."""
    listing = ["dlq", "list", "--store", str(store)]
    assert main([*listing, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["offset"], row["reason"]) for row in rows] == [
        (0, "undecodable"),
        (2, "undecodable"),
        (3, "oversized"),
    ]
    assert main([*listing, "--reason", "oversized"]) == 0
    out = capsys.readouterr().out
    assert "oversized" in out.splitlines()[1]
    assert out.endswith("oversized: 1\nundecodable: 2\n")
    assert main([*listing, "--partition", "7"]) == 1


def test_what_can_be_read_by_now_is_sent_again_and_counts_once(
    place: Place, store: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """FBK-3: an event that was refused is applied once its cause is mended, and once however often it is sent."""
    topic, tight = tmp_path / "topic.yaml", tmp_path / "tight.yaml"
    topic.write_text(f"feedback: {{topic: {place.topic}}}\n", encoding="utf-8")
    tight.write_text("feedback: {limits: {event_bytes: 2000}}\n", encoding="utf-8")
    command = ["dlq", "replay", "--store", str(store), "--bootstrap", place.bootstrap, "--conf", str(topic)]
    assert main([*command, "--conf", str(tight)]) == 0
    assert json.loads(capsys.readouterr().out)["sent"] == 0
    for _ in range(2):
        assert main(command) == 0
        counts = json.loads(capsys.readouterr().out)
        assert (counts["sent"], counts["left_by_reason"]) == (1, {"undecodable": 2})
    report = caught_up(settings_of(place, store, WIDE))
    assert (report.applied, report.duplicate, report.dead_lettered) == (2, 1, 3)
