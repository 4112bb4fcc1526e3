"""ING-2: documents of a repository have the time and author of the last commit that touched them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from weft.domain.documents import COMMITTED_AT, Document
from weft.ingestion.git.times import last_commits
from weft.ingestion.settings import IngestSettings
from weft.ingestion.sources.sources import read_source
from weft.settings import load_settings

INGEST = load_settings(environment={}).ingest
FIRST, SECOND = 1_500_000_000, 1_600_000_000


def git(folder: Path, *arguments: str, when: int = FIRST, who: str = "Ann") -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{role}_NAME": who for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_EMAIL": "a@example.org" for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_DATE": f"{when} +0000" for role in ("AUTHOR", "COMMITTER")},
    }
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder, env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of two commits: the second one, by another, changes one of two files."""
    root = tmp_path / "tree"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "caf\u00e9 \n.md").write_text("# One\n")
    (root / "docs" / "two.md").write_text("# Two\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    (root / "docs" / "two.md").write_text("# Two, changed\n")
    git(root, "commit", "-qam", "two", when=SECOND, who="B\u00e9a")
    return root


def read(root: Path, settings: IngestSettings = INGEST) -> dict[str, tuple[float | None, tuple[str, ...]]]:
    found = [one for one in read_source(root, settings, domain=None) if isinstance(one, Document)]
    return {one.uri.rpartition("/")[2]: (one.modified_at, one.authors) for one in found}


COMMITTED = {"caf\u00e9 \\x0a.md": (FIRST, ("Ann",)), "two.md": (SECOND, ("B\u00e9a",))}


def test_the_last_commit_that_touched_a_file_dates_it(tree: Path) -> None:
    """ING-2: whatever its name, from the top of the repository or from a folder in it, packed or not."""
    assert read(tree) == read(tree / "docs") == COMMITTED
    git(tree, "gc", "-q")
    assert read(tree) == COMMITTED


def test_linked_work_trees_and_shallow_clones_have_their_history(tree: Path, tmp_path: Path) -> None:
    """ING-2: the usual ways to check a repository out."""
    git(tree, "worktree", "add", "-q", str(tmp_path / "linked"), "HEAD")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{tree}", "shallow")
    assert read(tmp_path / "linked") == COMMITTED
    assert read(tmp_path / "shallow") == dict.fromkeys(COMMITTED, (SECOND, ("B\u00e9a",)))  # all that it knows


def test_changed_and_new_files_have_the_times_of_the_file_system(tree: Path) -> None:
    """ING-2: git says nothing about what is not committed."""
    for name in ("two.md", "new.md"):
        (tree / "docs" / name).write_text("# Changed\n")
        os.utime(tree / "docs" / name, (1.7e9, 1.7e9))
    times = read(tree)
    assert times["two.md"] == times["new.md"] == (1.7e9, ())
    assert times["caf\u00e9 \\x0a.md"] == (FIRST, ("Ann",))


def test_without_git_or_time_there_are_file_times(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ING-2: a machine without git, and a history that takes too long, cost no document."""
    os.utime(tree / "docs" / "two.md", (1.7e9, 1.7e9))
    none = INGEST.model_copy(update={"git_seconds": 0.0})
    assert read(tree, none)["two.md"] == (1.7e9, ())
    monkeypatch.setenv("PATH", str(tree))
    assert read(tree)["two.md"] == (1.7e9, ())


def test_nothing_that_a_repository_configures_is_run(tree: Path, tmp_path: Path) -> None:
    """ING-3: programs named by the settings of a hostile tree, and its attributes, stay where they are."""
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\nexit 1\n")
    trap.chmod(0o755)
    keys = ("core.fsmonitor", "core.pager", "pager.log", "gpg.program", "diff.external", "core.sshCommand")
    for key in keys:
        git(tree, "config", key, str(trap))
    for key, value in (("log.showSignature", "true"), ("log.mailmap", "true"), ("include.path", "/dev/full")):
        git(tree, "config", key, value)
    for name in ("post-checkout", "post-index-change"):
        (tree / ".git" / "hooks" / name).write_text(trap.read_text())
    assert read(tree) == COMMITTED
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("how", ["file", "link"])
def test_a_tree_cannot_name_the_repository_of_another(tree: Path, tmp_path: Path, how: str) -> None:
    """ING-3: a `.git` that points out of the tree is followed only to a repository that points back."""
    other = tmp_path / "other"
    (other / "docs").mkdir(parents=True)
    (other / "docs" / "two.md").write_text("# Two, changed\n")
    if how == "file":
        (other / ".git").write_text(f"gitdir: {tree / '.git'}\n")
    else:
        (other / ".git").symlink_to(tree / ".git")
    assert last_commits(other, within_s=30.0) == {}


def test_damaged_repositories_are_as_none(tree: Path) -> None:
    """ING-3: what git cannot read changes nothing but the times."""
    for pack in (tree / ".git" / "objects").rglob("*"):
        if pack.is_file():
            pack.chmod(0o644)
            pack.write_bytes(b"\0" * 100)
    assert set(read(tree)) == set(COMMITTED)
    (tree / ".git" / "HEAD").write_text("ref: refs/heads/../../../outside\n")
    assert last_commits(tree, within_s=30.0) == {}


@pytest.mark.parametrize("date", ["", "99999999999999999999 +0000"])
def test_a_commit_without_a_time_is_as_none(tree: Path, date: str) -> None:
    """ING-3: a damaged commit takes nothing with it but its own time."""
    (tree / "damaged.md").write_text("# New\n")
    git(tree, "add", ".")
    parent, root = git(tree, "rev-parse", "HEAD").strip(), git(tree, "write-tree").strip()
    written = f"tree {root}\nparent {parent}\nauthor A <a@b> {date}\ncommitter A <a@b> {date}\n\nm\n"
    (tree.parent / "commit").write_text(written)
    commit = git(tree, "hash-object", "-t", "commit", "-w", "--literally", str(tree.parent / "commit")).strip()
    git(tree, "update-ref", "HEAD", commit)
    found = read(tree)
    assert {name: found[name] for name in COMMITTED} == COMMITTED
    assert found["damaged.md"] == ((tree / "damaged.md").stat().st_mtime, ())


def test_a_file_older_than_the_last_commit_that_touched_it_says_so(tree: Path) -> None:
    """LRN-6: it holds something else, and was changed before; a later change is one that is not committed yet."""
    changed = tree / "docs" / "two.md"
    committed = {}
    for when in (SECOND - 60, SECOND + 60):
        changed.write_text("# Two, before\n")
        os.utime(changed, (when, when))
        documents = [one for one in read_source(tree, INGEST, domain=None) if isinstance(one, Document)]
        committed[when] = {one.uri.rpartition("/")[2]: one.metadata.get(COMMITTED_AT) for one in documents}
    assert committed[SECOND - 60]["two.md"] == "2020-09-13T12:26:40+00:00"
    assert {**committed[SECOND - 60], "two.md": None} == committed[SECOND + 60]
    assert set(committed[SECOND + 60].values()) == {None}
