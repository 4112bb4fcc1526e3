"""Ask one question after the other, and say what the results are worth: `weft ask`."""

from __future__ import annotations

from weft.cli.main import exit_process
from weft.cli.searches.ask import main

if __name__ == "__main__":
    exit_process(main())
