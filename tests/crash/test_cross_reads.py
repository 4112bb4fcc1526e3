"""LRN-14: what `tests/laws/test_session_laws.py` says of cross-reads, at length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.session_projects import read_at_random

pytestmark = [pytest.mark.slow, pytest.mark.crash, pytest.mark.timeout(1_800)]


def test_nothing_is_ever_read_across_sessions_or_projects_at_length(tmp_path: Path) -> None:
    """LRN-14: 10,000 random operations over 50 sessions in each of 3 stores, 0 cross-reads."""
    read_at_random(tmp_path, operations=10_000)
