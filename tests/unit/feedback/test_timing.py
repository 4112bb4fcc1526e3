"""FBK-3, ARC-3: which event times are believed, decided from the log alone."""

import pytest

from pipelines.domain.errors import InvalidEventError
from pipelines.feedback.timing import advance, effective_ms
from tests.support.feedback_events import NOON, RULES

TIME = RULES.time
STEP = round(TIME.clock_step_s * 1000)
LEAD = round(TIME.lead_s * 1000)


@pytest.mark.parametrize("unset", [-1, 0, 2**62, TIME.earliest_ms - 1, TIME.latest_ms + 1])
def test_a_record_time_that_cannot_be_moves_no_clock(unset: int) -> None:
    """FBK-3: producers may choose any integer."""
    assert advance(NOON, unset, TIME) == NOON
    assert advance(0, unset, TIME) == 0


def test_the_clock_follows_records_and_never_goes_back() -> None:
    """ARC-3."""
    assert advance(0, NOON, TIME) == NOON
    assert advance(NOON, NOON + 5, TIME) == NOON + 5
    assert advance(NOON, NOON - 5, TIME) == NOON


def test_one_record_moves_the_clock_by_one_step_at_most() -> None:
    """FBK-3: one timestamp never outweighs an ordinary one."""
    assert advance(NOON, NOON + 1000 * STEP, TIME) == NOON + STEP


def test_an_event_never_happens_after_the_clock() -> None:
    """FBK-3: effective time = min(event time, clock)."""
    assert effective_ms(NOON - 7, NOON, NOON, TIME) == NOON - 7
    assert effective_ms(NOON + LEAD, NOON, NOON, TIME) == NOON


@pytest.mark.parametrize(
    ("ts", "record_ms", "reason"),
    [
        (TIME.earliest_ms - 1, NOON, "too_old"),
        (-(2**70), NOON, "too_old"),
        (NOON + LEAD + 1, NOON, "too_new"),
        (2**62, NOON, "too_new"),
        (NOON + LEAD + 1, -1, "too_new"),
        (2**62, 2**62, "too_new"),
    ],
)
def test_unbelievable_times_become_dead_letters(ts: int, record_ms: int, reason: str) -> None:
    """FBK-3: far-past and far-future events."""
    with pytest.raises(InvalidEventError) as caught:
        effective_ms(ts, record_ms, advance(NOON, record_ms, TIME), TIME)
    assert caught.value.reason == reason
