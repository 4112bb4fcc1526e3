"""The words of the code: one class name, one meaning."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("pipelines", "jobs", "weft")


def classes() -> Iterator[tuple[str, str]]:
    """Every public class with its file."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield node.name, path.relative_to(ROOT).as_posix()


def test_a_class_name_stands_for_one_class() -> None:
    """ARC-6: who reads a name anywhere knows what is meant."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, path in classes():
        places[name].append(path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_folder_holds_more_modules_than_a_reader_takes_in() -> None:
    """ARC-6: fifteen at most."""
    counts = {
        folder.relative_to(ROOT).as_posix(): sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        for top in FOLDERS
        for folder in [ROOT / top, *(path for path in (ROOT / top).rglob("*") if path.is_dir())]
    }
    assert {folder: count for folder, count in counts.items() if count > 15} == {}
