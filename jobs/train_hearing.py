"""Train the heads anew by which lessons are heard."""

from __future__ import annotations

from lab.hearing.command import main
from weft.cli.main import exit_process

if __name__ == "__main__":
    exit_process(main())
