"""Two runs of ingestion on one store."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from weft.cli.commands.reindex import reindex
from weft.cli.console.options import run_job
from weft.domain.errors import StoreError
from weft.runtime.storage.locks import exclusive_lock

HOLD = """
import sys
from pathlib import Path
from weft.runtime.storage.locks import exclusive_lock
with exclusive_lock(Path(sys.argv[1]), "indexing"):
    print("held", flush=True)
    sys.stdin.read()
"""


def lock_of(store: Path) -> Path:
    return store / "generations" / ".indexing"


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that indexes the store, until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock_of(tmp_path))], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def state_of(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_second_run_says_at_once_whose_the_store_is(
    tmp_path: Path, holder: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-15: process and host are named, before a cluster starts, and nothing has changed."""
    (tmp_path / "note.md").write_text("# A note\n")
    before = state_of(tmp_path)
    code = run_job(reindex, ["--source", str(tmp_path / "note.md"), "--store", str(tmp_path)])
    (said,) = capsys.readouterr().err.splitlines()
    assert code == 1
    assert f"found process {holder.pid} on {socket.gethostname()} at it: wait for it, or end it" in said
    assert state_of(tmp_path) == before


def test_a_lock_of_a_dead_process_holds_nobody_up(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    """OPS-15: what a killed run left behind in the file means nothing."""
    with pytest.raises(StoreError, match=f"process {holder.pid}"), exclusive_lock(lock_of(tmp_path), "indexing"):
        pass
    holder.kill()
    holder.wait()
    with exclusive_lock(lock_of(tmp_path), "indexing"):
        assert f"process {os.getpid()} on " in lock_of(tmp_path).read_text()
