"""FBK-4: a process that was stopped while it held a partition's files keeps its successor out, and is named soon."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.feedback_events import explicit, impression, records, rules, session
from tests.support.feedback_source import FakeLog, FakeSource
from weft.domain.errors import StoreError
from weft.feedback.run.partitions import partition_folder
from weft.feedback.run.updater import Updater
from weft.feedback.store.state import STATE_FILE
from weft.runtime.storage.locks import Patience, holders_of, locked

SETTINGS = rules(lock_timeout_s=3_600.0)
IN_A_TRANSACTION = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("begin immediate")
connection.execute("delete from shown")
os.kill(os.getpid(), signal.SIGSTOP)
connection.execute("commit")
"""
IN_A_LOCK = """
import fcntl, os, signal, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
os.kill(os.getpid(), signal.SIGSTOP)
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds a lock")


@contextlib.contextmanager
def stopped(script: str, path: Path) -> Iterator[int]:
    """A process that holds something of a file, and does nothing."""
    process = subprocess.Popen([sys.executable, "-c", script, path])
    try:
        os.waitpid(process.pid, os.WUNTRACED)
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def log(tmp_path: Path) -> FakeLog:
    """Of which a store has read everything; it holds an open session."""
    log = FakeLog.of(records([session("start"), impression(), explicit()]))
    updater = opened(tmp_path, log)
    while updater.step(0.0):
        pass
    updater.publish()
    updater.close()
    return log


def opened(store: Path, log: FakeLog) -> Updater:
    return Updater.open(FakeSource(log), store, [0], SETTINGS)


@pytest.mark.parametrize(
    ("script", "place"), [(IN_A_TRANSACTION, STATE_FILE), (IN_A_LOCK, ".restoring")], ids=["transaction", "claim"]
)
def test_a_successor_says_who_keeps_it_out(tmp_path: Path, log: FakeLog, script: str, place: str) -> None:
    """FBK-4: by its process id, long before the wait for a lock would end; then it finds all that was committed."""
    with (
        stopped(script, partition_folder(tmp_path, 0) / place) as pid,
        pytest.raises(StoreError, match=rf"held by process {pid}, which is stopped: end it \(kill -KILL {pid}\)"),
    ):
        opened(tmp_path, log)
    heir = opened(tmp_path, log)
    (standing,) = heir.progress()
    heir.close()
    assert (standing.report.consumed, standing.report.balanced) == (3, True)


def test_snapshots_wait_for_no_stopped_process(tmp_path: Path, log: FakeLog) -> None:
    """FBK-7: one that holds what sessions fork from is named, too."""
    heir = opened(tmp_path, log)
    with (
        stopped(IN_A_LOCK, tmp_path / "sessions" / ".lock") as pid,
        pytest.raises(StoreError, match=f"held by process {pid}, which is stopped"),
    ):
        heir.publish()
    heir.publish()
    heir.close()


def test_a_running_process_is_waited_for(tmp_path: Path) -> None:
    """FBK-4: as long as is allowed, and named then."""
    path = tmp_path / "lock"
    with locked(path, Patience(0.05, 0.1)):
        assert [(holder.pid, holder.is_stopped) for holder in holders_of(path)] == [(os.getpid(), False)]
        with (
            pytest.raises(StoreError, match=f"process {os.getpid()}: wait for it, or end it"),
            locked(path, Patience(0.05, 0.2)),
        ):
            pass
    with locked(path, Patience(0.0, 0.0)):
        pass
    assert holders_of(path) == holders_of(tmp_path / "missing") == []
