"""Run the nightly job: `weft consolidate`."""

from __future__ import annotations

from weft.cli.commands.consolidate import main
from weft.cli.main import exit_process

if __name__ == "__main__":
    exit_process(main())
