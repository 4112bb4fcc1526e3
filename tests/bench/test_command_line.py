"""OPS-4: how long a person waits for the command line. `make bench-cli` prints it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
WEFT = (sys.executable, "-m", "weft")
ROUNDS = 7


def timed(command: Sequence[str]) -> tuple[float, float]:
    """Seconds that pass, and seconds of processor time, of a new process."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return ended - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The standard library without its tests, 30,000 chunks or so; or the store that `WEFT_BENCH_STORE` names."""
    if named := os.environ.get("WEFT_BENCH_STORE"):
        return Path(named)
    root = tmp_path_factory.mktemp("command-line")
    place = ("--source", sysconfig.get_path("stdlib"), "--store", str(root), "--set", "extraction.enabled=false")
    skipped = "ingest.skipped_names=[site-packages, __pycache__, lib2to3, test, tests]"
    subprocess.run([*WEFT, "index", *place, "--set", skipped], cwd=ROOT, check=True, capture_output=True)
    return root


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_command_line_answers_as_a_tool_of_today(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-4: the help within .3 s of processor time, a search from the shell within 2.5 s on a quiet machine."""
    for name, arguments in {
        "weft --help": ("--help",),
        "weft search": ("search", "how is a lock acquired", "--store", str(store), "-k", "3"),
        "weft status": ("status", "--store", str(store)),
    }.items():
        runs = [timed([*WEFT, *arguments]) for _ in range(ROUNDS)]
        wall, processor = (median(values) for values in zip(*runs, strict=True))
        with capsys.disabled():
            sys.stdout.write(f"\n{name}: {wall:.2f} s, {processor:.2f} s of processor time (median of {ROUNDS})")
