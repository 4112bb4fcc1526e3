"""OPS-15, ARC-3: a disk that is full, limited or read-only ends an updater with the cause, and costs nothing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.feedback_events import WEIGHTS
from tests.support.feedback_fold import fold_log
from tests.support.feedback_traffic import traffic
from tests.support.folded_evidence import digest_of_stores
from tests.support.small_disk import KIB, SmallDisk, small_disk
from weft.cli.commands import update
from weft.domain.errors import DiskError, StoreError
from weft.feedback.settings import FeedbackSettings
from weft.feedback.store.report import PartitionReport
from weft.feedback.store.state import PartitionState
from weft.runtime.kafka.broker import EmbeddedBroker
from weft.runtime.kafka.writer import KafkaPublisher, create_topic
from weft.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parents[2]
ONE_PARTITION = "feedback.partitions=1"


class Loop:
    """A broker, a topic of one partition, and a store."""

    def __init__(self, broker: EmbeddedBroker, store: Path) -> None:
        self.store, self.bootstrap = store, broker.bootstrap
        self.folder = store / "updaters/0"
        assignments = [f"kafka.bootstrap={broker.bootstrap}", f"storage.root={store}", ONE_PARTITION]
        self.settings: Settings = load_settings([], assignments, environment={})
        self.rules: FeedbackSettings = self.settings.feedback
        self.sent: list[bytes] = []
        self._rng = random.Random(5)
        store.mkdir(exist_ok=True)
        create_topic(self.settings.kafka, self.rules.topic, partitions=1, replication=1)

    def send(self, count: int) -> None:
        publisher = KafkaPublisher(self.settings.kafka, self.rules.topic)
        until_ms = round(time.time() * 1000) - 3_600_000
        for key, value in traffic(self._rng, count, until_ms=until_ms, duplicates=0.05, garbage=0.02):
            publisher.send(key, value)
            self.sent.append(value)
        publisher.flush()
        publisher.close()

    def catch_up(self) -> None:
        update.run(self.settings, local=True, until_caught_up=True)

    def job(
        self, limit_bytes: int | None = None, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The updaters as a process of their own, whose files are not longer than that."""

        def limit() -> None:
            if limit_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

        options = ["--local", "--until-caught-up", "--json", "--set", ONE_PARTITION]
        place = ["--store", str(self.store), "--bootstrap", self.bootstrap]
        return subprocess.run(
            [sys.executable, "-m", "jobs.update", *place, *options],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=limit,
            env={**os.environ, **(environment or {})},
        )

    def require_nothing_lost(self) -> None:
        """Everything that was sent is counted, to the bit, by the state that was there before."""
        expected = fold_log([self.sent], weights=WEIGHTS)
        assert digest_of_stores([self.folder]) == expected.digest()
        found = self.report(self.folder)
        assert {name: getattr(found, name) for name in expected.fates} == dict(expected.fates)
        assert not (self.folder / "damaged").exists()

    def report(self, folder: Path) -> PartitionReport:
        with contextlib.closing(PartitionState(folder, 0, self.rules)) as state:
            return state.report()

    def committed(self, scratch: Path) -> tuple[int, int, str]:
        """Epoch, next offset and evidence as a copy of the state's files tells them."""
        copy = scratch / "copy/0"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir(parents=True)
        for path in self.folder.glob("state.sqlite*"):
            shutil.copyfile(path, copy / path.name)
        report = self.report(copy)
        return report.epoch, report.next_offset, digest_of_stores([copy])

    def sha256(self) -> str:
        return hashlib.sha256((self.folder / "state.sqlite").read_bytes()).hexdigest()


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", mib=32) as made:
        yield made


@pytest.fixture
def on_disk(broker: EmbeddedBroker, disk: SmallDisk) -> Loop:
    """A store on the small disk that has learned from three hundred events."""
    loop = Loop(broker, disk.path / "store")
    loop.send(301)
    loop.catch_up()
    return loop


@pytest.mark.parametrize("left_kib", [0, 8, 24, 32, 40, 100, 300])
def test_an_updater_that_finds_a_full_disk_leaves_the_state_as_it_is(
    left_kib: int, on_disk: Loop, disk: SmallDisk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """OPS-15, ARC-3: twice, with so much room; once there is more it reads on where it was."""
    before, sha256 = on_disk.committed(tmp_path), on_disk.sha256()
    disk.fill(left_kib)
    on_disk.send(3_000)
    for _ in range(2):
        with pytest.raises(DiskError, match=rf"No space left on device; free space on {disk.path}"):
            on_disk.catch_up()
        epoch, *rest = on_disk.committed(tmp_path)
        assert rest == [*before[1:]]
        assert epoch == before[0] or left_kib > 32
        assert on_disk.sha256() == sha256 or epoch > before[0]
        assert not (on_disk.folder / "damaged").exists()
    disk.free()
    with caplog.at_level(logging.WARNING):
        on_disk.catch_up()
    assert "restored" not in caplog.text
    assert on_disk.report(on_disk.folder).consumed == 3_301
    on_disk.require_nothing_lost()


def test_the_job_says_what_is_full_in_one_line(on_disk: Loop, disk: SmallDisk) -> None:
    """OPS-15: the path, the cause and what helps; exit code 1."""
    sha256 = on_disk.sha256()
    on_disk.send(100)
    disk.fill()
    ended = on_disk.job()
    path = on_disk.folder / "state.sqlite"
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        f"jobs.update: {path}: expected to read and write it, found: No space left on device; free space on {disk.path}"
    )
    assert "Traceback" not in ended.stderr
    assert on_disk.sha256() == sha256
    disk.free()
    assert json.loads(on_disk.job().stdout.splitlines()[-1])["consumed"] == 401
    on_disk.require_nothing_lost()


def test_a_disk_that_fills_while_an_updater_runs_costs_nothing(
    on_disk: Loop, disk: SmallDisk, caplog: pytest.LogCaptureFixture
) -> None:
    """OPS-15, ARC-3: events flow on; what was committed stays, the rest is read again."""
    ended: list[BaseException] = []
    steps: list[Any] = []

    def work() -> None:
        try:
            update.run(on_disk.settings, local=True, until_caught_up=False, on_progress=steps.append)
        except (StoreError, OSError) as error:
            ended.append(error)

    runner = threading.Thread(target=work, daemon=True)
    runner.start()
    await_condition(lambda: bool(steps))
    disk.fill()
    while runner.is_alive():
        on_disk.send(200)
        runner.join(0.1)
    assert "No space left on device" in str(ended[0])
    assert not (on_disk.folder / "damaged").exists()
    disk.free()
    with caplog.at_level(logging.WARNING):
        on_disk.catch_up()
    assert "restored" not in caplog.text
    on_disk.require_nothing_lost()


def test_a_disk_without_writing_is_named(on_disk: Loop, disk: SmallDisk) -> None:
    """OPS-15: nothing is changed, and mounting it for writing is all that it takes."""
    sha256 = on_disk.sha256()
    on_disk.send(100)
    disk.remount("ro")
    ended = on_disk.job()
    assert ended.returncode == 1
    assert "Read-only file system" in ended.stderr.splitlines()[-1]
    assert f"mount {disk.path} for writing" in ended.stderr.splitlines()[-1]
    assert on_disk.sha256() == sha256
    disk.remount("rw")
    assert on_disk.job().returncode == 0
    on_disk.require_nothing_lost()


@pytest.mark.parametrize(
    "limit_kib", [pytest.param(16, marks=pytest.mark.slow), 40, pytest.param(200, marks=pytest.mark.slow)]
)
def test_a_limit_on_the_size_of_files_is_named(limit_kib: int, broker: EmbeddedBroker, tmp_path: Path) -> None:
    """OPS-15, ARC-3: for the index of the write-ahead log, and for the log; without it the job reads on."""
    loop = Loop(broker, tmp_path / "store")
    loop.send(301)
    loop.catch_up()
    before = loop.committed(tmp_path)
    loop.send(3_000)
    for _ in range(2):
        ended = loop.job(limit_kib * KIB)
        assert ended.returncode == 1
        assert "File too large; raise the limit on the size of files (`ulimit -f`)" in ended.stderr.splitlines()[-1]
        assert loop.committed(tmp_path)[1:] == before[1:]
        assert not (loop.folder / "damaged").exists()
    freed = loop.job()
    assert "restored" not in freed.stderr
    assert json.loads(freed.stdout.splitlines()[-1])["consumed"] == 3_301
    loop.require_nothing_lost()


@pytest.fixture
def beyond_quota(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that may write nothing more below the store."""
    compiler, library = shutil.which("cc"), tmp_path / "quota.so"
    if compiler is None:
        pytest.skip("a quota takes a C compiler (cc): libc's writes are replaced by ones that refuse")
    source = ROOT / "tests/support/quota.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return {"LD_PRELOAD": str(library), "QUOTA_ON": str(tmp_path / "store")}


def test_a_quota_is_named(beyond_quota: dict[str, str], broker: EmbeddedBroker, tmp_path: Path) -> None:
    """OPS-15, ARC-3: twice the state stays as it is; with room the job reads on."""
    loop = Loop(broker, tmp_path / "store")
    loop.send(301)
    loop.catch_up()
    before, sha256 = loop.committed(tmp_path), loop.sha256()
    loop.send(100)
    for _ in range(2):
        ended = loop.job(environment=beyond_quota)
        assert ended.returncode == 1
        assert "Disk quota exceeded; raise the quota on" in ended.stderr.splitlines()[-1]
        assert (loop.committed(tmp_path)[1:], loop.sha256()) == (before[1:], sha256)
        assert not (loop.folder / "damaged").exists()
    assert json.loads(loop.job().stdout.splitlines()[-1])["consumed"] == 401
    loop.require_nothing_lost()


def await_condition(holds: Callable[[], bool], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
