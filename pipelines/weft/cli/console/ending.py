"""How a process ends; it imports next to nothing, for hooks of agents end by it (LES-10)."""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn


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
