"""Measure data sets with one encoder, another, and both."""

from __future__ import annotations

from lab.encoders import main
from weft.cli.main import exit_process

if __name__ == "__main__":
    exit_process(main())
