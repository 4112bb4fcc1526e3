"""FBK-3, LRN-15: a producer whose clock is wrong carries nobody else's time away, where producers set record times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.feedback_events import NOON, RULES, records
from tests.support.session_store import Partition, alone, judged, phase
from weft.domain.events import AnyEvent
from weft.feedback.fold.sessions import Phase
from weft.feedback.pipeline import consume
from weft.feedback.store.overlays import session_in

HOUR = 3_600_000
FUTURE = NOON + 36 * 365 * 24 * HOUR  # in the sixties


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path / "store")


def broken(number: int, ts: int = FUTURE) -> list[AnyEvent]:
    """Verdicts of one principal whose clock stands elsewhere: its records and its events say so."""
    name = f"broken{number}"
    return judged(name, principal="broken", ts=ts)


@pytest.mark.parametrize("ts", [FUTURE, NOON - 5 * 365 * 24 * HOUR])
def test_honest_sessions_and_events_go_on_beside_a_broken_clock(partition: Partition, tmp_path: Path, ts: int) -> None:
    """FBK-3, LRN-15: fifty of its records, between those of two others: none of theirs is late, no session expires."""
    honest = [
        phase("start", "mine", principal="ada"),
        *judged("mine", principal="ada"),
        *judged("other", principal="bob"),
    ]
    partition.feed([*honest, *(event for number in range(25) for event in broken(number, ts))])
    later = [
        *judged("mine", query="q2", principal="ada", ts=NOON + HOUR),
        *judged("other", query="q2", principal="bob", ts=NOON + HOUR),
    ]
    partition.feed([*later, phase("complete", "mine", principal="ada", ts=NOON + HOUR)])
    report = partition.report
    life = partition.state.read(session_in, "mine")
    assert life is not None
    assert life.phase is Phase.COMPLETED
    assert report.clock_ms <= NOON + 2 * HOUR
    strangers = alone(tmp_path / "alone", [*honest[1:], *later]).usage
    assert {key: partition.shared.usage[key] for key in strangers} == strangers
    assert report.balanced
    assert report.late == (0 if ts == FUTURE else 50)


def test_what_it_says_counts_today_and_not_in_the_future(partition: Partition) -> None:
    """LRN-2: evidence of a day that has not come would never fade."""
    partition.feed([*judged("mine", principal="ada"), *judged("other", principal="bob"), *broken(0)])
    days = {key.day for key in partition.shared.usage} | {key.day for key in partition.shared.counts}
    assert days == {NOON // (24 * HOUR)}


@pytest.mark.parametrize(("ts", "reason"), [(FUTURE, "too_new"), (2**62, "too_new"), (1_000, "too_old")])
def test_where_the_broker_sets_the_times_a_wrong_event_is_a_dead_letter(
    partition: Partition, ts: int, reason: str
) -> None:
    """FBK-3: with its reason, and nothing else moves."""
    _told_by_broker(partition, [*judged("mine", principal="ada"), *broken(0, ts)])
    report = partition.report
    assert report.clock_ms == NOON
    assert dict(report.reasons) == {reason: 2}
    assert report.balanced


def _told_by_broker(partition: Partition, events: Sequence[AnyEvent]) -> None:
    lain = [record._replace(timestamp=NOON, by_broker=True) for record in records(events)]
    consume(lain, partition._facts, partition.state, RULES)
