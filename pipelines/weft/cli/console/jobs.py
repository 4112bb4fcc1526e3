"""What every job shares: logging to stderr, the JSON line, and the exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from weft.cli.console.exits import as_command, exit_code
from weft.cli.console.logs import log_progress

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")]


def emit(summary: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a job's result as the last line of stdout, for machines."""
    if as_json:
        sys.stdout.flush()
        sys.stdout.write(json.dumps(summary, sort_keys=True) + "\n")
        sys.stdout.flush()


def run(command: Callable[..., Any], argv: Sequence[str] | None = None) -> int:
    """Run a job's command on arguments; see `exit_code` for what is returned."""
    log_progress()
    arguments = None if argv is None else list(argv)
    return exit_code(f"jobs.{command.__name__}", lambda: as_command(command).main(args=arguments))
