"""What commands print on, and texts that steer no terminal.

Session ids, agents, queries and what is wrong with records are written by whoever can write to the topic. So no text of
a store is markup, and none of its control characters reaches a terminal.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from weft.domain.errors import SourceError, WeftError
from weft.runtime.clock import stamp
from weft.runtime.storage.errors import advice_on

# What others wrote is printed here, and a part of a path such as :key: is no picture.
stderr = Console(stderr=True, emoji=False, highlight=False)
stdout = Console(soft_wrap=True, emoji=False, highlight=False)

# Columns. Tables are only as wide as what they hold: a narrower bound would change nothing but those that it folds.
_PIPED_WIDTH = 200
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    """A text without what would steer a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def plain(text: str) -> str:
    """A text of a user or a store for a line with markup: nothing in it is markup, or steers a terminal."""
    return escape(visible(text))


def refusal(command: str, error: WeftError | OSError) -> str:
    """Why a command did not do what it was asked to, in one line; a full disk or a wrong path is no defect."""
    reason = str(error)
    if isinstance(error, OSError):
        reason = f"expected the machine to let it read and write, found {error}: {advice_on(error)}"
    return f"{command}: {visible(' '.join(reason.split()))}\n"


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """A block that reads a file whose name was given."""
    try:
        yield
    except OSError as error:
        raise SourceError(f"{file}: expected a readable file, found: {error}: {advice_on(error)}") from error
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{file}: expected text in UTF-8, found: {error.reason} at {error.start}: save it so"
        ) from error


def cells(*texts: str) -> list[Text]:
    """A row of a table: texts as they are, nothing in them markup."""
    return [Text(visible(text)) for text in texts]


def table_of(columns: Sequence[str | Column], rows: Iterable[Sequence[str]], *, title: str | None = None) -> Table:
    """A table of texts as they are."""
    # A column keeps the cells of its table.
    own = [each.copy() if isinstance(each, Column) else each for each in columns]
    table = Table(*own, title=title, box=None)
    for row in rows:
        table.add_row(*cells(*row))
    return table


def note(text: str) -> None:
    """Say something on stderr, beside what is printed; nothing in it is markup."""
    stderr.out(visible(text), highlight=False)


def warn(text: str) -> None:
    """Say on stderr what somebody may want to change; nothing in it is markup."""
    stderr.print(f"[yellow]{plain(text)}[/]", soft_wrap=True)


def console() -> Console:
    """Prints texts as they are, `:key:` included."""
    return Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH, emoji=False, highlight=False)


def moment(timestamp_ms: int) -> str:
    """A time in milliseconds, for people; producers may write any integer."""
    try:
        return stamp(timestamp_ms / 1000)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
