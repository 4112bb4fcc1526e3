"""FBK-2: feedback collected by OpenSearch becomes evidence by command, with a real broker and a real updater."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.update import run
from pipelines.catalog.catalog import Catalog
from pipelines.runtime.broker import EmbeddedBroker
from pipelines.runtime.kafka import create_topic
from pipelines.serving.cli import main
from pipelines.settings import load_settings
from tests.support.feedback_events import HASHES


def written(folder: Path) -> list[str]:
    """A file of queries and one of events, as they are exported; two lines of which are wrong."""
    now = datetime.fromtimestamp(time.time(), UTC).isoformat()
    query = {"user_query": "how", "query_id": "q1", "client_id": "c", "timestamp": now}
    click = {"action_name": "click", "query_id": "q1", "client_id": "c", "timestamp": now}
    about = {"object": {"object_id": HASHES[2]}, "position": {"ordinal": 2}}
    queries, events = folder / "queries.ndjson", folder / "events.ndjson"
    queries.write_text(json.dumps({**query, "query_response_hit_ids": HASHES[1:3]}) + "\n\n{broken\n")
    events.write_text(
        json.dumps({**click, "event_attributes": about}) + "\n" + json.dumps({**click, "action_name": "hover"}) + "\n"
    )
    return [str(queries), str(events)]


def test_documents_are_sent_and_learned_from_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-2, FBK-5: what is wrong is named by file and line; sending all of it again changes nothing."""
    files = written(tmp_path)
    expected = {"events": {"impression": 1, "selection": 1}, "refused": {"not_an_object": 1, "unmapped_action": 1}}
    assert main(["ubi", *files, "--dry-run"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == {"sent": 0, **expected}
    assert [line.split(": ")[:2] for line in told.err.splitlines()] == [
        [f"{files[0]}:3", "not_an_object"],
        [f"{files[1]}:2", "unmapped_action"],
    ]
    with EmbeddedBroker() as broker:
        settings = load_settings(
            [], [f"kafka.bootstrap={broker.bootstrap}", f"storage.root={tmp_path}"], environment={}
        )
        create_topic(settings.kafka, settings.feedback.topic, partitions=2, replication=1)
        for _ in range(2):
            assert main(["ubi", *files, "--domain", "code", "--bootstrap", broker.bootstrap]) == 0
            assert json.loads(capsys.readouterr().out) == {"sent": 2, **expected}
        reports = [each.report for each in run(settings, local=True, until_caught_up=True)]
    assert (sum(each.applied for each in reports), sum(each.duplicate for each in reports)) == (2, 2)
    usage = Catalog(tmp_path).live_evidence().usage
    assert {(key.content_hash, key.bin) for key in usage} == {(HASHES[2], "positive"), (HASHES[1], "negative")}


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-2: one line, exit code 1."""
    assert main(["ubi", str(tmp_path / "none.ndjson")]) == 1
    assert "none.ndjson: expected a readable file" in capsys.readouterr().err


def test_a_document_holds_whatever_json_may(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-2: characters that break lines of a text elsewhere do not break a document in two."""
    path = tmp_path / "ubi.ndjson"
    path.write_text('{"user_query": "a\u2028b"}\n', encoding="utf-8")
    main(["ubi", str(path), "--dry-run"])
    assert "not_an_object" not in capsys.readouterr().err
