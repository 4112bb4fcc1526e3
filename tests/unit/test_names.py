"""The words of the code: one class name, one meaning, and no name that a search engineer would have to ask about."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("pipelines", "jobs")

PRIVATE_WORDS = frozenset(
    [
        "found",
        "told",
        "tells",
        "known",
        "kept",
        "alike",
        "looks",
        "standing",
        "having",
        "but",
        "awake",
        "spelled",
        "heard",
        "said",
        "dealt",
        "farewell",
        "placings",
        "rehearsal",
        "speaking",
        "stood",
        "unasked",
        "upfront",
        "wherever",
    ]
)
"""Words that say nothing of what a thing is: `hits`, `rows`, `existing` or `stored` do."""

STORED_NAMES = frozenset({"heard", "heard_ms", "found_strength", "alike"})
"""Columns of stores, settings in content hashes and fields of answers: users and files see them."""


@lru_cache(maxsize=1)
def nodes() -> list[tuple[ast.AST, str]]:
    """Every node of the syntax trees that gives a name, with its file."""
    giving = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg, ast.Name, ast.Attribute)
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return [
        (node, name)
        for path, name in ((path, path.relative_to(ROOT).as_posix()) for path in paths)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, giving)
    ]


def classes() -> Iterator[tuple[str, str]]:
    """Every public class with its file."""
    return ((node.name, path) for node, path in nodes() if isinstance(node, ast.ClassDef) and node.name[0] != "_")


def names() -> set[tuple[str, str]]:
    """Every name that the code gives, with its file."""
    return {(name, path) for node, path in nodes() if (name := given(node)) is not None}


def given(node: ast.AST) -> str | None:
    """The name that a node gives to something."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.attr
    return None


def words_of(name: str) -> set[str]:
    """The words of a name in snake_case, CamelCase or capitals."""
    return set(re.sub(r"(?<![A-Z])([A-Z])", r"_\1", name).lower().split("_"))


def test_no_name_is_a_private_word() -> None:
    """ARC-6: the names are the field's."""
    places = {(name, path) for name, path in names() if words_of(name) & PRIVATE_WORDS and name not in STORED_NAMES}
    assert places == set()


def test_a_class_name_stands_for_one_class() -> None:
    """ARC-6: who reads a name anywhere knows what is meant."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, path in classes():
        places[name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_folder_holds_more_modules_than_a_reader_takes_in() -> None:
    """ARC-6: twenty at most."""
    counts = {
        folder.relative_to(ROOT).as_posix(): sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        for top in FOLDERS
        for folder in [ROOT / top, *(path for path in (ROOT / top).rglob("*") if path.is_dir())]
    }
    assert {folder: count for folder, count in counts.items() if count > 20} == {}
