"""Answer one query, or a file of queries: `weft search`."""

from __future__ import annotations

from weft.cli.main import exit_process
from weft.cli.searches.search import main

if __name__ == "__main__":
    exit_process(main())
