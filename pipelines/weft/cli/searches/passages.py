"""Passages of code in a terminal: their lines as they are, coloured where there are colours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from rich.syntax import Syntax
from rich.text import Text

from weft.cli.console.terminal import stdout, visible

_BY_LINE = re.compile(r"\s*(?:\|.*\||\+[-=+]+\+\s*$)|(?: {4}|\t)\S")


def stands_by_line(lines: Sequence[str]) -> bool:
    """Whether lines of prose mean something by where they end: most of them a fence, a table, or indented.

    Examples:
        >>> stands_by_line(["| a | b |", "| - | - |"]), stands_by_line(["One line", "and another."])
        (True, False)
        >>> stands_by_line(["Run it:", "", "```sh", "make", "make test", "```"])
        True
    """
    fenced, count, total = False, 0, 0
    for line in filter(str.strip, lines):
        mark = line.lstrip().startswith(("```", "~~~"))
        count += fenced or mark or _BY_LINE.match(line) is not None
        total += 1
        fenced ^= mark
    return 2 * count > total


def code(lines: Sequence[str], name: str, *, indent: int) -> Text:
    """Lines as they are, each below the other; as wide as the terminal, and whole where they go to a file or a pipe.

    Args:
        lines: Of a file, without line ends.
        name: Of that file, which tells its language.
        indent: Columns in front of each.
    """
    text = Text("\n".join(map(visible, lines)))
    if stdout.is_terminal:
        whole = text.plain
        lexer = Syntax.guess_lexer(PurePosixPath(name).name, whole)
        text = Syntax(whole, lexer, theme="ansi_dark", background_color="default").highlight(whole)
    shown = Text(no_wrap=True)
    for at, line in enumerate(text.split("\n")):
        if stdout.is_terminal:
            line.truncate(max(1, stdout.width - indent), overflow="ellipsis")
        shown.append("\n" * bool(at) + " " * indent * bool(line.plain)).append_text(line)
    return shown


def opened_here(uri: str) -> str:
    """The path by which a file is opened from where one stands; the URI where it is none.

    A URI begins with the name of its source: within the source the rest of it is the path.
    """
    source, _, path = uri.partition("/")
    return path if path and not Path(uri).exists() and Path.cwd().name == source and Path(path).exists() else uri
