"""The page of requirements: its last column lists the test files that name each id. As a program, this writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "requirements.md"
SHOWN = 6
ROW = re.compile(r"^\| ([A-Z]{3}-\d+[a-z]?) \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)


def ids_of(page: str) -> list[str]:
    """Of every row, from top to bottom."""
    return [identity for identity, _ in ROW.findall(page)]


def named_in(text: str, page: str) -> set[str]:
    """Whatever reads as an id of one of the page's areas, in its table or not."""
    areas = {identity.split("-")[0] for identity in ids_of(page)}
    return set(re.findall(rf"\b(?:{'|'.join(sorted(areas))})-\d+[a-z]?\b", text))


def texts_of_tests() -> dict[str, str]:
    """Text of every test file, by its path below `tests/`."""
    root = ROOT / "tests"
    return {file.relative_to(root).as_posix(): file.read_text("utf-8") for file in sorted(root.rglob("test_*.py"))}


def rendered(page: str, files: Mapping[str, str]) -> str:
    """The page with its last column written from these test files; all else stays as it is."""
    named = {file: named_in(text, page) for file, text in files.items()}

    def row(match: re.Match[str]) -> str:
        identity, promise = match.groups()
        return f"| {identity} | {promise} | {_listed(sorted(file for file in named if identity in named[file]))} |"

    return ROW.sub(row, page)


def _listed(files: list[str]) -> str:
    more = len(files) - SHOWN
    shown = ", ".join(f"`{file}`" for file in files[:SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown or "open"


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text("utf-8"), texts_of_tests()), "utf-8")
