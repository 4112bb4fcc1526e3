"""How commands and jobs are called, and how they end: an exit code, and one line on stderr that says why.

It imports no settings: `weft --help` needs none.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import typer

from weft.domain.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    MissingExtraError,
    ModelUnavailableError,
    ServiceUnreachableError,
    StaleVersionError,
    TrackingUnavailableError,
    WeftError,
)
from weft.runtime.extras import extras_named

INTERRUPTED = 130
"""The exit code of what SIGINT ended, as shells have it; SIGTERM ends it as well."""

RESTART_HELPS, PERSON_NEEDED = 75, 78
"""Exit codes of what may be otherwise the next time, and of what will be the same: sysexits' TEMPFAIL and CONFIG."""

_STDERR = 2
_PASSING = (BrokerUnavailableError, TrackingUnavailableError, ServiceUnreachableError, StaleVersionError)
_STATED = (ConfigurationError, MissingExtraError, ModelUnavailableError)


class ImportedCommands(Mapping[str, Any]):
    """Commands by name; each is imported when it is looked up."""

    def __init__(self, load: Callable[[str], Any], names: Collection[str]) -> None:
        self._load = load
        self._names = names

    def __getitem__(self, name: str) -> Any:
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def as_command(function: Callable[..., Any], name: str | None = None) -> Any:
    """A function as a command line."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(function)
    return typer.main.get_command(app)


def exit_code(name: str, run: Callable[[], object]) -> int:
    """Run a command line and say why where it ends early; SIGTERM ends it as SIGINT does."""
    open_streams()
    try:
        with _terminated_as_interrupted(), extras_named():
            run()
    except (WeftError, OSError) as error:
        from weft.cli.console.terminal import refusal  # noqa: PLC0415  .04 s: rich, which the help does without

        sys.stderr.write(refusal(name, error))
        return code_of(error)
    except SystemExit as end:  # how typer ends: 0 done, 2 after it explained wrong usage, 130 after Ctrl-C
        if end.code == INTERRUPTED:
            sys.stderr.write(f"{name}: interrupted\n")
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:  # before or after what typer calls
        sys.stderr.write(f"{name}: interrupted\n")
        return INTERRUPTED
    return 0


def code_of(error: WeftError | OSError) -> int:
    """The exit code of what a command ended with; 1 where neither a restart nor a setting is known to help."""
    if isinstance(error, _PASSING):
        return RESTART_HELPS
    return PERSON_NEEDED if isinstance(error, _STATED) else 1


def open_streams() -> None:
    """Have stdin, stdout and stderr there and take any text: what was closed leads nowhere, and no sign is fatal.

    A number that is free would else be that of the next file opened, and what a library prints would go into it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  as long as Python
        elif mode == "w" and stream.errors == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # as Python has it on stderr


def interruptible() -> None:
    """From now on, have SIGINT raise: what a command has begun is put in order before it ends."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def stopped_by_signals() -> threading.Event:
    """What SIGTERM and SIGINT set, so that what is in hand is finished; a second signal ends the process at once."""
    stopping = threading.Event()

    def ask(number: int, _frame: object) -> None:
        stopping.set()
        signal.signal(number, signal.SIG_DFL)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, ask)
    return stopping


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Within a block, have SIGTERM raise what SIGINT raises, where it would end the process in the middle."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
