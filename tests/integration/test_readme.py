"""OPS-8a: the lines of Python in the README, run as they stand in a folder with documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_first_lines_index_and_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(import weft\n.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 1
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "rolling.md").write_text("# Rolling back\n\nRoll back bad results with one command.\n")
    (tmp_path / "docs" / "locks.md").write_text("# Locks\n\nA lock is released when its transaction ends.\n")
    exec(compile(blocks[0], "README.md", "exec"), {})
    rank, _, uri, line = capsys.readouterr().out.splitlines()[0].split()
    assert (rank, uri, line) == ("1", "docs/rolling.md", "1")
