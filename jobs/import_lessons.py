"""Say the lessons of another lesson store."""

from __future__ import annotations

from weft.cli.main import exit_process

from lab.foreign_lessons import main

if __name__ == "__main__":
    exit_process(main())
