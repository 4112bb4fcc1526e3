"""Measure retrieval on a data set, or on the query log: `weft evaluate`."""

from __future__ import annotations

from weft.cli.commands.evaluate import main
from weft.cli.console.ending import exit_process

if __name__ == "__main__":
    exit_process(main())
