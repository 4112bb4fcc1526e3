"""LES-3, LES-4: lessons whose true rates are known are believed to be as good as they are, and the bad ones go."""

from __future__ import annotations

import pytest

from tests.support.lesson_simulation import WORLDS, calibrated, retirement, watched


@pytest.mark.slow
@pytest.mark.parametrize("name", ["as stated", "any rate", "mostly good"])
def test_belief_is_calibrated_from_twenty_outcomes_on(name: str) -> None:
    """LES-4: mean deviation by band at most .03."""
    assert calibrated(watched(WORLDS[name], lessons=600, outcomes=40, seed=7), least=20) <= 0.03


@pytest.mark.slow
def test_bad_lessons_are_retired_and_good_ones_stay() -> None:
    """LES-3: right at least .8 of the time, at most 5 % ever; right at most .3, at least 95 %, soon."""
    assert retirement(0.8, lessons=500, outcomes=40, seed=7).share <= 0.05
    for rate in (0.1, 0.3):
        bad = retirement(rate, lessons=500, outcomes=40, seed=7)
        assert bad.share >= 0.95
        assert bad.after is not None
        assert bad.after <= 5
