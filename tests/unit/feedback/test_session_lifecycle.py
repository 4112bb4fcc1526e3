"""LRN-14 to LRN-17: what becomes of a session's evidence in its partition."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.feedback_events import NOON, RULES, impression, rules, selection, shown
from tests.support.session_store import Partition, alone, judged, phase
from weft.feedback.fold.sessions import Phase
from weft.feedback.settings import milliseconds
from weft.feedback.store.overlays import SETTLED, session_in, sessions_in
from weft.learning.evidence import MICRO, Evidence
from weft.learning.observe.triggers import LEARNED

IDLE_MS, SUSPENDED_MS = milliseconds(RULES.time.session_idle_s), milliseconds(RULES.time.session_suspended_s)
LEAPS = rules(time__clock_step_s=10.0**9)  # a record's time moves the clock at once, however far it is


def traces(evidence: Evidence) -> list[object]:
    """Clicks and learned triggers."""
    clicks = [key for key in evidence.counts if key.bin.endswith(".clicked")]
    return [*clicks, *(key for key in evidence.usage if key.bin.startswith(LEARNED))]


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path / "store")


def test_a_session_without_a_start_is_heard_by_all_at_once(partition: Partition) -> None:
    """FBK-7: nobody is made to send session events."""
    partition.feed(judged())
    assert not partition.shared.is_empty
    assert partition.report.open_sessions == 0


def test_what_a_started_session_learns_is_its_own(partition: Partition, tmp_path: Path) -> None:
    """LRN-14: it writes only its overlay, and nobody else's reads change."""
    partition.feed([phase("start"), *judged()])
    assert partition.shared.is_empty
    assert partition.overlay("s1") == alone(tmp_path / "alone", judged())
    assert partition.report.open_sessions == 1


def test_completing_shares_it(partition: Partition, tmp_path: Path) -> None:
    """LRN-16: current base + overlay, and the version moves by one."""
    partition.feed([*judged("other", -1.0), phase("start"), *judged(), phase("complete")])
    both = alone(tmp_path / "a", judged()) + alone(tmp_path / "b", judged("other", -1.0))
    assert partition.shared == both
    assert (partition.report.version, partition.report.open_sessions) == (1, 0)
    assert partition.overlay("s1").is_empty
    assert partition.overlay("s1", SETTLED) == alone(tmp_path / "c", judged())


def test_completing_twice_equals_once(partition: Partition, tmp_path: Path) -> None:
    """LRN-16: the second time there is nothing left to merge."""
    partition.feed([phase("start"), *judged(), phase("complete"), phase("complete", event_id="again")])
    assert partition.shared == alone(tmp_path / "alone", judged())
    assert partition.report.version == 1


def test_an_abandoned_session_leaves_nothing_and_is_counted(partition: Partition) -> None:
    """LRN-15: its events were applied all the same, so that every record still has one fate."""
    partition.feed([phase("start"), *judged(), phase("abandon"), *judged(query="late")])
    assert partition.shared.is_empty
    assert partition.overlay("s1").is_empty
    assert (partition.report.applied, partition.report.dropped) == (6, 4)
    assert partition.report.balanced


@pytest.mark.parametrize("cuts", [True, False], ids=["a batch each", "one batch"])
def test_what_one_life_dropped_no_later_one_merges(partition: Partition, tmp_path: Path, cuts: bool) -> None:
    """LRN-15, LRN-16: abandoned, started again and completed, at once or one after the other."""
    partition.feed([phase("start"), *judged(signal=-1.0)])
    again = [phase("abandon"), phase("start", event_id="again"), *judged(query="q2"), phase("complete")]
    partition.feed(again, cuts=cuts)
    assert partition.shared == alone(tmp_path / "alone", judged(query="q2"))
    assert partition.overlay("s1").is_empty


def test_suspending_and_resuming_change_nothing_it_has_learned(partition: Partition, tmp_path: Path) -> None:
    """LRN-15: resume restores the overlay exactly, here through a store that was closed and opened in between."""
    partition.feed([phase("start"), *judged(), phase("suspend")])
    before = partition.overlay("s1")
    partition.state.close()
    reopened = Partition(tmp_path / "store")
    reopened.feed([phase("resume")])
    assert reopened.overlay("s1") == before
    assert not before.is_empty


@pytest.mark.parametrize("cuts", [True, False], ids=["a batch each", "one batch"])
@pytest.mark.parametrize("silence_ms", [IDLE_MS, IDLE_MS + 1])
def test_a_session_expires_by_the_clock_of_its_partition(tmp_path: Path, silence_ms: int, cuts: bool) -> None:
    """LRN-15: silent for longer than it may be; whether it is told by its next event or by a stranger's.

    What it learned is everybody's either way, and the record that it is merged at does not depend on batches.
    """
    partition = Partition(tmp_path / "store", LEAPS)
    later = NOON + silence_ms
    stranger = judged("stranger", ts=later)
    partition.feed([phase("start"), *judged(), *stranger, phase("complete", ts=later)], cuts=cuts)
    life = partition.state.read(session_in, "s1")
    assert (life.phase, life.merged) == ((Phase.EXPIRED, 3) if silence_ms > IDLE_MS else (Phase.COMPLETED, 5))
    assert partition.shared == alone(tmp_path / "alone", [*judged(), *stranger], LEAPS)
    assert (partition.report.dropped, partition.report.version) == (0, 1)


@pytest.mark.parametrize("cuts", [True, False], ids=["a batch each", "one batch"])
def test_what_an_expired_session_said_stays_its_own_to_take_back(tmp_path: Path, cuts: bool) -> None:
    """LRN-15, LRN-17, CON-1: merged like one that completed, what it says afterwards too, and unlearned like one."""
    partition = Partition(tmp_path / "store", LEAPS)
    later = {"ts": NOON + IDLE_MS + 1}
    stranger = judged("stranger", **later)
    partition.feed([phase("start"), *judged(), *stranger, *judged(query="q2", rank=2, **later)], cuts=cuts)
    said = [*judged(), *judged(query="q2", rank=2, **later)]
    assert partition.overlay("s1", SETTLED) == alone(tmp_path / "said", said, LEAPS)
    assert partition.shared == alone(tmp_path / "both", [*stranger, *said], LEAPS)
    partition.feed([phase("unlearn", **later)])
    assert partition.shared == alone(tmp_path / "stranger", stranger, LEAPS)
    again = judged(query="q3", **later)
    partition.feed([phase("start", event_id="again", **later), *again], cuts=cuts)
    assert partition.overlay("s1") == alone(tmp_path / "again", again, LEAPS)


@pytest.mark.parametrize("cuts", [True, False], ids=["a batch each", "one batch"])
def test_abandoning_drops_what_silence_would_merge(tmp_path: Path, cuts: bool) -> None:
    """LRN-15: only `abandon` drops."""
    partition = Partition(tmp_path, LEAPS)
    stranger = phase("start", "stranger", ts=NOON + SUSPENDED_MS)
    partition.feed([phase("start"), *judged(), phase("abandon"), stranger], cuts=cuts)
    assert (partition.shared.is_empty, partition.report.dropped) == (True, 2)


@pytest.mark.parametrize("silence_ms", [IDLE_MS + 1, SUSPENDED_MS, SUSPENDED_MS + 1])
def test_a_suspended_session_may_sleep_longer(tmp_path: Path, silence_ms: int) -> None:
    """LRN-15: it said that it would."""
    partition = Partition(tmp_path, LEAPS)
    partition.feed([phase("start"), phase("suspend"), phase("resume", "other", ts=NOON + silence_ms)])
    expected = Phase.EXPIRED if silence_ms > SUSPENDED_MS else Phase.SUSPENDED
    assert partition.state.read(session_in, "s1").phase is expected


def test_a_session_that_was_started_again_has_a_new_overlay(partition: Partition, tmp_path: Path) -> None:
    """LRN-15: what it had settled stays settled, what it learns now is its own once more."""
    partition.feed(
        [phase("start"), *judged(), phase("complete"), phase("start", event_id="again"), *judged(query="q2")]
    )
    assert partition.shared == alone(tmp_path / "alone", judged())
    assert partition.overlay("s1") == alone(tmp_path / "again", judged(query="q2"))


def test_feedback_after_completion_is_shared_and_still_known_to_be_the_sessions(
    partition: Partition, tmp_path: Path
) -> None:
    """LRN-17: so that unlearning finds it."""
    partition.feed([phase("start"), *judged(), phase("complete"), *judged(query="q2", rank=2)])
    assert partition.shared == alone(tmp_path / "alone", [*judged(), *judged(query="q2", rank=2)])
    assert partition.overlay("s1", SETTLED) == partition.shared
    partition.feed([phase("unlearn")])
    assert partition.shared.is_empty


def test_unlearning_equals_never_having_seen_it(partition: Partition, tmp_path: Path) -> None:
    """LRN-17: bit for bit, and it counts what it took out."""
    others = [*judged("other", -1.0), *judged("other", 0.3, query="q2")]
    partition.feed([phase("start"), *judged(signal=0.7), *others, phase("complete"), phase("unlearn")])
    assert partition.shared == alone(tmp_path / "alone", others)
    assert (partition.report.version, partition.report.dropped) == (2, 2)
    partition.feed([*judged(query="after"), phase("complete", event_id="again"), phase("unlearn", event_id="twice")])
    assert partition.shared == alone(tmp_path / "still", others)


def test_a_session_that_nobody_started_has_nothing_to_unlearn(partition: Partition) -> None:
    """LRN-17: what it said cannot be told apart any more."""
    partition.feed([*judged(), phase("unlearn"), phase("complete"), phase("abandon")])
    assert not partition.shared.is_empty
    assert partition.report.version == 0


def test_forgotten_sessions_leave_the_store(tmp_path: Path) -> None:
    """LRN-17, LRN-15: so many records are kept; an open session that old is merged, a settled one stays settled."""
    partition = Partition(tmp_path / "store", rules(limits__session_records=4))
    partition.feed([phase("start", "open"), *judged("open"), phase("start", "b"), *judged("b"), phase("complete", "b")])
    partition.feed([phase("suspend", "filling", event_id=f"filling {n}") for n in range(5)])
    assert partition.state.read(sessions_in) == []
    assert partition.shared == alone(tmp_path / "alone", [*judged("open"), *judged("b")])
    assert (partition.report.dropped, partition.report.version) == (0, 2)


def test_sessions_share_their_principals_day_and_what_stands_beside_leaves_no_clicks(tmp_path: Path) -> None:
    """LRN-3, LRN-17: of two sessions a share counts, and of one all of it, once the other is unlearned.

    Meanwhile each believes itself, and what is said outside of sessions comes before either.
    """
    tight = rules(limits__principal_daily=1.0)
    page = [shown(rank) for rank in range(1, 6)]
    picked = [
        impression("q2", page, session_id="late"),
        selection(5, query_id="q2", session_id="late", terms=("retry",)),
    ]
    partition = Partition(tmp_path / "store", tight)
    partition.feed([phase("start", "early"), phase("start", "late"), *judged("early"), *picked])
    own, other = partition.overlay("late"), partition.overlay("early")
    partition.feed([phase("complete", "late"), phase("complete", "early")])
    assert partition.overlay("late", SETTLED) == own
    assert 0 < relevance(partition.shared) <= MICRO < relevance(own + other)
    partition.feed([phase("unlearn", "early")])
    assert partition.shared == own
    assert len(traces(own)) == 2
    partition.feed(judged("outside"))
    assert relevance(partition.shared) == relevance(alone(tmp_path / "outside", judged("outside"))) == MICRO
    assert len(traces(partition.shared)) == 1  # words to be found by are bounded when they are read


def relevance(evidence: Evidence) -> int:
    return sum(micro for key, micro in evidence.counts.items() if key.parameter == "relevance")
