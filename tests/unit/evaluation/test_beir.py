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


@pytest.mark.parametrize("change", [{"text": None}, {"text": 7}, {"_id": None}, {"_id": True}, {"_id": ["7"]}])
def test_no_value_becomes_the_text_of_a_query(change: dict[str, Any], tmp_path: Path) -> None:
    """EVA-1: null is no query "None"; the line is named."""
    with pytest.raises(SourceError, match=r"queries\.jsonl:1: expected a JSON object with _id, text"):
        read_dataset(written(tmp_path, {"_id": 7, "text": "how", **change}), "test")
