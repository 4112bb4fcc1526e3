"""LRN-14 to LRN-17: what searches read of sessions, from the files that updaters publish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.feedback_events import NOON, RULES
from tests.support.session_store import Partition, alone, judged, phase
from weft.catalog.learned import LearnedState
from weft.catalog.overlays import OpenSession
from weft.domain.ids import SessionId
from weft.domain.understanding import SessionMemory
from weft.feedback.publish import snapshot
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.overlays import merge_report_in, session_in
from weft.learning.evidence import Evidence


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path / "store")


def listed(partition: Partition, session_id: str = "s1") -> OpenSession:
    found = partition.catalog.live.listing().find(SessionId(session_id))
    assert found is not None
    return found


def read_by(partition: Partition, session_id: str = "s1") -> Evidence:
    """What a search of this session reads."""
    found = partition.catalog.live.listing().find(SessionId(session_id))
    if found is None:
        return partition.catalog.live.evidence()
    return partition.catalog.bases.read(found.base).evidence + found.overlay


def test_a_session_reads_its_fork_and_its_overlay_whatever_others_merge(partition: Partition, tmp_path: Path) -> None:
    """LRN-14: repeatable reads; and nothing of it is to be seen by others."""
    before, mine = judged("before"), judged("s1", 0.5)
    partition.feed(before)
    partition.publish()
    partition.feed([phase("start"), *mine])
    partition.publish()
    expected = alone(tmp_path / "a", before) + alone(tmp_path / "b", mine)
    assert read_by(partition) == expected
    partition.feed(
        [*judged("other", -1.0), phase("start", "merging"), *judged("merging", -0.2), phase("complete", "merging")]
    )
    partition.publish()
    assert read_by(partition) == expected
    assert read_by(partition, "other") == alone(
        tmp_path / "c", [*before, *judged("other", -1.0), *judged("merging", -0.2)]
    )


def test_a_night_between_fork_and_read_changes_nothing_for_the_session(partition: Partition) -> None:
    """LRN-14: the learned version that was live at the fork is what it goes on reading."""
    partition.feed(judged("before"))
    partition.publish()
    partition.feed([phase("start"), *judged()])
    partition.publish()
    expected, catalog = read_by(partition), partition.catalog
    streamed = catalog.live.streamed_reach()[0]
    night = LearnedState(parent=None, evidence=streamed, cut=streamed)
    catalog.make_live(catalog.learned.publish(night, expected_newest=None))
    partition.feed(judged("after"))
    partition.publish()
    assert read_by(partition) == expected
    partition.feed([phase("complete")])
    partition.publish()
    assert read_by(partition) == catalog.live.evidence() == partition.shared


def test_nothing_is_copied_at_a_fork(partition: Partition) -> None:
    """LRN-14: the base is a name for the snapshot itself, until that is replaced."""
    partition.feed(judged("before"))
    partition.publish()
    snapshot = partition.state.folder / "evidence.parquet"
    inode = snapshot.stat().st_ino
    partition.feed([phase("start"), phase("start", "s2")])
    partition.publish()
    assert listed(partition).base == listed(partition, "s2").base
    (linked,) = (partition.catalog.root / "sessions" / listed(partition).base).glob("*.parquet")
    assert linked.stat().st_ino == inode != snapshot.stat().st_ino


def test_a_base_goes_with_the_last_session_that_reads_it(partition: Partition) -> None:
    """LRN-15: what a session forked from is kept as long as it is open, and not longer."""
    partition.feed([phase("start"), phase("start", "s2")])
    partition.publish()
    base = listed(partition).base
    partition.feed([phase("complete")])
    partition.publish()
    assert partition.catalog.bases.names() == [base]
    partition.feed([phase("abandon", "s2")])
    partition.publish()
    assert partition.catalog.bases.names() == []
    assert list(partition.state.folder.glob("sessions-*")) == []


def test_a_base_of_another_partition_is_left_alone(tmp_path: Path) -> None:
    """LRN-14: partitions share the folder of bases, and each only gives up what nobody names."""
    one, two = (Partition(tmp_path, partition=index, partitions=2) for index in range(2))
    one.feed([phase("start", "a")])
    one.publish()
    base = listed(one, "a").base
    two.feed([phase("start", "b"), phase("abandon", "b"), phase("start", "c")])
    two.publish()
    two.feed([phase("complete", "c")])
    two.publish()
    assert one.catalog.bases.names() == [base]


def test_a_session_started_again_forks_again(partition: Partition, tmp_path: Path) -> None:
    """LRN-15: what it reads then holds what it shared before."""
    partition.feed([phase("start"), *judged()])
    partition.publish()
    partition.feed([phase("complete")])
    partition.publish()
    partition.feed([phase("start", event_id="again", ts=partition.report.clock_ms + 1)])
    partition.publish()
    partition.feed(judged("other"))
    partition.publish()
    assert read_by(partition) == alone(tmp_path / "alone", judged())


def test_a_fork_survives_its_updater(partition: Partition, tmp_path: Path) -> None:
    """ARC-3: a new owner of the partition leaves the session its base."""
    partition.feed([*judged("before"), phase("start")])
    partition.publish()
    base = listed(partition).base
    partition.state.close()
    partition.open()
    partition.feed(judged("other"))
    partition.publish()
    assert listed(partition).base == base


def conflicts_of(partition: Partition, session_id: str = "s1") -> dict[str, object]:
    life = partition.state.read(session_in, session_id)
    report = partition.state.read(merge_report_in, session_id)
    assert life is not None
    assert report is not None
    return json.loads(report)


def conflicting(tmp_path: Path, mine: float, theirs: float, settings: FeedbackSettings = RULES) -> dict[str, object]:
    """The report of a session that said `mine`, while others said `theirs` about the same result."""
    partition = Partition(tmp_path, settings)
    partition.feed([phase("start")])
    partition.publish()
    partition.feed([*judged(signal=mine), *judged("other", theirs)])
    partition.publish()
    partition.feed([phase("complete")])
    partition.publish()
    return conflicts_of(partition)


def test_a_merge_reports_what_others_moved_the_other_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LRN-16: both directions with the observations behind them."""
    monkeypatch.setattr(snapshot, "_MARGIN", 0.01)
    report = conflicting(tmp_path, 1.0, -0.5)
    assert report["conflicts"] == 1
    (conflict,) = report["widest"]
    strength = snapshot._STRENGTH
    assert conflict["place"][0] == "usage"
    assert conflict["before"] == pytest.approx(0.5)
    assert conflict["session_shift"] == pytest.approx((strength / 2 + 1) / (strength + 1) - 0.5)
    assert conflict["others_shift"] == pytest.approx(strength / 2 / (strength + 0.5) - 0.5)
    assert (conflict["session_mass"], conflict["others_mass"]) == (1.0, 0.5)


def test_agreement_and_small_differences_are_no_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LRN-16: by a margin."""
    assert conflicting(tmp_path / "a", 1.0, 0.5)["conflicts"] == 0
    margin = 1.0 / (2 * (snapshot._STRENGTH + 1))  # what one observation moves a half by
    for name, share, conflicts in (("b", 0.99, 1), ("c", 1.01, 0)):
        monkeypatch.setattr(snapshot, "_MARGIN", margin * share)
        assert conflicting(tmp_path / name, 1.0, -1.0)["conflicts"] == conflicts


def test_a_memory_comes_back_exactly_and_goes_with_its_session(partition: Partition) -> None:
    """LRN-15: Thompson state, shift window and recent queries belong to the session."""
    memory = SessionMemory().drawn().asked((0.1, 1 / 3), shift=2 / 7, window=8)
    memories = partition.catalog.memories
    memories.write(SessionId("s1"), memory)
    assert memories.read(SessionId("s1")) == memory
    assert memories.read(SessionId("s2")) == SessionMemory()
    partition.feed([phase("start")])
    partition.publish()
    partition.feed([phase("complete")])
    partition.publish()
    assert memories.read(SessionId("s1")) == SessionMemory()


@pytest.mark.parametrize("later_ms", [0, 5_000])
def test_a_session_that_starts_again_forks_again(partition: Partition, later_ms: int) -> None:
    """LRN-14, LRN-15: also where it ended and started between two snapshots, within a millisecond or later."""
    partition.feed([phase("start"), *judged()])
    partition.publish()
    first = listed(partition).base
    partition.feed(judged("other", -1.0))
    partition.publish()
    again = {"ts": NOON + later_ms}
    partition.feed([phase("complete", **again), phase("start", event_id="again", **again)])
    published = partition.catalog.live.evidence()
    partition.publish()
    assert listed(partition).base != first
    assert read_by(partition) == published  # with what others said meanwhile
    assert not published.is_empty


def test_another_principal_cannot_move_a_session(partition: Partition) -> None:
    """FBK-11: whoever knows a session's id can neither merge what it learned, nor drop or unlearn it, nor wake it."""
    partition.feed([phase("start"), *judged()])
    for name in ("suspend", "complete", "abandon", "unlearn", "resume"):
        partition.feed([phase(name, principal="eve")])
    life = partition.state.read(session_in, "s1")
    assert life is not None
    assert (life.phase, life.principal, life.pending) == ("active", "ada", 2)
    assert partition.report.reasons == {"foreign_principal": 5}
    partition.feed([phase("complete"), phase("start", principal="eve", event_id="seized")])
    life = partition.state.read(session_in, "s1")
    assert life is not None
    assert (life.phase, life.principal, life.settled) == ("completed", "ada", 2)
