"""Fixtures every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _data_root() -> Path:
    return Path(os.environ.get("WEFT_DATA", ROOT / ".." / "shared" / "data")).resolve()


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real test collections; the test skips where it is missing."""
    root = _data_root()
    if not root.is_dir():
        pytest.skip(f"no test collections at {root}: set WEFT_DATA")
    return root
