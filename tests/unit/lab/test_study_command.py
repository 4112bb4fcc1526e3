"""EVA-6: a study says what it cannot do before it begins."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from lab.simulation.users import question_schedule
from lab.study import command as study


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--foreign", "cacm"), "--foreign takes DIR:SPLIT, found 'cacm'"),
        (("--foreign", ":test"), "--foreign takes DIR:SPLIT"),
        (("--foreign", "cacm:test", "--bare"), "--foreign is about probabilities, which --bare leaves out"),
        (("--hold-out", "1.5"), "Invalid value for '--hold-out'"),
        (("--hold-out", "-0.1"), "Invalid value for '--hold-out'"),
        (("--sessions", "0"), "expected numbers of sessions"),
    ],
)
def test_wrong_usage_is_explained(
    tmp_path: Path, arguments: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Job contract."""
    assert study.main(["--dataset", str(tmp_path), *arguments]) == 2
    assert reason in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("arguments", [("--hold-out", "1.0"), ("--learn-from", "empty")])
def test_nothing_to_learn_from_is_an_error(
    tmp_path: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """EVA-6: users without a question would ask for ever."""
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "d", "text": "a lock"}))
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "lock"}))
    (tmp_path / "qrels").mkdir()
    for split in ("train", "test"):
        (tmp_path / "qrels" / f"{split}.tsv").write_text("q\td\t1\n")
    (tmp_path / "qrels" / "empty.tsv").write_text("query-id\tcorpus-id\tscore\n")
    assert study.main(["--dataset", str(tmp_path), "--store", str(tmp_path / "store"), *arguments]) == 1
    assert "expected queries to learn from and others to ask, found none" in capsys.readouterr().err


def test_nobody_asks_without_a_question() -> None:
    """EVA-6."""
    with pytest.raises(ValueError, match="at least one question"):
        question_schedule([], 3, random.Random(1))
