"""Run the streaming updaters: `weft update`."""

from __future__ import annotations

from weft.cli.commands.update import main
from weft.cli.main import exit_process

if __name__ == "__main__":
    exit_process(main())
