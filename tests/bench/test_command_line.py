"""OPS-4: how long a person waits for the command line. `make bench-cli` prints it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import pytest

from tests.support.service import serving

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
    measure(capsys, {"weft --help": ("--help",), **asking(store, "--server", "none")})


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_commands_answer_in_half_a_second_by_a_service(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-4: on a quiet machine, by the clock."""
    with serving(store):
        measure(capsys, asking(store))


def asking(store: Path, *more: str) -> dict[str, Sequence[str]]:
    at = ("--store", str(store), *more)
    return {
        "weft search": ("search", "how is a lock acquired", "-k", "3", *at),
        "weft status": ("status", *at),
        "weft lessons list": ("lessons", "list", *at),
    }


def measure(capsys: pytest.CaptureFixture[str], commands: Mapping[str, Sequence[str]]) -> None:
    for name, arguments in commands.items():
        runs = [timed([*WEFT, *arguments]) for _ in range(ROUNDS)]
        wall, processor = (median(values) for values in zip(*runs, strict=True))
        with capsys.disabled():
            sys.stdout.write(f"\n{name}: {wall:.2f} s, {processor:.2f} s of processor time (median of {ROUNDS})")
