"""EVA-3: the query log by command, with feedback collected from a real broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
from weft.cli.main import main
from weft.evaluation.queries.writer import QueryLog
from weft.feedback.events.producer import FeedbackProducer
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import create_topic
from weft.settings import load_settings

FRUIT = MemoryGeneration({"a.md": ["red apple"], "b.md": ["red pear"], "c.md": ["green apple pie"]})


@pytest.fixture
def logged(tmp_path: Path):
    """One answer in the log of a store."""
    answer = a_searcher(FRUIT).search(a_query("red apple", session_id="s1", principal="ada"))
    with QueryLog(tmp_path, load_settings(environment={}).query_log) as log:
        log.emit(answer)
    return answer


def weft(store: Path, *arguments: str) -> int:
    return main(["queries", *arguments, "--store", str(store)])


def test_a_query_is_listed_shown_and_explained(logged, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """EVA-3, RET-18: for people and for machines."""
    assert weft(tmp_path, "list") == 0
    assert "red apple" in capsys.readouterr().out
    assert weft(tmp_path, "show", "q-1") == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("red apple", "milliseconds", "lexical", "a.md", "cross validation", "adds"))
    assert weft(tmp_path, "show", "q-1", "--json") == 0
    documents = json.loads(capsys.readouterr().out)
    assert [result["content_hash"] for result in documents["results"]] == [each.content_hash for each in logged.results]
    best = documents["results"][0]
    assert sum(part["amount"] for part in best["contributions"]) == pytest.approx(best["score"])


def test_an_unknown_query_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """EVA-3: in one line, also where nothing was ever logged."""
    assert weft(tmp_path, "list", "--json") == 0
    assert capsys.readouterr().out == ""
    assert weft(tmp_path, "show", "absent") == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_feedback_is_collected_from_the_topic(logged, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """EVA-3: joined with its query; collected twice, it counts once."""
    with EmbeddedBroker() as broker:
        settings = load_settings([], [f"kafka.bootstrap={broker.bootstrap}"], environment={})
        create_topic(settings.kafka, settings.feedback.topic, partitions=2, replication=1)
        producer = FeedbackProducer.connect(settings.kafka, settings.feedback)
        producer.emit(logged)
        producer.selection(logged.query, logged.results[0].content_hash, 1)
        producer.explicit(logged.query, 1.0, content_hash=logged.results[0].content_hash)
        producer.close()
        documents = []
        for _ in range(2):
            assert weft(tmp_path, "collect", "--bootstrap", broker.bootstrap) == 0
            documents.append(json.loads(capsys.readouterr().out))
    assert documents == [{"outcomes": 2, "records": 3}, {"outcomes": 0, "records": 0}]
    assert weft(tmp_path, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)["outcomes"] == {"explicit": 1, "selection": 1}
