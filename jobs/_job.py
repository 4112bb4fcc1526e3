"""What every job shares: its own options, logging to stderr, the JSON line, and the exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from pipelines.domain.errors import WeftError
from pipelines.serving.logs import log_progress
from pipelines.serving.terminal import machines, refusal

Assignments = Annotated[list[str], typer.Option("--set", help="section.key=value; repeatable, wins over files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")]

INTERRUPTED = 130
"""The exit code of what SIGINT ended, as shells have it."""


def emit(summary: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a job's result as the last line of stdout, for machines."""
    if as_json:
        sys.stdout.flush()
        sys.stdout.write(json.dumps(summary, sort_keys=True) + "\n")
        sys.stdout.flush()


def run(command: Callable[..., Any], argv: Sequence[str] | None = None) -> int:
    """Run a job's command on arguments.

    Returns:
        0 when it worked, 1 with a one-line reason on stderr when it did not, 2 for wrong usage, 130 when interrupted.
    """
    log_progress()
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(command)
    try:
        typer.main.get_command(app).main(args=None if argv is None else list(argv))
    except WeftError as error:
        sys.stderr.write(refusal(_name(command), error))
        return 1
    except OSError as error:
        sys.stderr.write(refusal(_name(command), machines(error)))
        return 1
    except SystemExit as end:  # how typer ends: 0 done, 2 after it explained wrong usage, 130 after Ctrl-C
        if end.code == INTERRUPTED:
            sys.stderr.write(f"{_name(command)}: interrupted\n")
        return end.code if isinstance(end.code, int) else 1
    return 0


def _name(command: Callable[..., Any]) -> str:
    return f"jobs.{command.__name__}"
