"""ING-40: what is read of a tree is what git takes for the project's: `git ls-files -co --exclude-standard`."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.git_trees import git, listed_by_git, random_repository
from tests.support.ingestion import write
from weft.ingestion.sources.tree import SkipReason, TreeListing, listed

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is missing")

TREES = 80


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without settings, for git and for weft."""
    for name in [name for name in os.environ if name.startswith("GIT_")] + ["XDG_CONFIG_HOME"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """The top of a repository."""
    return a_repository(tmp_path / "project")


def a_repository(top: Path, *options: str) -> Path:
    top.mkdir(parents=True)
    git(top, "init", "-q", "-b", "main", *options)
    return top


def filled(top: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        write(top / name, content)
    return top


def committed(top: Path, *paths: str) -> Path:
    git(top, "add", "-f", "--", *paths)
    git(top, "commit", "-q", "-m", "Add files")
    return top


def listing_of(root: Path) -> TreeListing:
    return listed(root, skipped=[".git"])


def names_in(root: Path) -> set[str]:
    return {"/".join(path) for path in listing_of(root)}


def names_by_git(root: Path) -> set[str]:
    return {os.fsdecode(path) for path in listed_by_git(root)}


@pytest.mark.parametrize("first", range(0, TREES, 20))
def test_any_tree_has_the_files_that_git_lists(tmp_path: Path, first: int) -> None:
    """ING-40: rules of all kinds at all levels, tracked files, links, odd names, indexes of several formats."""
    for seed in range(first, first + 20):
        top = tmp_path / str(seed)
        random_repository(top, seed)
        assert names_in(top) == names_by_git(top), f"tree {seed}"


@pytest.mark.parametrize("first", range(TREES, TREES + 40, 20))
def test_any_folder_of_a_tree_has_the_files_that_git_lists(tmp_path: Path, first: int) -> None:
    """ING-40: rules above the source hold, unless they exclude the source itself."""
    for seed in range(first, first + 20):
        top = tmp_path / str(seed)
        random_repository(top, seed)
        for name in {os.path.dirname(path) for path in names_by_git(top)}:  # noqa: PTH120  of names, not of files
            if not git_excludes(top, name):
                assert names_in(top / name) == names_by_git(top / name), f"folder {name!r} of tree {seed}"


def git_excludes(top: Path, folder: str) -> bool:
    """Whether a file that nobody tracks would be left out there whatever its name."""
    probe = top / folder / "z-never-named"
    probe.write_text("text\n")
    try:
        return os.fsencode(f"{folder}/{probe.name}" if folder else probe.name) not in listed_by_git(top)
    finally:
        probe.unlink()


@pytest.mark.parametrize(
    ("rules", "files", "tracked", "expected"),
    [
        ("*\n!*/\n!*.h\n", "x.c x.h sub/y.c sub/y.h sub/deep/z.h", "", "x.h sub/y.h sub/deep/z.h"),
        (
            "logs/**\n!logs/**/\n!logs/**/*.keep.md\n",
            "logs/a.md logs/z.keep.md logs/x/y.md logs/x/y.keep.md",
            "",
            ".gitignore logs/z.keep.md logs/x/y.keep.md",
        ),
        ("a\u2028b.md\nx\x0cy.md\nn\u0085l.md\n", "b.md l.md y.md", "", ".gitignore b.md l.md y.md"),
        (
            "build/\n*.gen.py\n",
            "build/a.py build/b.py a.gen.py b.gen.py",
            "build/a.py a.gen.py",
            ".gitignore build/a.py a.gen.py",
        ),
        ("/*\n!/src/\n", "a.md src/b.md", "", "src/b.md"),
        ("out/\n!out/a.md\n", "out/a.md", "", ".gitignore"),
    ],
)
def test_usual_rules(top: Path, rules: str, files: str, tracked: str, expected: str) -> None:
    """ING-40: allow-lists lose no folder; what is tracked is the project's, whatever rules say."""
    filled(top, {".gitignore": rules, **dict.fromkeys(files.split(), "text\n")})
    if tracked:
        committed(top, *tracked.split())
    assert names_in(top) == set(expected.split()) == names_by_git(top)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("ids", ["sha1", "sha256"])
def test_tracked_files_are_read_from_indexes_of_all_formats(tmp_path: Path, version: int, ids: str) -> None:
    """ING-40: versions 2 to 4, both lengths of ids, and long names that share beginnings."""
    top = a_repository(tmp_path / "project", f"--object-format={ids}")
    long = "/".join(["n" * 200] * 10)
    filled(top, {".gitignore": "*\n", **dict.fromkeys(["a", "ab", "abc/d", f"{long}/e", "z"], "text\n")})
    git(top, "config", "index.version", str(version))
    git(top, "add", "-f", "a", "abc/d", f"{long}/e")
    if version == 3:
        git(top, "add", "-f", "--intent-to-add", "z")
    assert (top / ".git" / "index").read_bytes()[7] == version
    assert names_in(top) == names_by_git(top) >= {"a", "abc/d", f"{long}/e"}


def test_a_split_index_counts_as_a_whole(top: Path) -> None:
    """ING-40: what its second part deletes or adds."""
    filled(top, {".gitignore": "*\n", **{f"{number}.md": "text\n" for number in range(300)}})
    git(top, "config", "splitIndex.maxPercentChange", "100")
    git(top, "add", "-f", *(f"{number}.md" for number in range(200)))
    git(top, "update-index", "--split-index")
    git(
        top,
        "rm",
        "-q",
        "--cached",
        *(f"{number}.md" for number in range(0, 150, 7)),
        *(f"{n}.md" for n in range(64, 140)),
    )
    git(top, "add", "-f", "250.md")
    assert list((top / ".git").glob("sharedindex.*"))
    assert names_in(top) == names_by_git(top) >= {"250.md", "1.md"}


def test_files_in_conflict_count_once_and_absent_ones_not(top: Path) -> None:
    """ING-40: entries of a merge under way; tracked files that are deleted, or outside of a sparse checkout."""
    filled(top, {".gitignore": "*.gen\n", "a.gen": "one\n", "in/b.gen": "b\n", "out/c.gen": "c\n", "gone.gen": "g\n"})
    committed(top, ".gitignore", "a.gen", "in/b.gen", "out/c.gen", "gone.gen")
    git(top, "switch", "-q", "-c", "other")
    write(top / "a.gen", "two\n")
    committed(top, "a.gen")
    git(top, "switch", "-q", "main")
    write(top / "a.gen", "three\n")
    committed(top, "a.gen")
    with pytest.raises(Exception, match="merge"):
        git(top, "merge", "other")
    (top / "gone.gen").unlink()
    assert sorted("/".join(path) for path in listing_of(top)) == [".gitignore", "a.gen", "in/b.gen", "out/c.gen"]
    git(top, "merge", "--abort")
    git(top, "checkout", "--", ".")
    git(top, "sparse-checkout", "set", "--cone", "--sparse-index", "in")
    assert names_in(top) == names_by_git(top) == {".gitignore", "a.gen", "gone.gen", "in/b.gen"}


@pytest.mark.parametrize(
    "place",
    [
        "[core]\n\texcludesFile = ~/mine\n",
        '[Core] EXCLUDESFILE = "~/mi\\\nne" ; why\n',
        "[include]\n\tpath = more.conf\n",
        '[includeIf "gitdir:~/"]\n\tpath = more.conf\n',
        '[includeIf "gitdir/i:PROJECT/"]\n\tpath = more.conf\n',
        '[includeIf "gitdir:elsewhere/"]\n\tpath = more.conf\n',
    ],
)
def test_the_users_own_rules_hold(home: Path, place: str) -> None:
    """ING-40: `core.excludesFile`, included settings, conditions, and the usual place where nothing names one."""
    filled(home, {".gitconfig": place, "more.conf": "[core]\nexcludesFile = ~/mine\n", "mine": "*.log\n"})
    filled(home, {".config/git/ignore": "*.tmp\n"})
    top = filled(a_repository(home / "project"), dict.fromkeys(["a.md", "a.log", "a.tmp"], "text\n"))
    write(top / ".git" / "info" / "exclude", "!a.tmp\n" if "elsewhere" in place else "")
    assert names_in(top) == names_by_git(top)
    assert ("a.log" in names_in(top)) is ("elsewhere" in place)


def test_the_users_own_rules_hold_outside_of_repositories(tmp_path: Path, home: Path) -> None:
    """ING-40: the same rules where there is no repository."""
    filled(home, {".config/git/ignore": "*.log\n"})
    root = filled(
        tmp_path / "notes", {**dict.fromkeys(["a.md", "a.log", "in/b.md", "in/c.md"], ""), "in/.gitignore": "b.*\n"}
    )
    assert names_in(root) == {"a.md", "in/.gitignore", "in/c.md"}


def test_nothing_that_a_repository_configures_is_run(top: Path, tmp_path: Path) -> None:
    """ING-3, ING-40: programs in its settings, and settings that lead to files which never end."""
    os.mkfifo(tmp_path / "fifo")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    filled(top, {"a.md": "text\n", "a.log": "text\n", ".gitignore": "*.log\n"})
    settings = f"[core]\n fsmonitor = {program}\n excludesFile = {tmp_path}/fifo\n[include]\n path = {tmp_path}/fifo\n"
    settings += "[include]\n path = /dev/zero\n path = config\n path = config\n"
    with (top / ".git" / "config").open("a") as file:
        file.write(settings)
    assert names_in(top) == {".gitignore", "a.md"}
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "damage", [b"", b"DIRC", b"DIRC\0\0\0\2\xff\xff\xff\xff", b"DIRC\0\0\0\7\0\0\0\0", b"\0" * 100]
)
def test_a_damaged_index_stops_nothing_and_is_logged(
    top: Path, caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    """ING-3: rules alone decide then."""
    filled(top, {"a.md": "text\n", "a.log": "text\n", ".gitignore": "*.log\n", ".git/index": ""})
    (top / ".git" / "index").write_bytes(damage)
    with caplog.at_level(logging.WARNING):
        assert names_in(top) == {".gitignore", "a.md"}
    assert ("tracked files are not told" in caplog.text) is bool(damage)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_repository_of_another_owner_has_its_rules(top: Path) -> None:
    """ING-40: git refuses to work in one, and its rules hold all the same."""
    filled(top, {".gitignore": "*.log\n", "sub/a.md": "", "sub/a.log": "", "sub/b.log": ""})
    committed(top, ".gitignore", "sub/b.log")
    for path in [top, *top.rglob("*")]:
        os.chown(path, 12345, 12345)
    assert names_in(top) == {".gitignore", "sub/a.md", "sub/b.log"}
    assert names_in(top / "sub") == {"a.md", "b.log"}


def test_a_linked_working_tree_has_its_own_index_and_shared_rules(top: Path, tmp_path: Path) -> None:
    """ING-40: `.git` is a file there, and `info/exclude` lies with the repository."""
    filled(top, {".gitignore": "*.log\n", "a.log": "text\n"})
    committed(top, ".gitignore", "a.log")
    git(top, "worktree", "add", "-q", str(tmp_path / "linked"))
    filled(tmp_path / "linked", dict.fromkeys(["b.log", "b.tmp", "c.log"], "text\n"))
    git(tmp_path / "linked", "add", "-f", "b.log")
    write(top / ".git" / "info" / "exclude", "*.tmp\n")
    assert names_in(tmp_path / "linked") == {".gitignore", "a.log", "b.log"} == names_by_git(tmp_path / "linked")


def test_working_trees_of_one_repository_are_read_once(tmp_path: Path) -> None:
    """ING-40: the first one before linked ones, wherever they lie, and the others are counted."""
    top = a_repository(tmp_path / "code" / "project")
    filled(top, {"a.md": "text\n"})
    committed(top, "a.md")
    for place in ("../another", "inner", "deep/er"):
        git(top, "worktree", "add", "-q", place)
    listing = listing_of(tmp_path / "code")
    assert set(listing) == {("project", "a.md")}
    assert listing.left_out[SkipReason.WORKTREE] == 3
    assert set(listing_of(tmp_path / "code" / "another")) == {("a.md",)}


def test_of_linked_working_trees_alone_the_main_branch_is_read(top: Path, tmp_path: Path) -> None:
    """ING-40: as people have them beside a bare repository."""
    filled(top, {"a.md": "text\n"})
    committed(top, "a.md")
    git(tmp_path, "clone", "-q", "--bare", str(top), "store.git")
    (tmp_path / "code").mkdir()
    for branch in ("feature", "main", "zeta"):
        new = [] if branch == "main" else ["-b", branch]
        git(
            tmp_path / "store.git",
            "worktree",
            "add",
            "-q",
            *new,
            str(tmp_path / "code" / branch),
            *["main"] * (not new),
        )
    listing = listing_of(tmp_path / "code")
    assert set(listing) == {("main", "a.md")}
    assert listing.left_out[SkipReason.WORKTREE] == 2


def test_a_folder_of_many_checkouts_reads_each_by_its_own_rules(tmp_path: Path) -> None:
    """ING-40: a repository in a folder, or in another one, knows its own files; rules around it say nothing of them."""
    outer = filled(a_repository(tmp_path / "outer"), {".gitignore": "*.log\nvendor/\n", "a.log": "", "a.md": ""})
    inner = filled(a_repository(outer / "inner"), {".gitignore": "*.md\n", "b.log": "", "b.md": "", "c.md": ""})
    committed(inner, "c.md")
    filled(a_repository(outer / "vendor" / "library"), {"d.md": ""})
    own = {f"inner/{name}" for name in names_by_git(inner)}
    assert own == {"inner/.gitignore", "inner/b.log", "inner/c.md"}
    assert names_in(outer) == {".gitignore", "a.md"} | own
    assert listing_of(outer).left_out == {SkipReason.IGNORED: 3, SkipReason.SKIPPED: 2}


def test_a_submodule_is_tracked_whatever_rules_say(top: Path, tmp_path: Path) -> None:
    """ING-40: its own repository knows its files; a folder in its place without one holds nothing of the project."""
    library = filled(a_repository(tmp_path / "library"), {"b.md": "text\n", ".gitignore": "*.log\n"})
    committed(library, "b.md", ".gitignore")
    filled(top, {".gitignore": "/vendor/\n", "vendor/other/c.md": ""})
    for name in ("library", "empty"):
        git(top, "submodule", "--quiet", "add", "-f", str(library), f"vendor/{name}")
    committed(top, ".gitignore")
    filled(top, {"vendor/library/a.log": "", "vendor/library/new.md": ""})
    shutil.rmtree(top / "vendor" / "empty")
    filled(top, {"vendor/empty/stray.md": ""})
    expected = {f"vendor/library/{name}" for name in names_by_git(top / "vendor" / "library")}
    assert expected == {"vendor/library/.gitignore", "vendor/library/b.md", "vendor/library/new.md"}
    assert names_in(top) == {".gitignore", ".gitmodules"} | expected


def test_a_folder_that_only_looks_like_a_repository_is_none(top: Path) -> None:
    """ING-40: rules of the repository around it hold there, as git has it."""
    filled(top, {".gitignore": "*.log\n", "in/a.log": "", "in/a.md": "", "on/b.log": "", "on/b.md": "", "on/.git": "x"})
    (top / "in" / ".git").mkdir()
    assert names_in(top) == names_by_git(top) == {".gitignore", "in/a.md", "on/b.md"}


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_an_ignore_file_that_is_none_is_not_obeyed(top: Path, kind: str) -> None:
    """ING-40: a folder of that name, or a link, as git has it."""
    filled(top, {"a.md": "", "rules": "*.md\n"})
    (top / ".gitignore").mkdir() if kind == "folder" else (top / ".gitignore").symlink_to("rules")
    assert "a.md" in names_in(top) == names_by_git(top)
