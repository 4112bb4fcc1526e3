"""ARC-3, FBK-5: a crash at any record costs time and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.feedback_events import NOON, RULES, WEIGHTS, rules
from tests.support.feedback_fold import fold_log
from tests.support.feedback_source import FakeLog, FakeSource, Killed
from tests.support.feedback_traffic import traffic
from tests.support.folded_evidence import digest_of_stores
from weft.feedback.fold.batch import Arrivals, arrived
from weft.feedback.fold.updates import fold
from weft.feedback.run.partitions import partition_folder
from weft.feedback.run.updater import Updater
from weft.feedback.store.state import PartitionState
from weft.feedback.store.tables import evidence_in
from weft.runtime.kafka.log import LogFacts, Record

RECORDS = [
    Record(0, offset, NOON + offset, key, value)
    for offset, (key, value) in enumerate(traffic(random.Random(5), 60, until_ms=NOON, duplicates=0.1, garbage=0.1))
]
EXPECTED = fold_log([[record.value for record in RECORDS]], weights=WEIGHTS)
SETTINGS = rules(poll_records=7)


def consume(store: Path, *, kill_at: int | None = None) -> Updater:
    """One life of an updater: it ends with the log, or with its death."""
    updater = Updater.open(FakeSource(LOG, kill_at=kill_at), store, [0], SETTINGS)
    try:
        while updater.step(0.0):
            pass
    finally:
        updater.close()
    return updater


LOG = FakeLog.of(RECORDS)


def require_the_same_bits(store: Path) -> None:
    state = PartitionState(partition_folder(store, 0), 0, RULES)
    report = state.report()
    state.close()
    assert digest_of_stores([partition_folder(store, 0)]) == EXPECTED.digest()
    assert report.balanced
    assert {"applied": report.applied, "duplicate": report.duplicate, "dead_lettered": report.dead_lettered} == dict(
        EXPECTED.fates
    )


@pytest.mark.parametrize("kill_at", range(len(RECORDS) + 1))
def test_a_death_at_any_record_costs_time_and_nothing_else(tmp_path: Path, kill_at: int) -> None:
    """FBK-5: killed when this record is about to be delivered; the batch before it was committed or was not."""
    with pytest.raises(Killed):
        consume(tmp_path, kill_at=kill_at)
    consume(tmp_path)
    require_the_same_bits(tmp_path)


def test_a_death_at_every_record_in_turn_costs_nothing_either(tmp_path: Path) -> None:
    """FBK-5: as many lives as records."""
    for kill_at in range(len(RECORDS) + 1):
        with pytest.raises(Killed):
            consume(tmp_path, kill_at=kill_at)
    consume(tmp_path)
    require_the_same_bits(tmp_path)


def die_inside_the_commit(state: PartitionState, facts: LogFacts, arrivals: Arrivals) -> None:
    with state.batch(facts, 0, arrivals) as transaction:
        transaction.commit(fold(transaction.stored, arrivals, RULES))
        raise Killed


@pytest.mark.parametrize("size", [1, 13, len(RECORDS)])
def test_a_death_inside_the_commit_leaves_nothing_of_the_batch(tmp_path: Path, size: int) -> None:
    """ARC-3: everything is written, and the process dies before the transaction ends."""
    source = FakeSource(LOG)
    state = PartitionState(partition_folder(tmp_path, 0), 0, RULES)
    state.claim(source.facts(), log_start=0)
    batch = RECORDS[:size]
    arrivals = arrived(batch, max_bytes=RULES.limits.event_bytes)
    with pytest.raises(Killed):
        die_inside_the_commit(state, source.facts(), arrivals)
    assert (state.report().consumed, state.report().next_offset, state.read(evidence_in).is_empty) == (0, 0, True)
    state.close()
    consume(tmp_path)
    require_the_same_bits(tmp_path)
