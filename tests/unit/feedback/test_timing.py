"""FBK-3, ARC-3: which event times are believed, decided from the log alone."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.feedback_events import NOON, RULES, rules
from weft.domain.errors import InvalidEventError
from weft.feedback.fold.batch import EARLIEST_MS, LATEST_MS, PartitionClock, RecordTimes, advance, effective_ms

TIME = RULES.time
STEP = round(TIME.clock_step_s * 1000)
LEAD = round(TIME.lead_s * 1000)
NEVER = PartitionClock()


def after(*claims: tuple[str, int], start: PartitionClock = NEVER, by_broker: bool = False) -> PartitionClock:
    """The clock after records of principals, each with its time; one after the other, and all at once alike."""
    clock = start
    for offset, (who, record_ms) in enumerate(claims):
        _, clock = advance(clock, RecordTimes([offset], [who], [record_ms], [by_broker]), TIME)
    whole = RecordTimes(range(len(claims)), *map(list, zip(*claims, strict=True)), [by_broker] * len(claims))
    shown, at_once = advance(start, whole, TIME)
    assert at_once == clock
    assert shown[-1] == clock.now_ms
    return clock


@pytest.mark.parametrize("unset", [-1, 0, 2**62, 2**70, EARLIEST_MS - 1, LATEST_MS + 1])
def test_a_record_time_that_cannot_be_moves_no_clock(unset: int) -> None:
    """FBK-3: producers may choose any integer."""
    assert after(("ada", NOON), ("ada", unset)).now_ms == NOON
    assert after(("ada", unset)).now_ms == 0


def test_the_clock_follows_records_and_never_goes_back() -> None:
    """ARC-3."""
    assert after(("ada", NOON)).now_ms == NOON
    assert after(("ada", NOON), ("ada", NOON + 5)).now_ms == NOON + 5
    assert after(("ada", NOON), ("ada", NOON - 5)).now_ms == NOON


@pytest.mark.parametrize("by_broker", [False, True])
def test_one_record_moves_the_clock_by_one_step_at_most(by_broker: bool) -> None:
    """FBK-3: one timestamp never outweighs an ordinary one."""
    assert after(("ada", NOON), ("ada", NOON + 1000 * STEP), by_broker=by_broker).now_ms == NOON + STEP


BOTH = (("ada", NOON), ("bob", NOON))
IN_2062 = NOON + 36 * 365 * 24 * STEP


def test_one_principal_carries_the_clock_no_further_than_a_step_beyond_all_others() -> None:
    """FBK-3: neither by leaps, however many, nor step by step; and others' time goes on beneath."""
    leaps = after(*BOTH, *[("bob", IN_2062)] * 100)
    creeps = after(*BOTH, *[("bob", NOON + STEP // 2 * each) for each in range(1, 100)])
    assert leaps.now_ms == creeps.now_ms == NOON + STEP
    assert after(("ada", NOON + 7), ("bob", IN_2062), start=leaps).now_ms == NOON + 7 + STEP


def test_what_another_principal_confirms_is_believed() -> None:
    """FBK-3: after a night the first two that are heard bring the clock on, an hour per record."""
    morning = NOON + 16 * STEP
    assert after(*BOTH, ("ada", morning)).now_ms == NOON + STEP
    assert after(*BOTH, *[("ada", morning), ("bob", morning)] * 8).now_ms == morning


def test_a_principal_that_has_the_partition_to_itself_is_believed() -> None:
    """FBK-3: from the start, or after so many records in a row; another one's record begins the count anew."""
    later = [("ada", NOON + 10 * STEP)] * (TIME.clock_alone_records + 10)
    assert after(("ada", NOON), *later[:10]).now_ms == NOON + 10 * STEP
    assert after(*BOTH, *later).now_ms == NOON + 10 * STEP
    half = later[: TIME.clock_alone_records - 10]
    assert after(*BOTH, *half, ("bob", NOON), *half).now_ms == NOON + STEP


def test_times_of_the_broker_need_nobody_to_confirm_them() -> None:
    """FBK-3: no producer chooses them."""
    assert after(*BOTH, *[("ada", NOON + 10 * STEP)] * 10, by_broker=True).now_ms == NOON + 10 * STEP


@given(
    claims=st.lists(
        st.tuples(st.sampled_from([None, "", "ada", "bob", "eve"]), st.integers(-2, 40), st.booleans()),
        min_size=1,
        max_size=40,
    ),
    cuts=st.sets(st.integers(1, 39)),
    alone=st.integers(1, 12),
)
def test_where_batches_begin_moves_no_clock(
    claims: list[tuple[str | None, int, bool]], cuts: set[int], alone: int
) -> None:
    """ARC-3: all records at once, in any batches, or one by one."""
    told = rules(time__clock_alone_records=alone).time
    rows = [(offset, who, NOON + hours * STEP // 4, mine) for offset, (who, hours, mine) in enumerate(claims)]
    singly, in_batches, shown = PartitionClock(), PartitionClock(), []
    for offset, who, record_ms, mine in rows:
        now, singly = advance(singly, RecordTimes([offset], [who], [record_ms], [mine]), told)
        shown += now
    edges = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    in_parts: list[int] = []
    for begin, end in pairwise(edges):
        part, in_batches = advance(in_batches, RecordTimes(*map(list, zip(*rows[begin:end], strict=True))), told)
        in_parts += part
    assert (in_batches, in_parts) == (singly, shown)


def test_an_event_never_happens_after_the_clock() -> None:
    """FBK-3: effective time = min(event time, clock)."""
    assert effective_ms(NOON - 7, NOON, NOON, lead_ms=LEAD) == NOON - 7
    assert effective_ms(NOON + LEAD, NOON, NOON, lead_ms=LEAD) == NOON


@pytest.mark.parametrize(
    ("ts", "record_ms", "reason"),
    [
        (EARLIEST_MS - 1, NOON, "too_old"),
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
        effective_ms(ts, record_ms, after(("ada", NOON), ("ada", record_ms)).now_ms, lead_ms=LEAD)
    assert caught.value.reason == reason
