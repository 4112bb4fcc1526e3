"""Where commands and jobs write what they log: to stderr, in lines that steer no terminal, or as JSON."""

from __future__ import annotations

import logging
import os
import sys
from enum import StrEnum

from rich.logging import RichHandler

from weft.cli.console.terminal import stderr, visible
from weft.runtime.logs import JSON, VARIABLE, facts_of, is_json, json_handler


class LogForm(StrEnum):
    """What logs look like."""

    TEXT = "text"
    JSON = JSON


def log_as(form: LogForm) -> None:
    """Have all that is logged from now on, by child processes too, in one form."""
    os.environ[VARIABLE] = form.value
    root = logging.getLogger()
    for handler in root.handlers[:]:
        root.removeHandler(handler)
    root.addHandler(_handler())


def log_warnings() -> None:
    """Have a command that answers at once print its warnings, as they are."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines())
    logging.basicConfig(level=logging.WARNING, handlers=[json_handler() if is_json() else handler])
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # what it came to is in the error that ends the command


def log_progress() -> None:
    """Have a job that runs for a while print what it does; libraries that narrate what they do are kept to errors."""
    logging.basicConfig(level=logging.INFO, handlers=[_handler()])
    logging.getLogger("kafka").setLevel(logging.ERROR)  # it narrates every connection, and every wait for the next one
    # They name what they load, every request, or every change.
    for name in ("alembic", "faiss", "httpx", "matplotlib", "mcp", "watchfiles"):
        logging.getLogger(name).setLevel(logging.WARNING)


class LogLines(logging.Formatter):
    """What is logged, which may quote anybody, without what would steer a terminal; one message looks like one."""

    def format(self, record: logging.LogRecord) -> str:
        """The message with its facts, and the traceback where there is one."""
        return "\n    ".join(map(visible, super().format(record).split("\n")))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        """The line that stands before a traceback."""
        return " ".join(
            [super().formatMessage(record), *(f"{name}={value}" for name, value in facts_of(record).items())]
        )


def _handler() -> logging.Handler:
    """Where logs go: coloured on a terminal; elsewhere one line a message, with its date, or an object as is asked."""
    handler: logging.Handler
    if is_json():
        handler = json_handler()
    elif stderr.is_terminal:
        handler = RichHandler(console=stderr, show_path=False)
        handler.setFormatter(LogLines(datefmt="%H:%M:%S"))
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(LogLines("%(asctime)s %(levelname)s %(message)s"))
    return handler
