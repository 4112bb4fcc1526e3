"""The `weft` command.

Exit codes: 0 done, 1 refused with a one-line reason on stderr, 2 wrong usage, 130 interrupted.

Agents call `weft lessons hook` before every use of a tool: it is answered without importing anything else.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from weft.cli.console.ending import exit_process

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
