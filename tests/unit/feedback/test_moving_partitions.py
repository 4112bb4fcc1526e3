"""SCL-14: a partition goes on from another host, with the same bits, and the host that lost it is stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.copies import Host, hosts_of, memory_url
from tests.support.feedback_events import RULES, explicit, impression, records
from tests.support.feedback_source import FakeLog, FakeSource
from weft.catalog.catalog import Catalog
from weft.domain.errors import FencedError
from weft.domain.events import AnyEvent
from weft.feedback.run.partitions import partition_folder, partitions_in, states_in
from weft.feedback.run.updater import Updater
from weft.feedback.store.checkpoints import write_checkpoint
from weft.feedback.store.heads import read_head, show
from weft.feedback.store.state import STATE_FILE
from weft.feedback.store.tables import evidence_in
from weft.learning.evidence import Evidence
from weft.runtime.storage import working_copy
from weft.runtime.storage.working_copy import HEAD, working_copy_of


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(working_copy, "FOLLOW_S", 0.0)
    return hosts_of(memory_url(), tmp_path)


def verdicts(numbers: range) -> list[AnyEvent]:
    return [
        event
        for number in numbers
        for event in (
            impression(f"q{number}", event_id=f"shown-{number}"),
            explicit(1.0 if number % 3 else -1.0, 1 + number % 2, query_id=f"q{number}", event_id=f"said-{number}"),
        )
    ]


def opened(store: Path, log: FakeLog) -> Updater:
    return Updater.open(FakeSource(log), store, [0], RULES)


def run(updater: Updater) -> None:
    while updater.step(0.0):
        pass
    updater.publish()


def evidence_at(updater: Updater) -> Evidence:
    return updater._states[0].read(evidence_in)


def alone(store: Path, events: Sequence[AnyEvent]) -> Evidence:
    updater = opened(store, FakeLog.of(records(events)))
    run(updater)
    try:
        return evidence_at(updater)
    finally:
        updater.close()


def log_of(events: Sequence[AnyEvent]) -> FakeLog:
    return FakeLog.of(records(events))


@pytest.fixture
def log() -> FakeLog:
    return log_of(verdicts(range(20)))


def grown(log: FakeLog, count: int) -> FakeLog:
    """The same log with more in it."""
    longer = log_of(verdicts(range(count)))
    log.partitions[0][:] = longer.partitions[0]
    return log


def test_who_only_looks_leaves_what_was_taken_over(host: Host, log: FakeLog) -> None:
    """SCL-14: a head that is known late, from before the partition was taken over here, removes nothing here."""
    first = opened(host("a"), log)
    run(first)
    write_checkpoint(first._states[0])
    first.close()
    late = (partition_folder(host("a"), 0) / HEAD).read_bytes()
    second = opened(host("b"), log)
    folder = partition_folder(host("b"), 0)
    (folder / HEAD).write_bytes(late)
    before = (folder / STATE_FILE).stat().st_ino
    show(folder)
    assert (folder / STATE_FILE).stat().st_ino == before
    second.close()


def test_another_host_goes_on_from_the_newest_checkpoint(host: Host, log: FakeLog, tmp_path: Path) -> None:
    """SCL-14: the lost host's checkpoint and the log give the bits of a single machine."""
    first = opened(host("a"), log)
    run(first)
    write_checkpoint(first._states[0])
    grown(log, 30)
    run(first)  # and the host is lost, with what came since the checkpoint
    second = opened(host("b"), log)
    assert second.progress()[0].report.next_offset == 40
    run(second)
    assert evidence_at(second) == alone(tmp_path / "alone", verdicts(range(30)))
    assert second.progress()[0].report.epoch > first.progress()[0].report.epoch
    assert Catalog(host("c")).live.streamed() == evidence_at(second)


def test_a_host_that_lost_its_partition_publishes_no_more(host: Host, log: FakeLog) -> None:
    """SCL-14: the zombie's next publish fails, of a snapshot and of a checkpoint; what the other published stands."""
    first = opened(host("a"), log)
    run(first)
    second = opened(host("b"), log)
    run(second)
    grown(log, 25)
    with pytest.raises(FencedError, match="another host"):
        run(first)
    with pytest.raises(FencedError, match="another host"):
        write_checkpoint(first._states[0])
    run(second)
    assert Catalog(host("c")).live.streamed() == evidence_at(second)


def test_a_partition_comes_back_to_a_host_that_had_it(host: Host, log: FakeLog, tmp_path: Path) -> None:
    """SCL-14: what lies there from before is another host's past, and is not gone on with."""
    first = opened(host("a"), log)
    run(first)
    first.close()
    second = opened(host("b"), grown(log, 25))
    run(second)
    second.close()  # which leaves a checkpoint of where it stands
    again = opened(host("a"), grown(log, 30))
    assert again.progress()[0].report.next_offset == 50
    run(again)
    assert evidence_at(again) == alone(tmp_path / "alone", verdicts(range(30)))
    again.close()


def test_a_restart_on_the_same_host_goes_on_from_its_own_state(host: Host, log: FakeLog) -> None:
    """SCL-14: nothing is fetched and nothing replayed where the state is at hand."""
    first = opened(host("a"), log)
    run(first)
    first.close()
    again = opened(host("a"), log)
    assert again.progress()[0].report.next_offset == 40
    again.close()


def test_readers_never_see_less_than_was_published(host: Host, log: FakeLog) -> None:
    """SCL-14: who catches up publishes nothing that is older than what stands."""
    first = opened(host("a"), log)
    run(first)
    before = Catalog(host("c")).live.streamed()
    second = opened(host("b"), log)  # from the first checkpoint, which was made before anything was consumed
    assert second.progress()[0].report.next_offset == 0
    second.publish()
    assert Catalog(host("c")).live.streamed() == before
    run(second)
    assert Catalog(host("c")).live.streamed() == before == evidence_at(second)


def test_others_look_at_a_partition_as_of_its_checkpoint(host: Host, log: FakeLog) -> None:
    """SCL-14: status, dead letters and sessions are told on a host that does not own the partition."""
    first = opened(host("a"), log)
    run(first)
    write_checkpoint(first._states[0])
    assert partitions_in(host("b")) == [0]
    (report,) = [state.report() for state in states_in(host("b"), RULES)]
    assert report.next_offset == 40
    grown(log, 25)
    run(first)
    write_checkpoint(first._states[0])
    (report,) = [state.report() for state in states_in(host("b"), RULES)]
    assert report.next_offset == 50


def test_old_snapshots_and_checkpoints_go(host: Host, log: FakeLog) -> None:
    """SCL-14: what nobody reads any more is removed: two checkpoints stay, and the snapshot before."""
    updater = opened(host("a"), log)
    for count in range(20, 27):
        grown(log, count)
        run(updater)
        write_checkpoint(updater._states[0])
    copy = working_copy_of(host("a"))
    assert copy is not None
    keys = [each.key for each in copy.objects.list("updaters/")]
    assert len({key.split("/")[3] for key in keys if "/states/" in key}) == 2
    assert len({key.split("/")[3] for key in keys if "/snapshots/" in key}) <= 2
    head = read_head(partition_folder(host("a"), 0))
    assert all(any(key.startswith(name) for key in keys) for name in head.checkpoints)
    assert {key for key, _ in (head.files or {}).values()} <= set(keys)
