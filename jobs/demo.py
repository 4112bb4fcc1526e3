"""Run the whole loop on a small real corpus."""

from __future__ import annotations

from lab.demo import main
from weft.cli.main import exit_process

if __name__ == "__main__":
    exit_process(main())
