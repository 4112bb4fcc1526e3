"""EVA-1: what a file of queries may hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from weft.domain.errors import SourceError
from weft.evaluation.measures.beir import read_dataset
from weft.evaluation.measures.runs import read_run


def written(folder: Path, query: dict[str, Any]) -> Path:
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n7\td\t1\n")
    (folder / "corpus.jsonl").write_text('{"_id": "d", "text": "t"}\n')
    (folder / "queries.jsonl").write_text(json.dumps(query) + "\n")
    return folder


def test_an_id_may_be_an_integer(tmp_path: Path) -> None:
    """EVA-1: it is its digits."""
    (query,) = read_dataset(written(tmp_path, {"_id": 7, "text": "how"}), "test").queries
    assert (query.query_id, query.text) == ("7", "how")


@pytest.mark.parametrize(
    "change",
    [
        *({"text": None}, {"text": 7}, {"text": " "}),
        *({"_id": None}, {"_id": True}, {"_id": ["7"]}, {"_id": ""}, {"_id": "7 "}, {"_id": "\ufeff7"}),
    ],
)
def test_no_value_becomes_the_text_of_a_query(change: dict[str, Any], tmp_path: Path) -> None:
    """EVA-1: null is no query "None"; the line is named."""
    with pytest.raises(SourceError, match=r"queries\.jsonl:1: expected a JSON object with _id, text"):
        read_dataset(written(tmp_path, {"_id": 7, "text": "how", **change}), "test")


def test_a_query_that_comes_twice_is_refused(tmp_path: Path) -> None:
    """EVA-1: whichever of the texts counted, half of the readers would be wrong; 7 and "7" are one id."""
    folder = written(tmp_path, {"_id": 7, "text": "how"})
    with (folder / "queries.jsonl").open("a") as file:
        file.write(json.dumps({"_id": "8", "text": "how"}) + "\n\n" + json.dumps({"_id": "7", "text": "why"}) + "\n")
    with pytest.raises(SourceError, match=r"queries\.jsonl:4: expected every query once, found '7' again.* line 1:"):
        read_dataset(folder, "test")


def test_what_is_said_twice_counts_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """EVA-1: public judgements hold doubled lines; the log says how many."""
    folder = written(tmp_path, {"_id": 7, "text": "how"})
    again = {"qrels/test.tsv": "7\td\t1\n7\te\t0\n7\td\t1\n", "queries.jsonl": '{"_id": "7", "text": "how"}'}
    for name, lines in again.items():
        with (folder / name).open("a") as file:
            file.write(lines)
    read = read_dataset(folder, "test")
    assert (len(read.queries), read.qrels) == (1, {"7": {"d": 1, "e": 0}})
    assert "test.tsv: 2 lines say the same again, and count once" in caplog.text
    assert "queries.jsonl: 1 lines say the same again, and count once" in caplog.text


def test_judgements_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    """EVA-1: whichever counted, half of the readers would be wrong."""
    folder = written(tmp_path, {"_id": 7, "text": "how"})
    with (folder / "qrels" / "test.tsv").open("a") as file:
        file.write("7\te\t1\n7\td\t0\n")
    with pytest.raises(SourceError, match=r"test\.tsv:4: expected every judgement once, found '7 d' again.* line 2:"):
        read_dataset(folder, "test")


@pytest.mark.parametrize(
    "rows",
    [
        *("7 0 d 1", "7\td\t1.0", "7\td", "7 \td\t1", "7\t d\t1", "7\td\t1_0", "7\td\t１", "\ufeff7\td\t1"),
        "query-id\tcorpus-id\tscore\n7\td\t1.5",
    ],
)
def test_judgements_that_are_written_otherwise_are_refused(rows: str, tmp_path: Path) -> None:
    """EVA-1, EVA-5: no first line of another form passes for names of columns, and no blank makes another document."""
    folder = written(tmp_path, {"_id": 7, "text": "how"})
    (folder / "qrels" / "test.tsv").write_text(f"{rows}\n", encoding="utf-8-sig")
    with pytest.raises(SourceError, match=r"test\.tsv:\d: expected query-id, corpus-id and an integer score"):
        read_dataset(folder, "test")


@pytest.mark.parametrize("line", ["7 Q0 d 1 1_0 x", "7 Q0 d 1 １ x", "\ufeff7 Q0 d 1 1.0 x"])
def test_lines_of_a_run_that_only_look_like_one_are_refused(line: str, tmp_path: Path) -> None:
    """EVA-5: as trec_eval would not read them; a byte order mark in the middle is of files that were joined."""
    path = tmp_path / "a.run"
    path.write_text(f"6 Q0 d 1 1.5 x\n{line}\n", encoding="utf-8")
    with pytest.raises(SourceError, match=r"a\.run:2: expected `query Q0 document rank score tag`"):
        read_run(path)
