"""ARC (job contracts): every job ends with the exit code that its docstring states."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from jobs import _job
from pipelines.domain.errors import StoreError


def works(count: int = 1) -> None:
    """Do nothing."""


def refuses(found: str = "nothing") -> None:
    """Give a reason."""
    raise StoreError(f"expected something,\nfound {found}")


def test_a_job_that_works_ends_with_0() -> None:
    """Job contract."""
    assert _job.run(works, ["--count", "2"]) == 0


def test_a_job_that_cannot_work_ends_with_1_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract."""
    assert _job.run(refuses, []) == 1
    assert capsys.readouterr().err == "jobs.refuses: expected something, found nothing\n"


def test_no_reason_steers_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-11: what was found may be what anybody wrote."""
    assert _job.run(refuses, ["--found", "\x1b]0;owned\x07"]) == 1
    assert capsys.readouterr().err == "jobs.refuses: expected something, found \ufffd]0;owned\ufffd\n"


def is_denied(path: Path) -> None:
    """Write where nobody may."""
    path.write_text("")


def test_a_place_that_cannot_be_written_is_a_reason_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract: a disk that is full or read-only is no defect of the job's."""
    assert _job.run(is_denied, [str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"jobs.is_denied: [Errno 21] Is a directory: '{tmp_path}'\n"


def is_stopped() -> None:
    """Be interrupted."""
    raise KeyboardInterrupt


def test_an_interrupted_job_ends_with_130_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract: Ctrl-C leaves no traceback, and not nothing either."""
    assert _job.run(is_stopped, []) == 130
    assert capsys.readouterr().err == "jobs.is_stopped: interrupted\n"


def warns() -> None:
    """Log what anybody wrote, and go on."""
    logging.getLogger("pipelines").warning("impression of query %s lost", "a\x1b]0;owned\x07\nb: all is well")


def test_nothing_that_is_logged_steers_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-11: nor does it look like another line of the log."""
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    assert _job.run(warns, []) == 0
    first, second = capsys.readouterr().err.splitlines()
    assert "WARNING  impression of query a\ufffd]0;owned\ufffd" in first
    assert second.strip() == "b: all is well lost"
    assert second.startswith(" ")


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--count", "many"], ["surplus"]])
def test_wrong_usage_ends_with_2_and_is_explained(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract."""
    assert _job.run(works, arguments) == 2
    assert arguments[0] in capsys.readouterr().err
