"""What pytest leaves unread: importing a module to find no test in it takes longer than most tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_WHOLLY_MARKED = re.compile(r"^pytestmark = .*$", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over modules without examples, and files of tests that are marked, all of them, as what is left out."""
    if collection_path.suffix != ".py":
        return None
    text = collection_path.read_text("utf-8")
    if not collection_path.name.startswith("test_"):
        return True if ">>> " not in text else None
    left_out = re.findall(r"not (\w+)", config.getoption("markexpr"))
    marks = "".join(_WHOLLY_MARKED.findall(text))
    return True if any(f"pytest.mark.{mark}" in marks for mark in left_out) else None
