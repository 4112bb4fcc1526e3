"""What a command returns, and the one port that prints it: as text for people, or as JSON for programs (OPS-4)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text

from weft.cli.console.terminal import console, stdout, table_of, visible

T = TypeVar("T")

Shown: TypeAlias = str | RenderableType
"""A text as it is, nothing of which is markup; or what rich draws, such as `markup` and tables."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a command returns; only what is printed is made, where it is a generator."""

    records: Iterable[object]  # for programs: JSON, each in a line
    shown: Iterable[Shown] | None = None  # for people; None where they read the records as well
    then: Callable[[], None] = lambda: None  # what is done, or refused, once it was seen


class Output(Protocol):
    """Prints what a command returned, once, before the command ends; the command line chooses which by `--json`."""

    def show(self, result: Result) -> None:
        """Print to stdout."""


class JsonOutput:
    """Prints records, one a line."""

    def show(self, result: Result) -> None:
        """Print the records."""
        rows = (json.dumps(row, sort_keys=True, default=str) for row in result.records)
        sys.stdout.writelines(f"{row}\n" for row in rows)


class TextOutput:
    """Prints what people read."""

    def show(self, result: Result) -> None:
        """Print what is shown."""
        if result.shown is None:
            JsonOutput().show(result)
        for each in result.shown or ():
            show(each)


def show(each: Shown) -> None:
    """Print one thing for people, whom commands that go on for a while show one after the other."""
    if isinstance(each, str):
        stdout.out("\n".join(map(visible, each.split("\n"))), highlight=False)
    elif isinstance(each, Table):
        console().print(each)
    else:
        stdout.print(each, soft_wrap=isinstance(each, Text))


def markup(text: str) -> Text:
    """A line with marks such as [bold]; what others wrote is made `plain` before it goes into one."""
    return Text.from_markup(text, emoji=False)


def dim(text: str) -> Text:
    """A line beside what matters; nothing in it is markup."""
    return Text(visible(text), style="dim")


def indented(*values: object) -> Result:
    """Records that people read over several lines."""
    return Result(values, [json.dumps(each, indent=1, default=str) for each in values])


def rows(
    each: Iterable[T],
    *,
    document: Callable[[T], object],  # a row as a record
    columns: Sequence[str | Column],
    texts: Callable[[T], Sequence[str]],  # a row of the table, a text for each column
    before: Iterable[Shown] = (),
    after: Iterable[Shown] = (),
) -> Result:
    """Rows: records, or a table between what is said before and after it."""

    def shown() -> Iterator[Shown]:
        yield from before
        yield table_of(columns, map(texts, each))
        yield from after

    return Result(map(document, each), shown())
