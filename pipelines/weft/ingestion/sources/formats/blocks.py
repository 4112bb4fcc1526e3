"""Blocks of Markdown: what documents of other formats are written as."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARK = re.compile(r"^(\s{0,3})(#{1,6}(?=\s)|[-+*](?=\s)|>|={3,}\s*$|-{3,}\s*$|`{3,}|~{3,}|<!--)", re.MULTILINE)
_MOST_CELL = 2_000  # characters of a cell that are shown


def anchor(name: str) -> str:
    """A place that results lead to: a page, a sheet, a slide."""
    return f"<!-- ANCHOR:{name} -->"


def heading(text: str, rank: int) -> str:
    """A heading of a rank from 1 on."""
    return f"{'#' * max(1, min(6, rank))} {' '.join(text.split())}"


def escaped(text: str) -> str:
    r"""A paragraph of which no line is taken for a heading, a list, a fence.

    Examples:
        >>> escaped("# 3 is a number")
        '\\# 3 is a number'
    """
    return _MARK.sub(r"\1\\\2", text)


def fence(code: str, language: str = "") -> str:
    """Code in a fence that is longer than any in it."""
    code = code.strip("\n")
    ticks = max((len(run) for run in re.findall(r"^\s*(`{3,})", code, re.MULTILINE)), default=2) + 1
    return f"{'`' * ticks}{language}\n{code}\n{'`' * ticks}" if code.strip() else ""


def table(rows: Sequence[Sequence[str]]) -> str:
    """A table whose first row is its head; a single column is a list of lines."""
    width = max(map(len, rows), default=0)
    if width <= 1:
        return "\n\n".join(escaped(cell) for row in rows for cell in row if cell.strip())
    lines = [f"| {' | '.join(_cell(row[at] if at < len(row) else '') for at in range(width))} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])


def _cell(text: str) -> str:
    return " ".join(text[:_MOST_CELL].split()).replace("|", "\\|")


def joined(blocks: Iterable[str]) -> str:
    """Blocks as a text: items of a list on lines of their own, all others apart."""
    text: list[str] = []
    last = ""
    for block in filter(None, blocks):
        text.append("\n" if block.startswith("- ") and last.startswith("- ") else "\n\n")
        text.append(block)
        last = block
    return "".join(text[1:]) + "\n" if text else ""
