"""Train the bundled entity model anew."""

from __future__ import annotations

from lab.entities.command import main
from weft.cli.main import exit_process

if __name__ == "__main__":
    exit_process(main())
