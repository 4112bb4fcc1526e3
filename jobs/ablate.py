"""Measure what every feature is worth on a data set, each switched off in turn."""

from __future__ import annotations

from lab.ablation import main
from weft.cli.main import exit_process

if __name__ == "__main__":
    exit_process(main())
