"""What every job shares: its own options, logging to stderr, the JSON line, and the exit code."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.logging import RichHandler

from pipelines.domain.errors import WeftError
from pipelines.runtime.clock import Clock, system_clock
from pipelines.serving.terminal import LogLines, machines, refusal, stderr
from pipelines.settings import Settings, load_settings

Assignments = Annotated[list[str], typer.Option("--set", help="section.key=value; repeatable, wins over files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of stdout.")]

INTERRUPTED = 130
"""The exit code of what SIGINT ended, as shells have it."""
_KAFKA_CLIENTS = ("kafka", "pipelines.runtime.kafka.reader", "rdkafka")
_VARYING = re.compile(r"[0-9.]+")  # ports, attempts and times of a message that is otherwise the same
_SPARING_S = 60.0


def settings_of(conf: Sequence[Path], assignments: Sequence[str], store: Path | None) -> Settings:
    """Settings with a job's common options applied; `--store` is short for `--set storage.root=`."""
    rooted = [] if store is None else [f"storage.root={json.dumps(str(store))}"]
    return load_settings(conf, [*assignments, *rooted])


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
    logging.basicConfig(level=logging.INFO, handlers=[_handler(as_typed=stderr.is_terminal)])
    logging.getLogger("kafka").setLevel(logging.ERROR)  # it narrates every connection, and every wait for the next one
    logging.getLogger("alembic").setLevel(logging.WARNING)  # it names its plugins while it is imported
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


class Sparing(logging.Filter):
    """Lets a message of a Kafka client through once a minute: who has no broker says so many times a second.

    What weft itself does about it is logged apart; these messages say why, such as a certificate that is refused.
    """

    def __init__(self, clock: Clock = system_clock) -> None:
        super().__init__()
        self._clock = clock
        self._due_at: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is one to print."""
        if not record.name.startswith(_KAFKA_CLIENTS):
            return True
        key, now = (record.name, _VARYING.sub("", record.getMessage())), self._clock()
        if now < self._due_at.get(key, now):
            return False
        self._due_at[key] = now + _SPARING_S
        return True


def _handler(*, as_typed: bool) -> logging.Handler:
    """Where logs go: coloured on a terminal; elsewhere one line a message, with its date, as files of logs have it."""
    handler: logging.Handler
    if as_typed:
        handler = RichHandler(console=stderr, show_path=False)
        handler.setFormatter(LogLines(datefmt="%H:%M:%S"))
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(LogLines("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(Sparing())
    return handler


def _name(command: Callable[..., Any]) -> str:
    return f"jobs.{command.__name__}"
