"""ING-40: rules where git is not asked: of settings, and of trees on hosts without git."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.support.ingestion import a_repository, write
from weft.ingestion.git.rules import PathRules, TreeRules
from weft.ingestion.sources.tree import listed

TAKEN, LEFT, SILENT = False, True, None


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        (["*", "!*/", "!*.h"], "sub/", TAKEN),
        (["*", "!*/", "!*.h"], "sub/deep/z.h", TAKEN),
        (["*", "!*/", "!*.h"], "sub/y.c", LEFT),
        (["logs/**", "!logs/**/", "!logs/**/*.keep.md"], "logs/x/y.keep.md", TAKEN),
        (["logs/**", "!logs/**/", "!logs/**/*.keep.md"], "logs/x/", TAKEN),
        (["logs/**"], "logs/", SILENT),
        (["logs/**", "!logs/**/", "!logs/**/*.keep.md"], "logs/x/y.md", LEFT),
        (["foo/"], "foo", SILENT),
        (["foo/"], "a/foo/", LEFT),
        (["/foo"], "a/foo", SILENT),
        (["a/**/b"], "a/x/y/b", LEFT),
        (["a/*"], "a/b", LEFT),
        (["*.log", "!keep.log", "keep.*"], "keep.log", LEFT),
        (["a\\", "*.md"], "b.md", LEFT),
        (["\\#a"], "#a", LEFT),
        (["a\u2028b"], "b", SILENT),
    ],
)
def test_the_last_rule_that_matches_decides(rules: list[str], path: str, expected: bool | None) -> None:
    """ING-40: allow-lists, anchors, folders, and two stars between, before and behind slashes."""
    assert PathRules(rules).verdict(path.rstrip("/"), is_folder=path.endswith("/")) is expected


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host without git."""
    monkeypatch.setattr(shutil, "which", lambda _: None)


@pytest.mark.usefixtures("bare")
def test_ignore_files_hold_without_git(tree: Path) -> None:
    """ING-40: those of the source and below it, the deepest one first; a repository within has its own."""
    write(tree / ".gitignore", "*.log\r\nbuild/\n/*.tmp\n")
    write(tree / "in" / ".gitignore", "!a.log\nb.md\n")
    a_repository(tree / "inner")
    for name in ("a.log", "a.tmp", "build/a.md", "in/a.log", "in/a.tmp", "in/b.md", "inner/b.log", "inner/in/b.md"):
        write(tree / name)
    listing = listed(tree, skipped=[".git"])
    names = {"/".join(path) for path in listing}
    assert names == {".gitignore", "in/.gitignore", "in/a.log", "in/a.tmp", "inner/b.log", "inner/in/b.md"}
    assert listing.left_out == {"ignored": 4, "skipped": 1}


@pytest.mark.parametrize(
    "data",
    [
        b"*" + b"a*" * 60 + b"b",
        b"*" + b"?*" * 60 + b"b",
        b"a/" + b"**/a*a/" * 30 + b"b",
        b"*" * 1_000_000,
        b"[" * 1_000_000,
        b"\n".join(b"*x%d" % number for number in range(100_000)),
    ],
)
def test_hostile_rules_come_to_an_end(tree: Path, data: bytes) -> None:
    """ING-3: with stars that are tried again, some of these would take longer than the universe has lasted."""
    write(tree / ".gitignore", data)
    began = time.monotonic()
    assert TreeRules(tree).leaves_out(("a" * 250 + "c",), is_folder=False) is False
    assert time.monotonic() - began < 5.0
