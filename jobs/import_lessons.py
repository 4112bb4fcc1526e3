"""Say the lessons of another lesson store."""

from __future__ import annotations

from lab.foreign_lessons import main
from weft.cli.main import exit_process

if __name__ == "__main__":
    exit_process(main())
