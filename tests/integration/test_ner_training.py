"""ING-16: the bundled recogniser can be made again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from lab.entities.command import main
from weft.extraction.entities import EntityExtractor
from weft.settings import load_settings

SENTENCES = [
    ("wikigold", "Ada Lovelace lived in London .", [[0, 1, "person"], [4, 4, "location"]]),
    ("wikigold", "ACME opened in Paris .", [[0, 0, "organization"], [3, 3, "location"]]),
    ("somesci", "We used SPSS 21 .", [[2, 2, "software"], [3, 3, "software version"]]),
    ("pile_ner", "Left out .", [[0, 0, "concept"]]),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [{"tokenized_text": text.split(), "ner": ner, "source": source} for source, text, ner in SENTENCES] * 3
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    for name in ("train.jsonl.gz", "dev.jsonl.gz"):
        with gzip.open(tmp_path / name, "wt", encoding="utf-8") as file:
            file.write(lines)
    return tmp_path


@pytest.mark.slow
def test_a_run_makes_a_checkpoint_that_loads_and_goes_on_where_it_stopped(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ING-16: train, stop, resume, export, measure, card."""
    pytest.importorskip("onnx", reason="exporting needs the extra 'train'")
    out = tmp_path / "out"
    arguments = ["--data", str(data), "--out", str(out), "--batch-words", "100", "--no-bf16", "--json"]
    assert main([*arguments, "--words", "150"]) == 0
    assert main([*arguments, "--words", "600", "--resume"]) == 0
    first, second = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert 150 <= first["words"] < 600 <= second["words"]
    assert "pile_ner" not in second["sources"]
    assert "| wikigold |" in (out / "checkpoint" / "README.md").read_text(encoding="utf-8")
    assert str(tmp_path) not in (out / "checkpoint" / "gliner_config.json").read_text(encoding="utf-8")
    settings = load_settings(environment={}).extraction
    model = settings.model_copy(update={"model": str(out / "checkpoint")})
    assert EntityExtractor(model).extract(["Nothing is learned yet."]) is not None
    further = [*arguments[:3], str(tmp_path / "further"), *arguments[4:]]
    assert main([*further, "--words", "150", "--start", str(out / "state.pt")]) == 0
    card = (tmp_path / "further" / "checkpoint" / "README.md").read_text(encoding="utf-8")
    assert f"From the weights of a run of {second['words']:,} words" in card


def test_data_that_is_missing_ends_the_job_with_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ING-16: exit code 1 and the file that was expected."""
    assert main(["--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "train.jsonl.gz: expected gzipped JSON Lines" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["--words", "--minutes", "--threads", "--batch-words", "--log-every"])
def test_a_training_of_nothing_is_wrong_usage(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract: each of these divides something, or bounds it."""
    folders = ["--data", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main([*folders, name, "0"]) == 2
    assert f"Invalid value for '{name}'" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()
