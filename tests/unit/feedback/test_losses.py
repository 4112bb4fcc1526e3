"""FBK-14: what a log lost unread stops a partition until somebody accepts it, and then counts for good."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.support.feedback_events import RULES, explicit, impression, records, rules, session
from tests.support.feedback_source import FakeLog, FakeSource
from weft.domain.errors import MissingTopicError, WrongLogError
from weft.feedback.run.metrics import losses_of, prometheus, samples
from weft.feedback.run.partitions import claimed, partition_folder
from weft.feedback.run.updater import Updater
from weft.feedback.store.report import MADE_AGAIN, RETENTION, Acceptance, Loss, PartitionReport, losses_in
from weft.feedback.store.state import STATE_FILE
from weft.feedback.store.tables import evidence_in
from weft.learning.evidence import Evidence
from weft.runtime.kafka.log import LogFacts

ADA = Acceptance("ada@host", 7_000)


def log_of(*contents: object) -> FakeLog:
    return FakeLog.of(records(contents))  # type: ignore[arg-type]


def opened(store: Path, log: FakeLog, **changes: object) -> Updater:
    return Updater.open(FakeSource(log), store, range(len(log.partitions)), rules(**changes))


def consumed(store: Path, log: FakeLog, *, polls: int | None = None, **changes: object) -> PartitionReport:
    """The first partition after an updater read the log, or so many polls of it."""
    with contextlib.closing(opened(store, log, **changes)) as updater:
        while updater.step(0.0) and polls != 1:
            polls = None if polls is None else polls - 1
        report = updater.progress()[0].report
    assert report.balanced
    return report


def accept(store: Path, log: FakeLog, acceptance: Acceptance = ADA) -> list[Loss]:
    folder, facts = partition_folder(store, 0), FakeSource(log).facts()
    state = claimed(folder, 0, RULES, facts, log_start=log.log_start, acceptance=acceptance)
    with contextlib.closing(state):
        assert state.report().balanced
        return state.read(losses_in)


def evidence_of(store: Path, log: FakeLog) -> Evidence:
    with contextlib.closing(opened(store, log)) as updater:
        return updater._states[0].read(evidence_in)


def expire(log: FakeLog, before: int) -> None:
    log.log_start = before
    log.partitions[0] = [record for record in log.partitions[0] if record.offset >= before]


def sessions(count: int, name: str = "e") -> list[object]:
    return [session(event_id=f"{name}{number}") for number in range(count)]


def test_records_that_retention_deleted_unread_are_named_and_accepted(tmp_path: Path) -> None:
    """FBK-14: offsets and count, one command, and who accepted how many when."""
    log = log_of(*sessions(20))
    assert consumed(tmp_path, log, polls=1, poll_records=5).next_offset == 5
    expire(log, 12)
    for _ in range(2):
        with pytest.raises(WrongLogError, match=r"expected offset 5 next.*starts at 12: 7 records.*--accept-loss"):
            opened(tmp_path, log)
    assert accept(tmp_path, log) == [Loss(5, 7, RETENTION, 7_000, "ada@host")]
    report = consumed(tmp_path, log)
    assert (report.next_offset, report.consumed, report.lost, report.holes) == (20, 13, 7, 0)
    assert accept(tmp_path, log, Acceptance("eve@host", 8_000)) == [Loss(5, 7, RETENTION, 7_000, "ada@host")]


def test_a_loss_is_reported(tmp_path: Path) -> None:
    """FBK-14: for machines, and as a metric."""
    log = log_of(*sessions(20))
    consumed(tmp_path, log, polls=1, poll_records=5)
    expire(log, 12)
    accept(tmp_path, log)
    with contextlib.closing(opened(tmp_path, log)) as updater:
        metrics = prometheus(samples(tmp_path, updater.progress(), now=0.0))
    assert 'weft_feedback_lost_records_total{partition="0"} 7\n' in metrics
    assert losses_of(tmp_path, RULES) == [
        {
            "partition": 0,
            "offset": 5,
            "records": 7,
            "reason": "retention",
            "accepted_ms": 7_000,
            "accepted_by": "ada@host",
        }
    ]


def test_a_topic_made_again_is_read_on_from_its_start(tmp_path: Path) -> None:
    """FBK-14: what was known to be unread is lost; nothing counts twice, and what belongs together meets."""
    log = log_of(impression(), *sessions(9))
    assert consumed(tmp_path, log, polls=1, poll_records=4).log_end == 10
    again = log_of(session(event_id="e0"), b"{", explicit(), session(event_id="new"))
    with pytest.raises(WrongLogError, match=r"expected topic id .*offsets 4 to 9 .* 6 unread records.*--accept-loss"):
        opened(tmp_path, again)
    assert accept(tmp_path, again) == [Loss(4, 6, MADE_AGAIN, 7_000, "ada@host")]
    report = consumed(tmp_path, again)
    assert (report.topic_id, report.offset_base, report.next_offset) == (again.topic_id, 10, 14)
    assert (report.applied, report.duplicate, report.dead_lettered, report.waiting) == (6, 1, 1, 0)
    whole = log_of(impression(), *sessions(3), explicit())
    consumed(tmp_path / "other", whole)
    assert evidence_of(tmp_path, again) == evidence_of(tmp_path / "other", whole)


def test_a_topic_may_be_made_again_more_than_once(tmp_path: Path) -> None:
    """FBK-14: offsets of the store go on; nobody knows of unread records where everything known was read."""
    for life, log in enumerate([log_of(*sessions(6, f"{life}-")) for life in range(3)]):
        if life:
            with pytest.raises(WrongLogError, match="an unknown number of unread records"):
                opened(tmp_path, log)
            assert accept(tmp_path, log, Acceptance("ada@host", life))[-1] == Loss(
                6 * life, 0, MADE_AGAIN, life, "ada@host"
            )
        report = consumed(tmp_path, log)
        assert (report.consumed, report.applied, report.next_offset) == (6 * life + 6, 6 * life + 6, 6 * life + 6)


def test_what_a_topic_made_again_lost_itself_is_lost_too(tmp_path: Path) -> None:
    """FBK-14: until somebody accepts the new topic, its retention goes on."""
    consumed(tmp_path, log_of(*sessions(6)))
    again = log_of(*sessions(9, "new"))
    expire(again, 4)
    assert accept(tmp_path, again) == [Loss(6, 4, MADE_AGAIN, 7_000, "ada@host")]
    report = consumed(tmp_path, again)
    assert (report.next_offset, report.consumed, report.lost) == (15, 11, 4)
    expire(again, 9)
    assert consumed(tmp_path, again).lost == 4


def test_another_number_of_partitions_cannot_be_accepted(tmp_path: Path) -> None:
    """FBK-5: keys lie elsewhere; a new store is the way on."""
    consumed(tmp_path, log_of(*sessions(6)))
    again = FakeLog.of(records(sessions(3)), partitions=2)  # type: ignore[arg-type]
    with pytest.raises(WrongLogError, match=r"expected topic id .*weft consolidate --adopt"):
        accept(tmp_path, again)


def test_a_damaged_state_comes_back_with_its_loss(tmp_path: Path) -> None:
    """FBK-14, ARC-3: the copy that is made with the acceptance holds it."""
    log = log_of(*sessions(20))
    consumed(tmp_path, log, polls=1, poll_records=5)
    expire(log, 12)
    accept(tmp_path, log)
    consumed(tmp_path, log)
    (partition_folder(tmp_path, 0) / STATE_FILE).write_bytes(b"no database")
    report = consumed(tmp_path, log)
    assert (report.next_offset, report.consumed, report.lost) == (20, 13, 7)


class DeletedLog(FakeSource):
    """A log whose topic is gone: polls bring nothing, and who asks for it is told."""

    gone = False

    def facts(self) -> LogFacts:
        if self.gone:
            raise MissingTopicError("reading weft.feedback at host: expected topic weft.feedback, found none")
        return super().facts()


def test_a_deleted_topic_is_told_from_one_that_is_not_listed_for_a_moment(tmp_path: Path) -> None:
    """FBK-5: only a second answer, a second after the first, counts; then it is called deleted."""
    log = log_of(*sessions(3))
    source = DeletedLog(log)
    updater = Updater.open(source, tmp_path, [0], RULES)
    updater.step(0.0)
    for second in (10.0, 20.0):
        source.gone = True
        for now in (second, second + 0.9):
            with pytest.raises(MissingTopicError):
                updater.step(now)
        source.gone = False
        updater.step(second + 1.0)
    source.gone = True
    with pytest.raises(MissingTopicError):
        updater.step(30.0)
    with pytest.raises(WrongLogError, match=rf"weft\.feedback \(id {log.topic_id}\), found it deleted: .*host"):
        updater.step(31.0)
    updater.close()
