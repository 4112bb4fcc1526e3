"""ING-29: borders of topics are found better than by TextTiling, and than by every distance above a threshold; slow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.topic_measure import BEFORE, chats, joined_sessions, measured, ways_of
from weft.settings import load_settings

pytestmark = [pytest.mark.slow, pytest.mark.data]


def test_borders_are_found_better(data_root: Path) -> None:
    """ING-29: by Pk and WindowDiff, on LoCoMo's sessions joined end to end, and on chats of questions and answers."""
    ways = ways_of(load_settings())
    for sets in [*joined_sessions(data_root).values(), chats(60)]:
        figures = {way: measured(sets, finds) for way, finds in ways.items()}
        for other in ("TextTiling", f"every distance above {BEFORE}"):
            assert figures["in force"][:2] < figures[other][:2]
            assert figures["in force"][1] < figures[other][1]
