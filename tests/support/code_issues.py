"""Questions from issues that people opened on the code of a project, with the files that their fix changed.

A collection is a folder as those of `real_questions`, but its source distribution is unpacked as code, and judged are
files: those that the fix of the issue changed, three at most, without tests and documentation. `source.json` names the
folders of the distribution that are indexed, what of them is left out, and whether weights were looked at on the tree.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any

from tests.support.plain_search import english_terms
from tests.support.real_questions import RealCollection, WrongContentError, read_questions, unpacked

COMMITTED = Path(__file__).resolve().parents[1] / "evaluation" / "realcode"
CODE = frozenset({".py", ".pyi", ".pyx", ".pxd", ".c", ".h", ".js"})
WINDOW, STEP = 40, 20  # lines
_WORD = re.compile(r"\w+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


class Part(StrEnum):
    """Whether weights may be looked at on a tree."""

    TUNED = "tuned"
    HELD_OUT = "held-out"


@dataclass(frozen=True)
class CodeTree:
    """The questions of a tree; its collection's root is the folder that is indexed."""

    collection: RealCollection
    part: Part


def trees() -> dict[str, Path]:
    """The folder of every collection by its name."""
    return {path.parent.name: path.parent for path in sorted(COMMITTED.glob("*/queries.jsonl"))}


def read_tree(folder: Path, cache: Path) -> CodeTree:
    """The questions of a folder, with their code, which is fetched where it is not at hand.

    Raises:
        UnreachableError: The package index does not answer.
        WrongContentError: What was fetched is not what is pinned, or a judged file is not in it.
    """
    pinned = json.loads((folder / "source.json").read_text("utf-8"))
    root = unpacked(pinned, cache, pinned["folders"], lambda path: _wanted(path, pinned))
    collection = RealCollection(folder.name, root, root, tuple(read_questions(folder)))
    for question in collection.questions:
        for path in question.grades:
            if not (root / path).is_file():
                raise WrongContentError(f"{question.question_id}: expected file {path}, found none")
    return CodeTree(collection, Part(pinned["part"]))


def _wanted(path: PurePosixPath, pinned: Mapping[str, Any]) -> bool:
    left_out = any(path.is_relative_to(folder) for folder in pinned["without"])
    return path.suffix in CODE and not left_out


def windows_of(root: Path) -> Iterator[tuple[str, str]]:
    """Windows of lines of every file of a tree, each with the file's path, whose words are added to its text."""
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        path = file.relative_to(root).as_posix()
        lines = file.read_text("utf-8", errors="replace").splitlines()
        for start in range(0, max(1, len(lines) - WINDOW + STEP), STEP):
            yield path, "\n".join([path, *lines[start : start + WINDOW]])


def code_terms(text: str) -> list[str]:
    """The terms of code or of a question: every word, and the parts of those that have some, in English analysis.

    Examples:
        >>> code_terms("class IcoImagePlugin: max_size = HTTPError")
        ['class', 'icoimageplugin', 'ico', 'imag', 'plugin', 'max_siz', 'max', 'size', 'httperror', 'http', 'error']
    """
    return [term for word in _WORD.findall(text) for term in _terms(word)]


@functools.cache
def _terms(word: str) -> tuple[str, ...]:
    parts = _PARTS.findall(word)
    return tuple(term for each in (word, *(parts if len(parts) > 1 else ())) for term in english_terms(each))
