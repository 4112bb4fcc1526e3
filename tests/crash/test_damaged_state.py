"""ARC-3, FBK-5: files that were cut, flipped or zeroed: a consistent state or a refusal, never a wrong answer."""

from __future__ import annotations

import random
import shutil
import sqlite3
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.support.feedback_events import NOON, WEIGHTS, rules
from tests.support.feedback_fold import fold_log
from tests.support.feedback_simulation import MEMORY
from tests.support.feedback_source import FakeLog, FakeSource
from tests.support.feedback_traffic import traffic
from tests.support.folded_evidence import digest_of_stores
from weft.domain.errors import CorruptionError
from weft.feedback.run.partitions import partition_folder
from weft.feedback.run.updater import Updater
from weft.feedback.store.checkpoints import checkpoints_in, write_checkpoint
from weft.runtime.kafka.log import Record

SIZE = 240
RECORDS = [
    Record(0, offset, NOON + offset, key, value)
    for offset, (key, value) in enumerate(traffic(random.Random(8), SIZE, until_ms=NOON, duplicates=0.1, garbage=0.1))
]
EXPECTED = fold_log([[record.value for record in RECORDS]], weights=WEIGHTS)
SETTINGS = rules(poll_records=20)
PAGE = 4096


@pytest.fixture(scope="module")
def half_way() -> Path:
    """A store as a killed updater leaves it after most of the log: checkpoints, a main file, a write-ahead log."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as made:
        store, kept = Path(made) / "store", Path(made) / "kept"
        log = log_of(RECORDS[:100])
        updater = Updater.open(FakeSource(log), store, [0], SETTINGS)
        steps(updater, log, upto=200)
        shutil.copytree(store, kept)  # as a kill would leave it: closing tidies up
        updater.close()
        yield kept  # type: ignore[misc]


def steps(updater: Updater, log: FakeLog, upto: int) -> None:
    while updater.step(0.0):
        pass
    write_checkpoint(updater._states[0])
    updater._states[0]._connection.execute("pragma wal_checkpoint(truncate)")  # so that the main file holds rows, too
    log.partitions[0] = RECORDS[:upto]
    while updater.step(0.1):
        pass


def finished(store: Path, log: FakeLog) -> str:
    """Read on to the end; the digest of the evidence."""
    updater = Updater.open(FakeSource(log), store, [0], SETTINGS)
    while updater.step(0.0):
        pass
    (standing,) = updater.progress()
    assert standing.report.balanced
    assert standing.report.consumed == SIZE
    updater.close()
    return digest_of_stores([partition_folder(store, 0)])


def damaged(rng: random.Random, path: Path) -> str:
    """Damage a file in one of the ways that disks and crashes do; which."""
    data = bytearray(path.read_bytes())
    kind = rng.choice(("truncated", "bit flipped", "page zeroed", "tail zeroed", "garbage"))
    place = rng.randrange(len(data))
    if kind == "truncated":
        del data[place:]
    elif kind == "bit flipped":
        data[place] ^= 1 << rng.randrange(8)
    elif kind == "page zeroed":
        begin = place // PAGE * PAGE
        data[begin : begin + PAGE] = bytes(len(data[begin : begin + PAGE]))
    elif kind == "tail zeroed":
        data[place:] = bytes(len(data) - place)
    else:
        end = min(len(data), place + PAGE)
        data[place:end] = rng.randbytes(end - place)
    path.write_bytes(data)
    return kind


def damage_and_finish(half_way: Path, times: int, seed: int) -> Counter[str]:
    """Damage one file of a fresh copy, so often; what came of it."""
    rng, happened = random.Random(seed), Counter[str]()
    log = log_of(RECORDS)
    for _ in range(times):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            store = Path(folder) / "store"
            shutil.copytree(half_way, store)
            (partition,) = (store / "updaters").iterdir()
            newest = checkpoints_in(partition)[0]
            files = [*partition.glob("state.sqlite*"), partition / "evidence.parquet", *newest.iterdir()]
            path = rng.choice(sorted(file for file in files if not file.name.endswith("-shm")))
            path = rng.choice((path, partition / "state.sqlite"))  # where damage is worst
            kind = damaged(rng, path)
            assert finished(store, log) == EXPECTED.digest(), (seed, path.name, kind)
            happened[f"{path.name if path.parent == partition else 'checkpoint'} {kind}"] += 1
            happened["restored"] += (partition / "damaged").exists()
    return happened


def log_of(records: list[Record]) -> FakeLog:
    return FakeLog([list(records)], topic_id="the one")


def test_forty_damaged_files_cost_a_replay_at_most(half_way: Path) -> None:
    """ARC-3: the state's file, its write-ahead log, a checkpoint or a snapshot."""
    happened = damage_and_finish(half_way, 40, seed=3)
    assert happened["restored"] >= 5


@pytest.mark.slow
@pytest.mark.crash
def test_four_hundred_damaged_files_cost_a_replay_at_most(half_way: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ARC-3: the long run."""
    happened = damage_and_finish(half_way, 400, seed=4)
    with capsys.disabled():
        print("".join(f"\n{count:5} {what}" for what, count in sorted(happened.items())))  # noqa: T201
    assert happened["restored"] >= 50


def test_damage_that_no_text_can_quote_is_damage_too(half_way: Path, tmp_path: Path) -> None:
    """ARC-3: SQLite names what it finds wrong by bytes that are none of UTF-8's."""
    store = tmp_path / "store"
    shutil.copytree(half_way, store)
    state = partition_folder(store, 0) / "state.sqlite"
    data = state.read_bytes()
    assert data.count(b"create trigger check_insert_") + data.count(b"CREATE TRIGGER check_insert_")
    for word in (b"create trigger check_insert_", b"CREATE TRIGGER check_insert_"):
        data = data.replace(word, word[:6] + b"_" + word[7:])
    state.write_bytes(data.replace(b"triggercheck_insert_", b"triggercheck_ins\xacrt_"))
    with pytest.raises(UnicodeDecodeError), sqlite3.connect(state) as connection:
        connection.execute("pragma journal_mode = wal")
    assert finished(store, log_of(RECORDS)) == EXPECTED.digest()
    assert (state.parent / "damaged").exists()


def test_a_damaged_state_without_a_way_back_is_refused_by_name(half_way: Path, tmp_path: Path) -> None:
    """ARC-3: no checkpoint, and a log that retention has shortened: starting there would lose evidence silently."""
    store = tmp_path / "store"
    shutil.copytree(half_way, store)
    folder = partition_folder(store, 0)
    (folder / "state.sqlite").write_bytes(b"not a database, but long enough to be looked at" * 100)
    for checkpoint in checkpoints_in(folder):
        (checkpoint / "manifest.json").unlink()
    log = log_of(RECORDS[150:])
    log.log_start = 150
    for _ in range(2):
        with pytest.raises(CorruptionError, match=r"state\.sqlite: .* a log that starts at 150"):
            Updater.open(FakeSource(log), store, [0], SETTINGS)
    assert (folder / "state.sqlite").exists()


def test_a_state_that_vanished_is_restored_too(half_way: Path, tmp_path: Path) -> None:
    """ARC-3: an empty file looks like a new store to SQLite; checkpoints beside it say otherwise."""
    log = log_of(RECORDS)
    for emptied in (True, False):
        store = tmp_path / str(emptied)
        shutil.copytree(half_way, store)
        path = partition_folder(store, 0) / "state.sqlite"
        path.write_bytes(b"") if emptied else path.unlink()
        assert finished(store, log) == EXPECTED.digest()
