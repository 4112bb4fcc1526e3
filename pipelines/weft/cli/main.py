"""The `weft` command.

Exit codes: 0 done; with a one-line reason on stderr 75 for what a restart may mend, 78 for what a person has to set
right, 1 for all else; 2 wrong usage; 130 interrupted.

Agents call `weft lessons hook` before every use of a tool: it is answered without importing anything else.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

HOOK = ["lessons", "hook"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; without one, that of this process, which ends with it."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)  # until the command begins: what is half imported ends in any error
    if arguments[:2] == HOOK and "--help" not in arguments:
        if argv is None:
            gc.disable()  # it is over before there is anything to collect
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that wait for short work cost as much as it
        from weft.cli.lessons.hook import answer  # noqa: PLC0415  within .1 s, without typer

        code = answer(arguments[2:])
    else:
        from weft.cli.registry import main as run  # noqa: PLC0415  .05 s: typer

        code = run(arguments)
    return code if argv is not None else exit_process(code)


def end_at_once(number: int, _frame: object) -> NoReturn:
    """End the process on a signal while it has done nothing yet, or everything."""
    with contextlib.suppress(OSError):
        os.write(2, b"weft: interrupted\n")
    os._exit(128 + number)


def exit_process(code: int) -> NoReturn:
    """End the process, without Python taking its modules apart: half a second where PyTorch is loaded."""
    if (threading := sys.modules.get("threading")) is not None:  # where nobody imported it, there are no threads
        threading._shutdown()
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):  # whoever read it is gone, or it was closed
            code = code or 1
    os._exit(code)
