"""FBK-3: dead letters are looked at and sent again by command, with a real broker and a real updater."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from jobs.update import run
from pipelines.feedback.codec import encode
from pipelines.runtime.broker import EmbeddedBroker
from pipelines.runtime.kafka import KafkaPublisher, create_topic
from pipelines.serving.cli import main
from pipelines.settings import Settings, load_settings
from tests.support.feedback_events import explicit, impression


@pytest.fixture
def updated(tmp_path: Path) -> tuple[EmbeddedBroker, Settings, Path]:
    with EmbeddedBroker() as broker:
        settings = load_settings(
            [], [f"kafka.bootstrap={broker.bootstrap}", f"storage.root={tmp_path}"], environment={}
        )
        create_topic(settings.kafka, settings.feedback.topic, partitions=1, replication=1)
        create_topic(settings.kafka, settings.feedback.dead_letter_topic, partitions=1, replication=1)
        now = round(time.time() * 1000)
        newer = encode(explicit(1.0, 1, ts=now)).replace(b'"schema":1', b'"schema":9')
        publisher = KafkaPublisher(settings.kafka, settings.feedback.topic)
        for value in (b"no event", encode(impression(ts=now)), b"\xff", newer):
            publisher.send(b"s1", value)
        publisher.close()
        caught_up(settings)
        yield broker, settings, tmp_path


def caught_up(settings: Settings) -> dict[str, int]:
    (standing,) = run(settings, local=True, until_caught_up=True)
    assert standing.report.balanced
    return dict(standing.report.reasons)


def test_dead_letters_are_listed_with_their_reasons(
    updated: tuple[EmbeddedBroker, Settings, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """FBK-3: `weft dlq list` names partition, offset and reason; `--reason` picks."""
    store = str(updated[2])
    assert main(["dlq", "list", "--store", store, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["offset"], row["reason"]) for row in rows] == [
        (0, "undecodable"),
        (2, "undecodable"),
        (3, "unknown_schema"),
    ]
    assert main(["dlq", "list", "--store", store, "--reason", "unknown_schema"]) == 0
    out = capsys.readouterr().out
    assert "unknown_schema" in out.splitlines()[1]
    assert out.endswith("undecodable: 2\nunknown_schema: 1\n")
    assert main(["dlq", "list", "--store", store, "--partition", "7"]) == 1


def test_what_can_be_read_by_now_is_sent_again_and_counts_once(
    updated: tuple[EmbeddedBroker, Settings, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """FBK-3: an event of a schema that an older weft did not know is applied after the upgrade, once."""
    broker, settings, store = updated
    command = ["dlq", "replay", "--store", str(store), "--bootstrap", broker.bootstrap]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["sent"] == 0
    monkeypatch.setattr("pipelines.feedback.codec.KNOWN_SCHEMAS", frozenset({1, 9}))
    for _ in range(2):
        assert main(command) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["sent"], told["left_by_reason"]) == (1, {"undecodable": 2})
    (standing,) = run(settings, local=True, until_caught_up=True)
    assert (standing.report.applied, standing.report.duplicate, standing.report.dead_lettered) == (2, 1, 3)
