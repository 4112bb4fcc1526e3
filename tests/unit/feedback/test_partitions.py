"""ARC-3, FBK-12: whoever looks into a store changes nothing in it."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.feedback_events import RULES, explicit, impression, records, session
from tests.support.feedback_source import FakeLog, FakeSource
from tests.support.folded_evidence import digest_of_stores
from tests.support.session_store import Partition, judged, phase
from weft.cli.console.partitions import states
from weft.domain.errors import CorruptionError, StoreError
from weft.feedback.run.metrics import partition_progress
from weft.feedback.run.partitions import partition_folder, partitions_in, states_in
from weft.feedback.run.updater import Updater
from weft.feedback.store.checkpoints import write_checkpoint
from weft.feedback.store.report import COUNTS, FORMAT
from weft.feedback.store.rows import define_row_hash
from weft.feedback.store.state import STATE_FILE, PartitionState
from weft.settings import load_settings

pytestmark = pytest.mark.integration

SPOKEN = records([session(), impression(), explicit()])


def test_every_partition_is_told_of_by_its_counts(tmp_path: Path) -> None:
    """FBK-12: in the order of their numbers; a copy that lies beside them is none."""
    for number in (10, 2):
        Partition(tmp_path, partition=number, partitions=11).feed([phase("start"), *judged()])
    partition_folder(tmp_path, 2).with_name("2.copy").symlink_to(partition_folder(tmp_path, 2))
    found = {state.partition: state.report().counts for state in states_in(tmp_path, RULES)}
    expected = dict.fromkeys(COUNTS, 0) | {"consumed": 3, "applied": 3}
    assert list(found.items()) == [(2, expected), (10, expected)]


def test_a_folder_that_was_never_claimed_is_no_partition(tmp_path: Path) -> None:
    """FBK-12: an updater that is only starting has nothing to tell, and is not given an empty state."""
    partition_folder(tmp_path, 0).mkdir(parents=True)
    assert partition_progress(tmp_path, RULES) == ([], [])
    with pytest.raises(StoreError, match=r"expected a store of partition 0, found \[\]"):
        list(states(load_settings(assignments=[f"storage.root={tmp_path}"], environment={}), 0))
    assert not list(partition_folder(tmp_path, 0).iterdir())


def test_a_state_that_is_just_being_made_is_no_partition(tmp_path: Path) -> None:
    """FBK-12: it is there, and no updater has claimed it yet; one that lost its tables is damaged, all the same."""
    folder = partition_folder(tmp_path, 0)
    PartitionState(folder, 0, RULES).close()
    assert partition_progress(tmp_path, RULES) == ([], [])
    with pytest.raises(StoreError, match="expected a store of partition 0, found one that no updater has claimed yet"):
        list(states(load_settings(assignments=[f"storage.root={tmp_path}"], environment={}), 0))
    updater = Updater.open(FakeSource(FakeLog.of(SPOKEN)), tmp_path, [0], RULES)
    write_checkpoint(updater._states[0])
    updater.close()
    with contextlib.closing(sqlite3.connect(folder / STATE_FILE)) as connection:
        connection.execute("drop table progress")
    with pytest.raises(CorruptionError, match="no such table: progress"):
        partition_progress(tmp_path, RULES)


def test_who_looks_while_a_state_is_being_made_neither_fails_nor_makes_its_updater_fail(tmp_path: Path) -> None:
    """ARC-3, FBK-12: in forty stores, with two who look all the time."""
    stores, all_made = [tmp_path / str(number) for number in range(40)], threading.Event()

    def look() -> set[int]:
        seen: set[int] = set()
        while not all_made.is_set():
            for store in stores:
                seen.update(standing.report.consumed for standing in partition_progress(store, RULES)[0])
        return seen

    with ThreadPoolExecutor(2) as threads:
        looking = [threads.submit(look) for _ in range(2)]
        try:
            for store in stores:
                updater = Updater.open(FakeSource(FakeLog.of(SPOKEN)), store, [0], RULES)
                updater.step(0.0)
                updater.close()
        finally:
            all_made.set()
        assert [each.result() <= {0, len(SPOKEN)} for each in looking] == [True, True]


@pytest.mark.parametrize("emptied", [True, False])
def test_a_lost_state_is_restored_after_somebody_looked_for_it(tmp_path: Path, emptied: bool) -> None:
    """ARC-3: what was looked for is not made, empty: an updater would begin there, without what it had learned."""
    folder, log = partition_folder(tmp_path, 0), FakeLog.of(SPOKEN)
    updater = Updater.open(FakeSource(log), tmp_path, [0], RULES)
    updater.step(0.0)
    write_checkpoint(updater._states[0])
    updater.close()
    taught = digest_of_stores([folder])
    (folder / STATE_FILE).write_bytes(b"") if emptied else (folder / STATE_FILE).unlink()
    assert partitions_in(tmp_path) == [0]
    with pytest.raises(CorruptionError, match="expected a partition's state"):
        partition_progress(tmp_path, RULES)
    log.log_start = len(SPOKEN)  # retention has taken the events, too
    Updater.open(FakeSource(log), tmp_path, [0], RULES).close()
    assert digest_of_stores([folder]) == taught


def test_a_state_of_another_version_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    """OPS-15, ARC-3: no updater takes its tables for its own, and nobody reads them."""
    log = FakeLog.of(SPOKEN)
    Updater.open(FakeSource(log), tmp_path, [0], RULES).close()
    file = partition_folder(tmp_path, 0) / STATE_FILE
    with contextlib.closing(sqlite3.connect(file)) as connection:
        define_row_hash(connection)
        connection.execute("update progress set format = 0")
        connection.commit()
    with pytest.raises(StoreError, match=f"expected a partition's state of format {FORMAT}, found 0: another version"):
        Updater.open(FakeSource(log), tmp_path, [0], RULES)
    with pytest.raises(StoreError, match="weft consolidate --adopt"):
        list(states_in(tmp_path, RULES))
