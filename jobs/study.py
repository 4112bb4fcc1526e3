"""Measure what feedback is worth, with simulated users."""

from __future__ import annotations

from lab.study.command import main
from weft.cli.main import exit_process

if __name__ == "__main__":
    exit_process(main())
