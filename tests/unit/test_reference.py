"""OPS-8a: the page of the public names is made from them, and its examples are read by a type checker from outside."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import weft
from tests.support.reference import PAGE, PORTS, rendered, with_ports

pytestmark = pytest.mark.integration


def test_the_page_says_what_the_code_says() -> None:
    text = PAGE.read_text("utf-8")
    assert rendered(text) == text, "docs/python.md is behind the code: run `make reference`"


def test_the_list_of_ports_is_that_of_the_code() -> None:
    text = PORTS.read_text("utf-8")
    assert with_ports(text) == text, "docs/architecture.md is behind the code: run `make reference`"


def test_every_public_name_can_be_imported() -> None:
    assert all(getattr(weft, name) is not None for name in weft.__all__)
    assert sorted(weft.__all__) == weft.__all__


@pytest.mark.slow
def test_an_application_is_checked_strictly(tmp_path: Path) -> None:
    """Its examples, elsewhere, by `mypy --strict`: neither a missing stub nor an untyped call."""
    examples = re.findall(r"```python\n(from .*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 3
    (tmp_path / "application.py").write_text("\n".join(examples), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "application.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout
