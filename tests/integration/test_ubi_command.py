"""FBK-2: feedback collected by OpenSearch becomes evidence by command, with a real broker and a real updater."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.feedback_events import HASHES
from tests.support.words_spoken import side_of
from weft.catalog.catalog import Catalog
from weft.cli.commands.update import run
from weft.cli.main import main
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import create_topic
from weft.settings import load_settings


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
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"sent": 0, **expected}
    assert [line.split(": ")[:2] for line in printed.err.splitlines()] == [
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
    usage = Catalog(tmp_path).live.evidence().usage
    assert {(key.content_hash, side_of(key.bin)) for key in usage} == {(HASHES[2], "positive"), (HASHES[1], "negative")}


def test_what_nobody_asked_is_no_precedent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-2: null, blanks and no text at all are no question; an object is refused, in the dry run already."""
    now = round(time.time())
    facts = {"client_id": "c", "timestamp": now}
    queries = [
        {**facts, "query_id": f"q{number}", "query_response_hit_ids": HASHES[1:3], **asked}
        for number, asked in enumerate(({"user_query": None}, {"user_query": " "}, {}, {"user_query": {"q": "x"}}))
    ]
    about = {"object": {"object_id": HASHES[2]}}
    bought = {**facts, "action_name": "purchase", "event_attributes": about}
    path = tmp_path / "ubi.ndjson"
    path.write_text(
        "".join(json.dumps(each) + "\n" for each in [*queries, *({**bought, "query_id": f"q{n}"} for n in range(3))])
    )
    assert main(["ubi", str(path), "--dry-run"]) == 0
    expected = {"events": {"explicit": 3, "impression": 3}, "refused": {"no_question": 1}}
    assert json.loads(capsys.readouterr().out) == {"sent": 0, **expected}
    with EmbeddedBroker() as broker:
        settings = load_settings(
            [], [f"kafka.bootstrap={broker.bootstrap}", f"storage.root={tmp_path}"], environment={}
        )
        create_topic(settings.kafka, settings.feedback.topic, partitions=2, replication=1)
        assert main(["ubi", str(path), "--bootstrap", broker.bootstrap]) == 0
        run(settings, local=True, until_caught_up=True)
    usage = Catalog(tmp_path).live.evidence().usage
    assert {(key.content_hash, side_of(key.bin), key.question) for key in usage} == {(HASHES[2], "positive", "")}


def test_times_in_other_units_are_understood_in_the_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-2: seconds to nanoseconds are events of now; what no unit explains is refused with what was expected."""
    now = time.time()
    path = tmp_path / "ubi.ndjson"
    times = [round(now), now, round(now * 1e3), str(round(now * 1e6)), round(now) * 10**9, 42, None]
    query = {"user_query": "how", "client_id": "c", "query_response_hit_ids": HASHES[1:3]}
    documents = [{**query, "query_id": f"q{number}", "timestamp": each} for number, each in enumerate(times)]
    path.write_text("".join(json.dumps(each) + "\n" for each in documents))
    assert main(["ubi", str(path), "--dry-run"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"sent": 0, "events": {"impression": 5}, "refused": {"no_time": 2}}
    assert [line.rpartition(" found ")[2] for line in printed.err.splitlines()] == ["42", "None"]


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
