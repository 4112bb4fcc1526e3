"""Ask one question after the other, and say what the results are worth: `weft ask`."""

from __future__ import annotations

from weft.cli.commands.ask import main
from weft.cli.console.ending import exit_process

if __name__ == "__main__":
    exit_process(main())
