"""EVA-1: what a file of queries may hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.domain.errors import SourceError
from pipelines.evaluation.measures.beir import read_dataset


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
        *({"_id": None}, {"_id": True}, {"_id": ["7"]}, {"_id": ""}),
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


@pytest.mark.parametrize("grade", [0, 1])
def test_a_judgement_that_comes_twice_is_refused(grade: int, tmp_path: Path) -> None:
    """EVA-1: as trec_eval does, whether the two agree or not."""
    folder = written(tmp_path, {"_id": 7, "text": "how"})
    with (folder / "qrels" / "test.tsv").open("a") as file:
        file.write(f"7\te\t1\n7\td\t{grade}\n")
    with pytest.raises(SourceError, match=r"test\.tsv:4: expected every judgement once, found '7 d' again.* line 2:"):
        read_dataset(folder, "test")
