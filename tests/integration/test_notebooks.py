"""Notebooks run from top to bottom, define nothing, and keep no outputs."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from jobs.consolidate import run
from pipelines.settings import load_settings
from tests.support.nights import a_day, stream

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
DAY = 20_000


def cells(notebook: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store after its first night."""
    root = tmp_path_factory.mktemp("store")
    stream(root, 0, a_day(DAY))
    settings = load_settings(assignments=[f"storage.root={root}"], environment={})
    run(settings, dry_run=False, clock=lambda: (DAY + 0.5) * 86_400)
    return root


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_keeps_no_outputs_and_defines_nothing(notebook: Path) -> None:
    """OPS-8: notebooks import, never define; their outputs are stripped."""
    for cell in cells(notebook):
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
        definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
        assert not [node for node in ast.walk(ast.parse("".join(cell["source"]))) if isinstance(node, definitions)]


def test_the_calibration_review_runs_on_a_store(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-8, CON-10: the review shows the newest version's calibration and weights."""
    monkeypatch.setenv("WEFT__STORAGE__ROOT", str(store))
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = next(path for path in NOTEBOOKS if path.stem == "01_calibration_review")
    seen: dict[str, Any] = {}
    for cell in cells(notebook):
        exec(compile("".join(cell["source"]), str(notebook), "exec"), seen)
    assert seen["version"] == "v000001"
    assert isinstance(seen["reliability"], Figure)
    assert isinstance(seen["weights"], Figure)
    assert seen["recalibration"].refitted
