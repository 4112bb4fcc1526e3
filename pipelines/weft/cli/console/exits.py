"""How commands and jobs are called, and how they end: an exit code, and one line on stderr that says why.

It imports no settings: `weft --help` needs none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer

from weft.domain.errors import WeftError

INTERRUPTED = 130
"""The exit code of what SIGINT ended, as shells have it."""


def as_command(function: Callable[..., Any], name: str | None = None) -> Any:
    """A function as a command line."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(function)
    return typer.main.get_command(app)


def exit_code(name: str, run: Callable[[], object]) -> int:
    """Run a command line and say why where it ends early."""
    try:
        run()
    except (WeftError, OSError) as error:
        from weft.cli.console.terminal import refusal  # noqa: PLC0415  .04 s: rich, which the help does without

        sys.stderr.write(refusal(name, error))
        return 1
    except SystemExit as end:  # how typer ends: 0 done, 2 after it explained wrong usage, 130 after Ctrl-C
        if end.code == INTERRUPTED:
            sys.stderr.write(f"{name}: interrupted\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
