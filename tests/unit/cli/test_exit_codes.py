"""ARC (job contracts): every job ends with the exit code that its docstring states."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.cli.commands import consolidate, reindex, update
from weft.cli.console.options import run_job
from weft.cli.registry import main
from weft.cli.searches import search
from weft.domain.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    CorruptionError,
    MissingExtraError,
    MissingTopicError,
    ModelUnavailableError,
    ServiceError,
    ServiceUnreachableError,
    StaleVersionError,
    StoreError,
    TrackingUnavailableError,
    WeftError,
)


def works(count: int = 1) -> None:
    """Do nothing."""


def refuses(reason: str = "nothing") -> None:
    """Give a reason."""
    raise StoreError(f"expected something,\nfound {reason}")


def test_a_job_that_works_ends_with_0() -> None:
    """Job contract."""
    assert run_job(works, ["--count", "2"]) == 0


def test_a_job_that_cannot_work_ends_with_1_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract."""
    assert run_job(refuses, []) == 1
    assert capsys.readouterr().err == "jobs.refuses: expected something, found nothing\n"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (BrokerUnavailableError, 75),
        (MissingTopicError, 75),
        (TrackingUnavailableError, 75),
        (ServiceUnreachableError, 75),
        (StaleVersionError, 75),
        (ConfigurationError, 78),
        (MissingExtraError, 78),
        (ModelUnavailableError, 78),
        (CorruptionError, 1),
        (ServiceError, 1),
    ],
)
def test_the_code_tells_what_a_restart_may_mend(kind: type[WeftError], code: int) -> None:
    """OPS-10a: 75 is tried again by a unit, 78 waits for a person."""

    def fails() -> None:
        raise kind("expected something, found nothing")

    assert run_job(fails, []) == code


def writes(where: str) -> None:
    """Write where that cannot be."""
    Path(where, "current.json").write_bytes(b"")


def test_what_the_machine_refuses_ends_with_1_and_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract: a store that is a file, a folder that cannot be written and a full disk are no crash."""
    (tmp_path / "file").touch()
    assert run_job(writes, [str(tmp_path / "file")]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("jobs.writes: expected the machine to let it read and write, found [Errno 20]")
    assert printed.count("\n") == 1


@pytest.mark.parametrize("job", [search.search, reindex.reindex])
def test_a_store_that_is_a_file_is_named(
    job: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Job contract."""
    store = tmp_path / "file"
    store.touch()
    asked = ["apple"] if job is search.search else ["--source", str(tmp_path)]
    assert run_job(job, [*asked, "--store", str(store)]) == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith("look at the path, its permissions and its disk")


@pytest.mark.parametrize("adopt", [[], ["--adopt", "elsewhere"]])
def test_a_night_over_no_store_is_refused(adopt: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract: a name mistyped in a crontab would else be a night with nothing new, for ever."""
    assert run_job(consolidate.consolidate, ["--store", str(tmp_path / "nosuch"), *adopt]) == 1
    assert "nosuch, found no such folder" in capsys.readouterr().err


def test_updaters_of_no_store_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract: a name mistyped would else be a new store, which learns beside the one that searches read."""
    mistyped = tmp_path / "nosuch"
    assert run_job(update.update, ["--store", str(mistyped), "--local", "--until-caught-up"]) == 1
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert f"expected a store in {mistyped}, found no such folder" in printed
    assert not mistyped.exists()


def test_no_reason_steers_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-11: what was found may be what anybody wrote."""
    assert run_job(refuses, ["--reason", "\x1b]0;owned\x07"]) == 1
    assert capsys.readouterr().err == "jobs.refuses: expected something, found \ufffd]0;owned\ufffd\n"


def is_denied(path: Path) -> None:
    """Write where nobody may."""
    path.write_text("")


def test_a_place_that_cannot_be_written_is_a_reason_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract: a disk that is full or read-only is no defect of the job's."""
    assert run_job(is_denied, [str(tmp_path)]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(
        "jobs.is_denied: expected the machine to let it read and write, found [Errno 21] Is a directory"
    )
    assert (str(tmp_path) in printed, printed.count("\n")) == (True, 1)


def is_stopped() -> None:
    """Be interrupted."""
    raise KeyboardInterrupt


def test_an_interrupted_job_ends_with_130_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract: Ctrl-C leaves no traceback, and not nothing either."""
    assert run_job(is_stopped, []) == 130
    assert capsys.readouterr().err == "jobs.is_stopped: interrupted\n"


def is_terminated() -> None:
    """Be asked to end, as a service manager does."""
    signal.raise_signal(signal.SIGTERM)


def test_a_terminated_job_ends_as_an_interrupted_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract: what is open is closed; the former handler is in its place afterwards."""
    before = signal.getsignal(signal.SIGTERM)
    assert run_job(is_terminated, []) == 130
    assert capsys.readouterr().err == "jobs.is_terminated: interrupted\n"
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_path_is_no_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-4: whoever names a file first is told how it is indexed."""
    assert main([str(tmp_path)]) == 2
    assert f"expected a command, found the path '{tmp_path}': `weft index {tmp_path}`" in capsys.readouterr().err


def warns() -> None:
    """Log what anybody wrote, and go on."""
    logging.getLogger("weft").warning("impression of query %s lost", "a\x1b]0;owned\x07\nb: all is well")


def test_nothing_that_is_logged_steers_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-11: nor does it look like another line of the log."""
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    assert run_job(warns, []) == 0
    first, second = capsys.readouterr().err.splitlines()
    assert "WARNING impression of query a\ufffd]0;owned\ufffd" in first
    assert second.strip() == "b: all is well lost"
    assert second.startswith(" ")


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--count", "many"], ["surplus"]])
def test_wrong_usage_ends_with_2_and_is_explained(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract."""
    assert run_job(works, arguments) == 2
    assert arguments[0] in capsys.readouterr().err
