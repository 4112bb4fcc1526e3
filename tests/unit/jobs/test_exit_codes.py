"""ARC (job contracts): every job ends with the exit code that its docstring states."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jobs import _job, consolidate, reindex, search
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


def writes(where: str) -> None:
    """Write where that cannot be."""
    Path(where, "current.json").write_bytes(b"")


def test_what_the_machine_refuses_ends_with_1_and_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract: a store that is a file, a folder that cannot be written and a full disk are no crash."""
    (tmp_path / "file").touch()
    assert _job.run(writes, [str(tmp_path / "file")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("jobs.writes: expected the machine to let it read and write, found [Errno 20]")
    assert said.count("\n") == 1


@pytest.mark.parametrize("job", [search.search, reindex.reindex])
def test_a_store_that_is_a_file_is_named(
    job: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Job contract."""
    store = tmp_path / "file"
    store.touch()
    asked = ["apple"] if job is search.search else ["--source", str(tmp_path)]
    assert _job.run(job, [*asked, "--store", str(store)]) == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith("look at the path, its permissions and its disk")


@pytest.mark.parametrize("adopt", [[], ["--adopt", "elsewhere"]])
def test_a_night_over_no_store_is_refused(adopt: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract: a name mistyped in a crontab would else be a night with nothing new, for ever."""
    assert _job.run(consolidate.consolidate, ["--store", str(tmp_path / "nosuch"), *adopt]) == 1
    assert "nosuch, found no such folder" in capsys.readouterr().err


def test_no_reason_steers_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-11: what was found may be what anybody wrote."""
    assert _job.run(refuses, ["--found", "\x1b]0;owned\x07"]) == 1
    assert capsys.readouterr().err == "jobs.refuses: expected something, found \ufffd]0;owned\ufffd\n"


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--count", "many"], ["surplus"]])
def test_wrong_usage_ends_with_2_and_is_explained(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Job contract."""
    assert _job.run(works, arguments) == 2
    assert arguments[0] in capsys.readouterr().err
