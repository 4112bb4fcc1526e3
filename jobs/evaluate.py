"""Measure retrieval on a data set, or on the query log: `weft evaluate`."""

from __future__ import annotations

from weft.cli.main import exit_process
from weft.cli.reports.evaluate import main

if __name__ == "__main__":
    exit_process(main())
