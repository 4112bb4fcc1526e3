"""LRN-17: the law of unlearning in `tests/laws/test_session_laws.py`, over a thousand logs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.session_logs import Log, logs, require_unlearned, tight, unlearnings
from weft.feedback.settings import FeedbackSettings

pytestmark = [pytest.mark.slow, pytest.mark.crash, pytest.mark.timeout(1_800)]


@settings(max_examples=1_000, deadline=None)
@given(
    log=logs,
    limits=tight,
    unlearned=unlearnings,
    cuts=st.sets(st.integers(1, 50), max_size=6),
)
def test_unlearning_equals_never_having_seen_it_at_length(
    log: Log, limits: FeedbackSettings, unlearned: dict[str, int], cuts: set[int]
) -> None:
    """LRN-17, LRN-3: bit for bit, beyond allowances or not, whenever and whichever sessions are unlearned."""
    require_unlearned(log, limits, unlearned, cuts)
