"""OPS-4: a command imports what it needs; the help needs none of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from weft.cli.registry import COMMANDS, all_commands, load_command

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[3]
HEAVY = {"polars", "torch", "scipy", "mlflow", "ray", "gliner", "pyarrow", "pydantic", "numpy", "pandas", "yaml"}


def modules_after(line: str) -> set[str]:
    """Top packages that a new process has imported after a line."""
    code = f"import json, sys\n{line}\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_help_imports_none_of_the_commands() -> None:
    assert not HEAVY & modules_after("from weft.cli.main import main\nmain(['--help'])")


def test_the_public_names_cost_nothing_until_they_are_used() -> None:
    assert not HEAVY & modules_after("import weft")


def test_a_search_does_without_what_the_tables_of_a_night_are_made_with() -> None:
    """ARC-4: nights alone pay for it."""
    assert "polars" not in modules_after("import weft.cli.main, weft.cli.searches.search, weft.app.searching.engines")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_what_the_command_says_of_itself(name: str) -> None:
    help_text = " ".join((load_command(name).help or "").split())
    assert help_text.startswith(COMMANDS[name].summary.rstrip(".")), help_text


def test_a_mistyped_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    from weft.cli.main import main

    assert main(["serch"]) == 2
    assert "search" in capsys.readouterr().err
    assert set(all_commands().commands) == set(COMMANDS)
