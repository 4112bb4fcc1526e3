"""LES-5, LES-6, LES-13: what is heard and compared, measured on labelled texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from weft.app.lessons.measuring import EPISODES, OUTCOMES, PAIRS, measured
from weft.domain.errors import SourceError
from weft.settings import Settings, load_settings

MIGRATIONS = {"id": "l-1", "content": "Run the migrations before starting the API"}
ASKED = [{"role": "user", "text": "start the API"}, {"role": "assistant", "text": "Started on port 8000."}]
OTHER = [{"role": "user", "text": "Which version runs in production?"}]
FORGOTTEN = [{"role": "user", "text": "You forgot to run the migrations, again."}]


def settings(folder: Path) -> Settings:
    return load_settings(assignments=[f"storage.root={json.dumps(str(folder / 'store'))}"], environment={})


def write(folder: Path, name: str, *records: object) -> None:
    lines = "\n".join(json.dumps(each, ensure_ascii=False) for each in records)
    (folder / name).write_text(lines, encoding="utf-8")


def test_counts_are_of_what_was_stated_and_of_what_was_heard(tmp_path: Path) -> None:
    """LES-5, LES-13: a separator of lines within a text ends no record."""
    failed = {"lesson": "l-1", "outcome": "failure"}
    nothing = {"lesson": "l-1", "outcome": "none"}
    write(
        tmp_path,
        OUTCOMES,
        {"injected": [MIGRATIONS], "turns": [*ASKED, *FORGOTTEN], "label": [failed]},
        {"injected": [MIGRATIONS], "turns": [*ASKED, *OTHER], "label": [failed]},
        {"injected": [MIGRATIONS], "turns": [*ASKED, *FORGOTTEN], "label": [nothing]},
    )
    write(tmp_path, EPISODES, {"transcript": [*ASKED, {"role": "user", "text": "Thanks\u2028!"}], "lesson": None})
    write(
        tmp_path,
        PAIRS,
        {"a": "Sign commits", "b": "Sign commits!", "label": "same"},
        {"a": "Always squash commits", "b": "Never squash commits", "label": "opposite"},
    )
    figures = measured(tmp_path, settings(tmp_path))
    assert figures["outcomes"] == {
        "stated": 2,
        "heard": 2,
        "recall_by_sign": 0.5,
        "precision_by_sign": 0.5,
        "recall_exact": 0.5,
    }
    assert (figures["episodes"]["teach_nothing"], figures["episodes"]["proposed_falsely"]) == (1, 0)
    assert (figures["pairs"]["same_merged"], figures["pairs"]["opposite_contradict"]) == (1.0, 1.0)


def test_a_folder_without_any_file_and_a_line_that_is_none_are_named(tmp_path: Path) -> None:
    """LES-5."""
    with pytest.raises(SourceError, match=r"expected outcome_turns\.jsonl"):
        measured(tmp_path, settings(tmp_path))
    (tmp_path / PAIRS).write_text('{"a": "x"}\nno record', encoding="utf-8")
    with pytest.raises(SourceError, match=r"lesson_pairs\.jsonl:2"):
        measured(tmp_path, settings(tmp_path))


@pytest.mark.slow
def test_texts_of_another_hand_are_heard_as_well_as_was_promised(data_root: Path, tmp_path: Path) -> None:
    """LES-5, LES-6, LES-13: nothing was trained by them."""
    if not (folder := data_root / "lessons").is_dir():
        pytest.skip(f"no labelled lessons in {data_root}")
    figures = measured(folder, settings(tmp_path))
    outcomes, episodes, pairs = figures["outcomes"], figures["episodes"], figures["pairs"]
    assert outcomes["recall_by_sign"] >= 0.45
    assert outcomes["precision_by_sign"] >= 0.85
    assert outcomes["recall_exact"] >= 0.35
    assert episodes["proposed"] >= 0.4 * episodes["teach"]
    assert episodes["proposed_falsely"] <= 4 / 60 * episodes["teach_nothing"]
    assert episodes["secrets_stored"] == 0
    assert pairs["same_merged"] + pairs["same_proposed"] >= 0.7
    assert max(pairs["same_contradict"], pairs["unrelated_proposed"]) <= 0.03
    assert pairs["opposite_merged"] == 0.0
