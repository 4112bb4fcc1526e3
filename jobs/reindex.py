"""Index sources and publish the result: `weft index`."""

from __future__ import annotations

from weft.cli.commands.reindex import main
from weft.cli.main import exit_process

if __name__ == "__main__":
    exit_process(main())
