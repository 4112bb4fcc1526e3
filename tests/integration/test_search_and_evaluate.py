"""EVA-5, RET-18: the jobs that search and measure, with the real encoder and the real indexes."""

from __future__ import annotations

import json
import math
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.support.updater_process import PARTITIONS, whole_log
from weft.app import collections
from weft.catalog.catalog import Catalog
from weft.cli.reports import evaluate
from weft.cli.searches import search
from weft.domain.events import Impression
from weft.domain.ranking import AnswerToken
from weft.domain.signatures import SigningKey
from weft.evaluation.measures.beir import read_dataset
from weft.feedback.events.codec import decode
from weft.ingestion import plan
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import create_topic
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

RECORDS = {
    "d1": ("Checkpoints", "A checkpoint is written after every commit."),
    "d2": ("Locks", "Locks are released when the transaction ends."),
    "d3": ("Bananas", "Bananas are yellow and grow in the tropics."),
    "d4": ("Twins", "The same words stand in two records."),
    "d5": ("Twins", "The same words stand in two records."),
}
QUERIES = {"q1": "when is a checkpoint written", "q2": "which fruit is yellow", "q3": "same words in two records"}
QRELS = {"q1": {"d1": 1}, "q2": {"d3": 2}, "q3": {"d4": 1, "d5": 1}}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    records = [{"_id": name, "title": title, "text": text} for name, (title, text) in RECORDS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, records)))
    queries = [{"_id": name, "text": text} for name, text in QUERIES.items()]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "qrels").mkdir()
    rows = [f"{query}\t{document}\t{grade}" for query, grades in QRELS.items() for document, grade in grades.items()]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    return folder


@pytest.fixture(scope="module")
def stored(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Indexed in this process; the jobs then find it below the same root."""
    root = tmp_path_factory.mktemp("store")
    settings = evaluate.measuring(load_settings([], [f"storage.root={root}"], environment={}))
    return evaluate.indexed(read_dataset(dataset, "test"), settings, executor=HERE)


def last_line(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return summary


def test_a_data_set_is_measured_by_one_command(
    dataset: Path, stored: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-5: the contract's keys, a TREC file, and the index of the corpus found again."""
    root = Path(stored.storage.root)
    generation = Catalog(root).pointer()
    run_file = tmp_path / "run.txt"
    arguments = ["--dataset", str(dataset), "--store", str(root.parent.parent), "--run-file", str(run_file), "--json"]
    assert evaluate.main(arguments) == 0
    summary = last_line(capsys)
    assert summary["queries"] == len(QUERIES)
    assert summary["ndcg_at_10"] == pytest.approx(1.0)
    contract = {"ndcg_at_10", "mrr_at_5", "mrr_at_10", "recall_at_20", "recall_at_100", "hit_rate_at_1", "queries"}
    assert contract | {"p50_ms", "p95_ms"} <= summary.keys()
    assert Catalog(root).pointer() == generation
    returned = [line.split() for line in run_file.read_text().splitlines()]
    assert {row[0] for row in returned} == set(QUERIES)
    # ARC-4: one content, two records, both credited.
    assert {row[2] for row in returned if row[0] == "q3" and int(row[3]) <= 2} == {"d4", "d5"}


def test_what_is_measured_is_what_this_code_cuts(
    dataset: Path, stored: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """EVA-5: after a change of the chunkers a corpus is cut again, once, in the store that caches its vectors."""
    root = Path(stored.storage.root)
    settings = stored.model_copy(
        update={"storage": stored.storage.model_copy(update={"root": str(root.parent.parent)})}
    )

    caplog.set_level("INFO", "weft")

    def indexed_anew(cut_with: str) -> bool:
        for module in (collections, plan):
            monkeypatch.setattr(module, "cutting_code", lambda: cut_with)
        assert evaluate.indexed(read_dataset(dataset, "test"), settings, executor=HERE).storage.root == str(root)
        indexing = any(line.startswith("indexing") for line in caplog.messages)
        caplog.clear()
        return indexing

    assert [indexed_anew(name) for name in ("new", "new", "newer", "newer")] == [True, False, True, False]


def test_a_limit_measures_the_first_queries_only(
    dataset: Path, stored: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-5."""
    root = str(Path(stored.storage.root).parent.parent)
    assert evaluate.main(["--dataset", str(dataset), "--store", root, "--limit", "2", "--fusion", "rrf", "--json"]) == 0
    summary = last_line(capsys)
    assert (summary["queries"], summary["fusion"]) == (2, "rrf")


def test_an_unknown_split_or_channel_is_refused(
    dataset: Path, stored: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-5."""
    assert evaluate.main(["--dataset", str(dataset), "--split", "dev"]) == 1
    assert "found splits ['test']" in capsys.readouterr().err
    assert evaluate.main(["--dataset", str(dataset), "--channels", "dense,magic"]) == 2


def test_an_explained_answer_is_complete_for_machines(stored: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """RET-18, ARC-7: contributions sum to the score, and learned weights carry what is believed about them."""
    assert search.main(["when is a checkpoint written", "--store", stored.storage.root, "-k", "3", "--json"]) == 0
    answer = last_line(capsys)
    best = answer["results"][0]
    assert best["uris"][0].endswith(":d1")
    assert {"dense", "lexical"} == best["channels"].keys()
    *before, last = answer["results"]
    assert all(0.0 <= result["above_next"] <= 1.0 for result in before)
    assert (last["above_next"], last["propensity"]) == (None, 1.0)
    for result in answer["results"]:
        assert result["score"] == math.fsum(part["amount"] for part in result["contributions"])
        assert all(
            part["belief"]["low"] <= part["belief"]["mean"] <= part["belief"]["high"]
            for part in result["contributions"]
        )


def test_an_explained_answer_is_readable(stored: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """RET-18: every addend with its weight, interval, samples and level, and their sum."""
    assert search.main(["yellow fruit", "--store", stored.storage.root, "--explain"]) == 0
    shown = capsys.readouterr().out
    assert all(
        word in shown
        for word in ("Bananas", "vector", "freshness", "90 % interval", "samples", "prior", "score", "above the next")
    )


def test_more_results_than_channels_look_for_are_not_silently_fewer(
    stored: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """RET-7: asking for more than `retrieval.depth` says what stands in the way, and nothing else does."""
    asked = ["yellow fruit", "--store", stored.storage.root, "--set", "retrieval.depth=2"]
    assert search.main([*asked, "-k", "3"]) == 0
    assert "each channel finds 2 at most; for more: --set retrieval.depth=3" in capsys.readouterr().err
    assert search.main([*asked, "-k", "2"]) == 0
    assert "retrieval.depth" not in capsys.readouterr().err


def test_a_file_of_queries_is_answered_query_by_query(
    dataset: Path, stored: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """RET-20: plain lines or BEIR records."""
    arguments = [
        "--queries",
        str(dataset / "queries.jsonl"),
        "--store",
        stored.storage.root,
        "--fusion",
        "rsf",
        "--json",
    ]
    assert search.main(arguments) == 0
    answers = last_line(capsys)["answers"]
    assert [answer["query_id"] for answer in answers] == list(QUERIES)
    assert {answer["fusion"] for answer in answers} == {"rsf"}


def test_a_line_that_is_no_query_is_told_and_the_others_are_answered(
    stored: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """RET-20, RET-21: nothing is lost, and nothing is fatal to the rest."""
    path = tmp_path / "queries.jsonl"
    lines = ['{"_id": "q1", "text": "yellow fruit"}', '{"_id": "q2", "text": [1]}', '{"_id": "q3", "text": "locks"}']
    path.write_text("\n".join(lines))
    assert search.main(["--queries", str(path), "--store", stored.storage.root, "--json"]) == 0
    printed = capsys.readouterr()
    summary = json.loads(printed.out.splitlines()[-1])
    assert [answer["query_id"] for answer in summary["answers"]] == ["q1", "q3"]
    reason = f"{path}:2: expected texts for _id and text, found 'q2' and [1]"
    assert summary["refused"] == [reason]
    assert printed.err.splitlines() == [
        reason,
        "1 of 3 queries were not answered: mend their lines and ask these again",
    ]


def test_a_session_is_remembered_from_one_call_to_the_next(
    stored: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """LRN-15, RET-19: whoever names it need carry nothing; what it was given can be left out."""

    def shown(*more: str) -> list[str]:
        arguments = ["yellow fruit", "--store", stored.storage.root, "-k", "1", "--json", *more]
        assert search.main(arguments) == 0
        return [result["content_hash"] for result in last_line(capsys)["results"]]

    first = shown("--session", "s-7")
    assert shown("--session", "s-8", "--repeats", "suppress") == first
    assert shown("--session", "s-7", "--repeats", "suppress") != first
    assert search.main(["yellow fruit", "--store", stored.storage.root, "--repeats", "lower"]) == 2


def test_a_broker_is_told_what_was_shown(stored: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    """FBK-2: the job has sent its impression when it ends; where there is no broker it says so, and what it found."""
    who = ["--session", "s-9", "--principal", "ada"]
    asked = ["yellow fruit", "--store", stored.storage.root, "--json", *who, "--bootstrap"]
    with EmbeddedBroker() as broker:
        settings = load_settings([], [f"kafka.bootstrap={broker.bootstrap}"], environment={})
        create_topic(settings.kafka, settings.feedback.topic, partitions=PARTITIONS, replication=1)
        assert search.main([*asked, broker.bootstrap]) == 0
        (value,) = chain.from_iterable(whole_log(broker.bootstrap, settings.feedback.topic, 1))
        answer = last_line(capsys)
        unsayable = ["yellow fruit", "--store", stored.storage.root, "--session", "s" * 129]
        assert search.main([*unsayable, "--bootstrap", broker.bootstrap]) == 1
        assert "1 of 1 answers are not in the feedback topic" in capsys.readouterr().err
    event = decode(value, max_bytes=settings.feedback.limits.event_bytes)
    assert isinstance(event, Impression)
    assert (event.query_id, event.session_id, event.principal) == (answer["query_id"], "s-9", "ada")
    assert [one.content_hash for one in event.results] == [one["content_hash"] for one in answer["results"]]
    assert search.main([*asked, broker.bootstrap, "--set", "kafka.connect_timeout_ms=1000"]) == 75
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert [one["content_hash"] for one in json.loads(printed.out)["results"]] == [
        one["content_hash"] for one in answer["results"]
    ]


def test_with_a_key_what_was_shown_is_signed_and_its_answer_has_a_token(
    stored: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """FBK-13: the job says once that anybody can teach where there is no key, and nothing where there is one."""
    secret = "a key that only services and updaters share"
    asked = ["yellow fruit", "--store", stored.storage.root, "--json", "--principal", "ada", "--bootstrap"]
    with EmbeddedBroker() as broker:
        settings = load_settings([], [f"kafka.bootstrap={broker.bootstrap}"], environment={})
        create_topic(settings.kafka, settings.feedback.topic, partitions=PARTITIONS, replication=1)
        assert search.main([*asked, broker.bootstrap]) == 0
        assert capsys.readouterr().err.count("anybody who can write to the topic can teach") == 1
        monkeypatch.setenv("WEFT__FEEDBACK__SIGNING_KEY", secret)
        assert search.main([*asked, broker.bootstrap]) == 0
        printed = capsys.readouterr()
        values = chain.from_iterable(whole_log(broker.bootstrap, settings.feedback.topic, 2))
    answer, key = json.loads(printed.out), SigningKey(secret)
    assert "teach" not in printed.err
    assert AnswerToken.read(answer["token"]).token == key.query_token(answer["query_id"], "ada")
    (value,) = [value for value in values if answer["query_id"].encode() in value]
    content, _, rest = value.rpartition(b',"signature":"')
    assert rest == key.signature(content).encode() + b'"}'


def test_searching_an_empty_store_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ARC-2."""
    assert search.main(["anything", "--store", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
