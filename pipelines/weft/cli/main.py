"""The `weft` command.

Exit codes: 0 done, 1 refused with a one-line reason on stderr, 2 wrong usage, 130 interrupted.

Agents call `weft lessons hook` before every use of a tool: it is answered without importing anything else.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

HOOK = ["lessons", "hook"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; without one, that of this process, which ends with it."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:2] == HOOK and "--help" not in arguments:
        if argv is None:
            gc.disable()  # it is over before there is anything to collect
        from weft.cli.lessons.hook import answer  # noqa: PLC0415  within .1 s, without typer

        code = answer(arguments[2:])
    else:
        from weft.cli.registry import main as run  # noqa: PLC0415  .05 s: typer

        code = run(arguments)
    return code if argv is not None else exit_process(code)


def exit_process(code: int) -> NoReturn:
    """End the process, without Python taking its modules apart: half a second where PyTorch is loaded."""
    if (threading := sys.modules.get("threading")) is not None:  # where nobody imported it, there are no threads
        threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # whoever read it is gone, or it was closed
            code = code or 1
    os._exit(code)
