"""FBK-7: when what a partition holds is published."""

from pathlib import Path

import pytest

from tests.support.feedback_events import RULES, explicit, impression, records, rules, session
from tests.support.feedback_source import FakeLog, FakeSource
from tests.support.session_store import judged, phase
from weft.catalog.learned import read_evidence
from weft.catalog.overlays import OFFSET_KEY, metadata_of, read_listing
from weft.feedback.publish.snapshot import NAME
from weft.feedback.run.partitions import partition_folder
from weft.feedback.run.updater import Updater


def opened(store: Path, log: FakeLog) -> Updater:
    return Updater.open(FakeSource(log), store, range(len(log.partitions)), RULES)


def published_offset(store: Path) -> int:
    return int(metadata_of(partition_folder(store, 0) / NAME)[OFFSET_KEY])


def test_a_quiet_partition_publishes_what_belongs_together_at_once(tmp_path: Path) -> None:
    """FBK-7: a verdict that follows its impression does not wait for another second to pass."""
    log = FakeLog.of(records([session()]))
    updater = opened(tmp_path, log)
    updater.step(0.0)
    answered = records([session(), impression(), explicit(), explicit(event_id="late")])
    published = []
    for now, until in ((9.0, 2), (9.01, 3), (9.02, 3), (9.5, 4), (9.51, 4), (10.1, 4)):
        log.partitions[0] = answered[:until]
        updater.step(now)
        published.append(published_offset(tmp_path))
    assert published == [1, 1, 3, 3, 3, 4]


def test_a_busy_partition_publishes_every_second(tmp_path: Path) -> None:
    """FBK-7: however the log goes on."""
    everything = records([session(event_id=str(number)) for number in range(60)])
    log = FakeLog.of([])
    updater = opened(tmp_path, log)
    published = []
    for tenth in range(60):
        log.partitions[0] = everything[: tenth + 1]
        updater.step(tenth / 10)
        published.append(published_offset(tmp_path))
    moved = [tenth for tenth in range(1, 60) if published[tenth] != published[tenth - 1]]
    assert moved == [10, 20, 30, 40, 50]
    assert all(published[tenth] == tenth + 1 for tenth in moved)


def test_a_partition_that_is_behind_publishes_every_other_second(tmp_path: Path) -> None:
    """FBK-8: snapshots cost time, and what they would show is old as long as more lies ahead than a poll brings."""
    settings = rules(poll_records=10)
    log = FakeLog.of(records([session(event_id=str(number)) for number in range(400)]))
    updater = Updater.open(FakeSource(log), tmp_path, [0], settings)
    published = []
    for tenth in range(45):
        updater.step(tenth / 10)
        path = partition_folder(tmp_path, 0) / NAME
        published.append(published_offset(tmp_path) if path.exists() else 0)
    moved = [tenth for tenth in range(45) if published[tenth] != ([0, *published][tenth])]
    assert moved == [20, 38]  # and as soon as the rest fits into a poll
    assert (published[20], published[38]) == (210, 390)


@pytest.mark.parametrize("name", ["evidence.parquet", "sessions-*.parquet"])
def test_a_damaged_snapshot_is_published_anew(name: str, tmp_path: Path) -> None:
    """OPS-10a: it is derived from the state; an updater that publishes another partition first would end at it."""
    lain = [records([phase("start", session_id), *judged(session_id)]) for session_id in ("s1", "s2")]
    log = FakeLog([lain[0], [record._replace(partition=1) for record in lain[1]]])

    def run() -> None:
        updater = opened(tmp_path, log)
        updater.step(0.0)
        updater.publish()
        updater.close()

    run()
    folder = partition_folder(tmp_path, 1)
    (damaged,) = folder.glob(name)
    expected = read_evidence(folder / NAME)
    damaged.write_bytes(b"PAR1 and nothing that belongs there PAR1")
    run()
    assert read_evidence(folder / NAME) == expected
    assert list(read_listing([folder / NAME])) == ["s2"]
