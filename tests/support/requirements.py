"""The page of requirements: its last column lists the test files that name each id. As a program, this writes it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "requirements.md"
SHOWN = 6
ROW = re.compile(r"^\| ([A-Z]{3}-\d+[a-z]?) \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)
MISSING = "*Not yet:*"
"""What a promise says before what of it is not there."""
OPEN = "open"
_COUNTS = re.compile(r"^Of \d+ promises, .*$", re.MULTILINE)
_DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)


def ids_of(page: str) -> list[str]:
    """Of every row, from top to bottom."""
    return [identity for identity, _ in ROW.findall(page)]


def unbuilt(page: str) -> set[str]:
    """Ids of which nothing is there: what a test would name by mistake."""
    return {identity for identity, promise in ROW.findall(page) if promise.rstrip().endswith(f"{MISSING} all of it.")}


def named_in(text: str, page: str) -> set[str]:
    """Whatever reads as an id of one of the page's areas, in its table or not."""
    areas = {identity.split("-")[0] for identity in ids_of(page)}
    return set(re.findall(rf"\b(?:{'|'.join(sorted(areas))})-\d+[a-z]?\b", text))


def texts_of_tests() -> dict[str, str]:
    """What the docstrings of every test file say, by its path below `tests/`: elsewhere an id is no claim."""
    root = ROOT / "tests"
    files = sorted(root.rglob("test_*.py"))
    return {file.relative_to(root).as_posix(): "\n".join(_DOCSTRING.findall(file.read_text("utf-8"))) for file in files}


def rendered(page: str, files: Mapping[str, str]) -> str:
    """The page with its last column and its counts written from these test files; all else stays as it is."""
    named = {file: named_in(text, page) for file, text in files.items()}

    def row(match: re.Match[str]) -> str:
        identity, promise = match.groups()
        return f"| {identity} | {promise} | {_listed(sorted(file for file in named if identity in named[file]))} |"

    written = ROW.sub(row, page)
    return _COUNTS.sub(_counted(written), written)


def _counted(page: str) -> str:
    """How many promises are shown, in whole, in part, or not at all."""
    count = Counter(_states(page))
    return (
        f"Of {count.total()} promises, {count['shown']} are shown by tests, {count['in part']} in part, and "
        f"{count[OPEN]} are open."
    )


def _states(page: str) -> Iterator[str]:
    for line in page.splitlines():
        if match := ROW.match(line):
            shown = not line.endswith(f"| {OPEN} |")
            yield OPEN if not shown else "in part" if MISSING in match[2] else "shown"


def _listed(files: list[str]) -> str:
    more = len(files) - SHOWN
    shown = ", ".join(f"`{file}`" for file in files[:SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown or OPEN


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text("utf-8"), texts_of_tests()), "utf-8")
