"""Answer one query, or a file of queries: `weft search`."""

from __future__ import annotations

from weft.cli.commands.search import main
from weft.cli.console.ending import exit_process

if __name__ == "__main__":
    exit_process(main())
