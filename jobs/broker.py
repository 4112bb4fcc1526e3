"""Run a broker in memory, for one machine: `weft broker`."""

from __future__ import annotations

from weft.cli.commands.broker import main
from weft.cli.main import exit_process

if __name__ == "__main__":
    exit_process(main())
