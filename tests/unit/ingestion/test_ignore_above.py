"""ING-1, ING-3: rules of ignore files above a source, where it lies in a git repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.ingestion import a_repository, write
from weft.domain.documents import Document
from weft.ingestion.git import files
from weft.ingestion.settings import IngestSettings
from weft.ingestion.sources.sources import read_source
from weft.settings import load_settings


@pytest.fixture
def settings() -> IngestSettings:
    return load_settings(environment={}).ingest


def names_in(path: Path, settings: IngestSettings) -> set[str]:
    uris = (one.uri for one in read_source(path, settings, domain=None) if isinstance(one, Document))
    return {uri for uri in uris if not uri.endswith(".gitignore")}


REPOSITORY = {
    ".gitignore": "*.log\n/src/lib/gone.txt\nbuild/\n/only-top.txt\n",
    "src/.gitignore": "!kept.log\n/lib/*.tmp\nnot-*.txt\n",
    "src/lib/.gitignore": "!not-this.txt\n",
}
FILES = ["a.txt", "a.log", "kept.log", "gone.txt", "a.tmp", "deep/a.tmp", "build/b.txt", "only-top.txt"]
FILES += ["not-this.txt", "not-that.txt", "deep/gone.txt", "deep/build", "lib/gone.txt"]


@pytest.mark.parametrize("mark", ["folder", "file"])
def test_ignore_files_above_a_source_hold_as_git_has_it(tree: Path, settings: IngestSettings, mark: str) -> None:
    """ING-1: from the top of its repository down, whether that is a work tree of its own or a linked one."""
    for name, content in REPOSITORY.items():
        write(tree / name, content)
    for name in FILES:
        write(tree / "src" / "lib" / name)
    write(tree.parent / ".gitignore", "a.txt\n")  # above the repository
    assert len(names_in(tree / "src" / "lib", settings)) == len(FILES)  # in no repository
    git = ["git", "-c", "core.excludesFile=/dev/null"]
    apart = ["--separate-git-dir", str(tree.parent / "apart")] if mark == "file" else []
    subprocess.run([*git, "init", "-q", *apart, str(tree)], check=True)
    assert (tree / ".git").is_file() is (mark == "file")
    listing = subprocess.run(
        [*git, "ls-files", "-o", "--exclude-standard"], cwd=tree / "src" / "lib", check=True, capture_output=True
    )
    wanted = {f"lib/{name}" for name in listing.stdout.decode().splitlines() if name != ".gitignore"}
    assert names_in(tree / "src" / "lib", settings) == wanted
    assert {"lib/a.txt", "lib/kept.log", "lib/not-this.txt"} < wanted < {f"lib/{name}" for name in FILES}
    (tree.parent / "link").symlink_to(tree / "src" / "lib")
    assert names_in(tree.parent / "link", settings) == wanted


@pytest.mark.parametrize("rule", ["/data/", "data/in/", "/data/in/", "data/*", "data/[i]n/", "in"])
@pytest.mark.parametrize("tracked", [False, True])
def test_a_source_that_is_ignored_itself_is_read(
    tree: Path, settings: IngestSettings, rule: str, *, tracked: bool
) -> None:
    """ING-40: who names it means it, whichever rule excludes it; rules for what lies below it hold, and its own."""
    a_repository(tree)
    write(tree / ".gitignore", f"{rule}\n*.txt\n")
    write(tree / "data" / "in" / ".gitignore", "*.log\n")
    for name in ("a.md", "a.txt", "a.log", "b.md"):
        write(tree / "data" / "in" / name)
    if tracked:
        subprocess.run(["git", "add", "--force", "data/in/b.md"], cwd=tree, check=True)
    assert names_in(tree / "data" / "in", settings) == {"in/a.md", "in/b.md"}
    assert names_in(tree / "data" / "in" / "a.log", settings) == {"in/a.log"}


@pytest.mark.parametrize("rule", ["*", "data/**"])
def test_a_source_of_which_a_rule_above_excludes_all_is_read_by_its_own_rules(
    tree: Path, settings: IngestSettings, rule: str
) -> None:
    """ING-40: a rule that excludes the folder with all that it may ever hold is overridden as a whole."""
    a_repository(tree)
    write(tree / ".gitignore", f"{rule}\n")
    write(tree / "data" / "in" / ".gitignore", "*.log\n")
    for name in ("a.md", "a.log"):
        write(tree / "data" / "in" / name)
    assert names_in(tree / "data" / "in", settings) == {"in/a.md"}


def a_link(path: Path) -> None:
    write(path.parents[2] / "rules", "*.txt\n")
    path.symlink_to(path.parents[2] / "rules")


def not_utf_8(path: Path) -> None:
    write(path, b"\xff\xfe*.txt\nb.txt\n")


@pytest.mark.parametrize(("made", "obeyed"), [(Path.mkdir, []), (a_link, []), (not_utf_8, ["src/b.txt"])])
def test_a_hostile_ignore_file_above_a_source_stops_nothing(
    tree: Path, settings: IngestSettings, made: Callable[[Path], None], obeyed: list[str]
) -> None:
    """ING-3: what cannot be read is not obeyed, and the other files above are."""
    source = a_source(tree)
    made(source.parent / ".gitignore")
    assert names_in(source, settings) == {"src/a.txt", "src/b.txt"} - set(obeyed)


def a_source(tree: Path) -> Path:
    """A folder two levels below the top of a repository whose rules leave out one of its three files."""
    a_repository(tree)
    write(tree / ".gitignore", "*.log\n")
    for name in ("a.txt", "a.log", "b.txt"):
        write(tree / "middle" / "src" / name)
    return tree / "middle" / "src"


def test_an_ignore_file_that_never_ends_costs_its_time_and_stops_nothing(
    tree: Path, settings: IngestSettings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """ING-3: git waits for it; then the rules of the source itself decide."""
    monkeypatch.setattr(files, "LISTING_S", 0.5)
    source = a_source(tree)
    write(source / ".gitignore", "b.txt\n")
    os.mkfifo(source.parent / ".gitignore")
    assert names_in(source, settings) == {"src/a.txt", "src/a.log"}
    assert "rules of its ignore files alone decide" in caplog.text


def test_a_repository_of_somebody_else_has_no_say(
    tree: Path, settings: IngestSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ING-3: whoever may write to a folder above, such as /tmp, leaves nothing out; git does not trust them either."""
    source, status_of = a_source(tree), os.stat

    def foreign(path: Any, **more: Any) -> os.stat_result:
        status = status_of(path, **more)
        if not str(path).endswith(".git"):
            return status
        return os.stat_result((*status[:4], status.st_uid + 1, *status[5:]))

    monkeypatch.setattr(os, "stat", foreign)
    assert names_in(source, settings) == {"src/a.txt", "src/b.txt", "src/a.log"}


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_above_that_cannot_be_listed_has_rules_all_the_same(tree: Path, settings: IngestSettings) -> None:
    """ING-1: git reads them, too."""
    a_repository(tree)
    write(tree / ".gitignore", "*.log\n")
    write(tree / "src" / "a.log")
    write(tree / "src" / "a.txt")
    tree.chmod(0o111)
    try:
        assert names_in(tree / "src", settings) == {"src/a.txt"}
    finally:
        tree.chmod(0o755)
