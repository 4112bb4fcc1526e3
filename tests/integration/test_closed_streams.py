"""OPS-4, OPS-15: commands whose streams are closed or take no letter but ASCII, and stores of somebody else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

WEFT = f"{sys.executable} -m weft"
WITHOUT_PRIVILEGE = "setpriv --bounding-set=-dac_override,-dac_read_search " if os.geteuid() == 0 else ""


def run_in_shell(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "pipelines", ROOT))), **environment},
    )


@pytest.mark.parametrize(
    "closed", ["--help >&-", "--help 2>&-", "status >&-", "status 2>&-", "status <&- >&- 2>&-", "ask --help <&- >&-"]
)
def test_a_command_does_its_work_whatever_is_closed(closed: str, tmp_path: Path) -> None:
    """OPS-4: exit code 0, and no traceback."""
    done = run_in_shell(f"{WEFT} {closed}", WEFT__STORAGE__ROOT=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_refusal_is_a_refusal_whatever_is_closed(tmp_path: Path) -> None:
    """OPS-4: 1 where there is no store, 2 for wrong usage."""
    assert run_in_shell(f"{WEFT} status --store {tmp_path}/none >&- 2>&-").returncode == 1
    assert run_in_shell(f"{WEFT} nonsense >&- 2>&-").returncode == 2


def test_what_ascii_lacks_is_escaped(tmp_path: Path) -> None:
    """OPS-4: a path of other letters is printed as Python has it on stderr."""
    (tmp_path / "später").mkdir()
    done = run_in_shell(f"{WEFT} status --store '{tmp_path}/später'", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"sp\xe4ter" in done.stdout


@pytest.mark.parametrize("command", ["status", "search x", "lessons list", "consolidate"])
@pytest.mark.parametrize("denied", [".", "settings.json"])
def test_a_store_of_another_user_is_one_line(command: str, denied: str, tmp_path: Path) -> None:
    """OPS-15: what cannot be read is named, with what helps, where the advice may not look around either."""
    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / denied).chmod(0)
    done = run_in_shell(f"{WITHOUT_PRIVILEGE}{WEFT} {command} --store {tmp_path}")
    (tmp_path / denied).chmod(0o700)
    assert (done.returncode, done.stdout) == (1, "")
    found = f"weft: expected to read {tmp_path}/settings.json, found Permission denied: give this user permission"
    assert done.stderr.startswith(found)
    assert done.stderr.count("\n") == 1


def test_an_interrupt_before_a_command_begins_is_one_line() -> None:
    """OPS-4: while its modules are imported."""
    interrupted = (
        "import signal, sys; sys.argv = ['weft', 'status']; from weft.cli import main, registry;"
        " registry.load_command = lambda name: signal.raise_signal(signal.SIGINT); main.main()"
    )
    done = run_in_shell(f'{sys.executable} -c "{interrupted}"')
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "weft: interrupted\n")


def test_a_run_that_is_terminated_while_ray_starts_is_one_line(tmp_path: Path) -> None:
    """Job contract: it ends as an interrupted one, without the stacks that Ray prints."""
    (tmp_path / "a.md").write_text("# One\n\nA section.\n")
    run = subprocess.Popen(
        [*WEFT.split(), "index", str(tmp_path / "a.md"), "--store", str(tmp_path / "store")],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "pipelines", ROOT)))},
    )
    assert run.stderr is not None
    begun = run.stderr.readline()
    run.send_signal(signal.SIGTERM)
    _, told = run.communicate()
    assert begun.startswith("starting:")
    assert (run.returncode, told.splitlines()[-1]) == (130, "weft: interrupted")
    assert "***" not in told
    assert "Traceback" not in told
