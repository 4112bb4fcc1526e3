"""What the commands of `weft` and the jobs share: their options, and how they print.

Session ids, agents, queries and what is wrong with records are written by whoever can write to the topic. So no text of
a store is markup, and none of its control characters reaches a terminal.
"""

from __future__ import annotations

import getpass
import json
import logging
import re
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.text import Text

from pipelines.domain.errors import StoreError, WeftError
from pipelines.runtime.storage.errors import advice_on
from pipelines.settings import Settings, load_settings


def named_path(text: str) -> Path:
    """A path that was given; an empty one, as a variable without a value leaves it, would be the working directory.

    Raises:
        typer.BadParameter: It is empty.
    """
    if not text.strip():
        raise typer.BadParameter("expected a path, found none; the working directory is '.'")
    return Path(text)


Store = Annotated[
    Path | None,
    typer.Option(
        "--store", parser=named_path, metavar="PATH", help="Where weft keeps everything; default storage.root."
    ),
]
Conf = Annotated[list[Path], typer.Option("--conf", help="YAML file over conf/base; repeatable, later files win.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
Bootstrap = Annotated[str | None, typer.Option("--bootstrap", help="Broker, host:port; default kafka.bootstrap.")]

# What others wrote is printed here, and a part of a path such as :key: is no picture.
stderr = Console(stderr=True, emoji=False)
stdout = Console(soft_wrap=True, emoji=False)

# Columns. Tables are only as wide as what they hold: a narrower bound would change nothing but those that it folds.
_PIPED_WIDTH = 200
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


MEASURED = "storage.settings=given"
"""The setting of what measures: it tries settings, and changes nothing of the store."""


def settings_of(conf: Sequence[Path], assignments: Sequence[str], store: Path | None) -> Settings:
    """Settings with the common options applied; `--store` is short for `--set storage.root=`.

    Raises:
        ConfigurationError: See `load_settings`.
    """
    rooted = [] if store is None else [f"storage.root={json.dumps(str(store))}"]
    return load_settings(conf, [*assignments, *rooted])


def root_of(store: Path | None, settings: Settings) -> Path:
    """The folder of the store, the one that `--store` names or else the settings do.

    Raises:
        StoreError: There is none: a name mistyped would look like a store in which nothing was ever done.
    """
    root = store or Path(settings.storage.root)
    if not root.is_dir():
        raise StoreError(f"expected a store in {root}, found no such folder: name it with --store or storage.root")
    return root


def login() -> str:
    """The name that whoever runs this is logged in by; empty where a container's user has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def broker(bootstrap: str | None) -> list[str]:
    """The setting that `--bootstrap` stands for."""
    return [] if bootstrap is None else [f"kafka.bootstrap={json.dumps(bootstrap)}"]


def visible(text: str) -> str:
    r"""A text without what would steer a terminal.

    Examples:
        >>> visible("a\x1b[31mb\n")
        'a�[31mb�'
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def plain(text: str) -> str:
    r"""A text of a user or a store for a line with markup: nothing in it is markup, or steers a terminal.

    Examples:
        >>> plain("[red]a\x1b[0m")
        '\\[red]a�[0m'
    """
    return escape(visible(text))


def refusal(command: str, error: WeftError) -> str:
    r"""Why a command did not do what it was told to, in one line.

    Examples:
        >>> refusal("weft", StoreError("expected a store,\nfound none"))
        'weft: expected a store, found none\n'
    """
    return f"{command}: {visible(' '.join(str(error).split()))}\n"


class LogLines(logging.Formatter):
    r"""What is logged, which may quote anybody, without what would steer a terminal; one message looks like one.

    Examples:
        >>> LogLines().format(logging.makeLogRecord({"msg": "query %s lost", "args": ("a\x1b\nb",)}))
        'query a�\n    b lost'
    """

    def format(self, record: logging.LogRecord) -> str:
        """The message, and the traceback where there is one."""
        return "\n    ".join(map(visible, super().format(record).split("\n")))


def machines(error: OSError) -> StoreError:
    """What the machine did not let a command do, and what helps: a wrong path, or a full disk, is no defect.

    Examples:
        >>> print(machines(OSError(30, "Read-only file system", "store/current.json")))
        expected the machine to let it read and write, found [Errno 30] Read-only file system: 'store/current.json': ...
    """
    return StoreError(f"expected the machine to let it read and write, found {error}: {advice_on(error)}")


def cells(*texts: str) -> list[Text]:
    """A row of a table: texts as they are, nothing in them markup."""
    return [Text(visible(text)) for text in texts]


def console() -> Console:
    """Prints texts as they are, `:key:` included.

    What is piped into a file or a pager is not cut to the width of a terminal that nobody looks at.
    """
    return Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH, emoji=False)


def tell(shown: RenderableType) -> None:
    """Print a table."""
    console().print(shown)


def print_lines(rows: Iterable[object]) -> None:
    """Print values as JSON, one per line."""
    sys.stdout.writelines(json.dumps(row, sort_keys=True, default=str) + "\n" for row in rows)


def stamp(seconds: float) -> str:
    """A time in seconds since the epoch, for people.

    Examples:
        >>> stamp(0.0)
        '1970-01-01 00:00:00Z'
    """
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(seconds))


def moment(timestamp_ms: int) -> str:
    """A time in milliseconds, for people; producers may write any integer."""
    try:
        return stamp(timestamp_ms / 1000)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
